#pragma once
#include <span>

#include "kernels/normalization.h"

namespace jigsaw::inline kernels {

// What group, instance and batch norm put together from the numbers of channels
// (kernels/channel_statistics.h): few numbers, in float64, that stay where the field stands.

/// What one rank knows of the moments: those of channels [first, first + channels) over `points` points.
struct MomentsPart {
  std::int64_t points = 0, first = 0, channels = 0;
};

/// Mean and variance (biased) of each group of `group_size` consecutive channels, f64 [n, groups].
struct GroupStatistics {
  Array mean, variance;
  std::int64_t group_size = 1;
};
template <typename F>
void for_each_array(GroupStatistics& all, const F& f) {
  f(all.mean);
  f(all.variance);
}

/// Channels of a whole field that are here: [first, first + count).
struct ChannelRange {
  std::int64_t first = 0, count = 0;
};

/// Combines the packed moments of all ranks ([2, n, channels] one after the other, see pack_moments) in rank
/// order, within a rank in the order of channels (Chan, Golub and LeVeque 1979). A group of no points has
/// mean and variance 0.
GroupStatistics combine_channel_moments(Context& context, const Array& packed,
                                        std::span<const MomentsPart> parts, std::int64_t n,
                                        std::int64_t channels, std::int64_t group_size);
/// Statistics that were given, mean and variance [channels] of any float type: each channel is a group.
GroupStatistics given_statistics(Context& context, const Array& mean, const Array& variance);

/// What channel_apply() normalises with: the mean, and gamma/√(variance + eps); [n, count] each.
struct ChannelScales {
  Array centre, factor;
};
template <typename F>
void for_each_array(ChannelScales& all, const F& f) {
  f(all.centre);
  f(all.factor);
}
/// @param gamma  [count] of any float type.
/// @param dtype  of the result, f32 or f64.
ChannelScales channel_scales(Context& context, const GroupStatistics& statistics,
                             const ChannelRange& channels, double eps, const Array& gamma, DType dtype);

/// Sums that the channels here give to their groups and to the gradients of gamma and beta.
struct GroupSums {
  Array dgamma, dbeta;  ///< [count], of the type of the sums
  Array groups;  ///< f64 [2, n, groups]: Σ dy·gamma and Σ dy·gamma·x̂, zero in groups that are not here
};
template <typename F>
void for_each_array(GroupSums& all, const F& f) {
  f(all.dgamma);
  f(all.dbeta);
  f(all.groups);
}
/// @param sums  those of channel_gradient_sums(), [2, n, count].
GroupSums group_gradient_sums(Context& context, const GroupStatistics& statistics,
                              const ChannelRange& channels, double eps, const Array& gamma,
                              const Array& sums);

/// The last two numbers of channel_gradient(), of the sums of whole groups of `elements` elements:
/// −mean(dy·gamma·x̂)/(variance + eps) and −mean(dy·gamma)/√(variance + eps); [n, count] each, of `dtype`.
struct GradientShifts {
  Array slope, shift;
};
template <typename F>
void for_each_array(GradientShifts& all, const F& f) {
  f(all.slope);
  f(all.shift);
}
GradientShifts gradient_shifts(Context& context, const GroupStatistics& statistics,
                               const ChannelRange& channels, double eps, const Array& group_sums,
                               double elements, DType dtype);

/// How far running numbers [count] are from a batch's: running − factor·batch[first …]; of running's type
/// (f32 for bf16).
/// @param batch  f64 [channels].
Array way_to_batch(Context& context, const Array& running, const Array& batch, const ChannelRange& channels,
                   double factor);

}  // namespace jigsaw::inline kernels
