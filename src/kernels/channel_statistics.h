#pragma once
#include "kernels/normalization.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels {

// Normalisation over the points of a channel, or of a group of channels: group, instance and batch norm.
// Kernels see a field as [n, points, c], with n the samples (group norm) or 1 (batch norm, all samples'
// points in one), and know each channel for itself; what channels, ranks and samples have in common
// kernels/group_statistics.h puts together.

/// Mean and sum of squared deviations over the points, of each channel: [n, c], f32 (f64 for f64). Zero where
/// there is no point.
Moments channel_moments(Context& context, const Array& x);

/// y = activation(z), z = (x − centre)·factor + shift: the end of a norm, and the activation behind it.
struct ChannelMap {
  Array centre, factor;  ///< [n, c], f32 (f64 for f64)
  Array shift;           ///< [c] of any float type, or undefined
  Activation activation = Activation::kNone;
};
template <typename F>
void for_each_array(ChannelMap& map, const F& f) {
  f(map.centre);
  f(map.factor);
  f(map.shift);
}

/// y of x, of its type.
Array channel_apply(Context& context, const Array& x, const ChannelMap& map);

/// Σ dz and Σ dz·(x − centre) over the points, dz = dy·activation'(z): [2, n, c], f32 (f64 for f64).
Array channel_gradient_sums(Context& context, const Array& dy, const Array& x, const ChannelMap& map);

/// dx = factor·dz + b·(x − centre) + c, of dy's type. @param b, c  [n, c], f32 (f64 for f64).
Array channel_gradient(Context& context, const Array& dy, const Array& x, const ChannelMap& map,
                       const Array& b, const Array& c);

}  // namespace jigsaw::inline kernels
