#pragma once
#include "kernels/normalization.h"

namespace jigsaw::inline kernels {

// Normalisation over the points of a channel, or of a group of channels: group, instance and batch norm.
// Kernels see a field as [n, points, c], with n the samples (group norm) or 1 (batch norm, all samples'
// points in one), and know each channel for itself; what channels, ranks and samples have in common
// kernels/group_statistics.h puts together.

/// Mean and sum of squared deviations over the points, of each channel: [n, c], f32 (f64 for f64). Zero where
/// there is no point.
Moments channel_moments(Context& context, const Array& x);

/// y = (x − centre)·factor + shift, of x's type.
/// @param centre, factor  [n, c], f32 (f64 for f64).
/// @param shift           [c] of any float type, or undefined.
Array channel_apply(Context& context, const Array& x, const Array& centre, const Array& factor,
                    const Array& shift);

/// Σ dy and Σ dy·(x − centre) over the points: [2, n, c], f32 (f64 for f64).
Array channel_gradient_sums(Context& context, const Array& dy, const Array& x, const Array& centre);

/// dx = a·dy + b·(x − centre) + c, of dy's type. @param a, b, c, centre  [n, c], f32 (f64 for f64).
Array channel_gradient(Context& context, const Array& dy, const Array& x, const Array& centre, const Array& a,
                       const Array& b, const Array& c);

}  // namespace jigsaw::inline kernels
