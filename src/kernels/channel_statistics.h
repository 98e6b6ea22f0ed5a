#pragma once
#include <span>
#include <vector>

#include "kernels/normalization.h"

namespace jigsaw {

// Normalisation over the points of a channel, or of a group of channels: group, instance and batch norm.
// Kernels see a field as [n, points, c], with n the samples (group norm) or 1 (batch norm, all samples'
// points in one), and know each channel for itself; what channels, ranks and samples have in common is put
// together from their numbers in float64, which are few.

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

/// What one rank knows of the moments: those of channels [first, first + channels) over `points` points.
struct MomentsPart {
  std::int64_t points = 0, first = 0, channels = 0;
};

/// Mean and variance (biased) of each group of `group_size` consecutive channels.
struct GroupStatistics {
  std::int64_t n = 0, groups = 0, group_size = 1;
  std::vector<double> mean, variance;  ///< [n, groups]

  std::size_t at(std::int64_t i, std::int64_t channel) const {
    return static_cast<std::size_t>(i * groups + channel / group_size);
  }
};

/// Combines the packed moments of all ranks ([2, n, channels] one after the other, see pack_moments) in rank
/// order, within a rank in the order of channels (Chan, Golub and LeVeque 1979). A group of no points has
/// mean and variance 0.
GroupStatistics combine_channel_moments(const Array& packed, std::span<const MomentsPart> parts,
                                        std::int64_t n, std::int64_t channels, std::int64_t group_size);

}  // namespace jigsaw
