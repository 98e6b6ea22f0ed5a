#pragma once
#include "autograd/tape.h"
#include "kernels/resampling.h"
#include "kernels/window.h"
#include "parallel/index_map.h"

namespace jigsaw::inline autograd {

// Operations whose outputs read a neighbourhood of the input. Fields are [B, space…, C] with 1 to 3 spatial
// dims. Every spatial dim may be cut: what a piece reads beyond itself comes through an Exchange, and its
// gradient goes back through the transposed one.

/// How a field goes on beyond the two ends of a spatial dim.
struct Ends {
  std::int64_t low = 0, high = 0;  ///< points added
  Edge low_edge = Edge::kZero, high_edge = Edge::kZero;
};
/// The same for all spatial dims. Poles lie at the ends of the last spatial dim but one; the last is the
/// circle around them.
struct Padding {
  std::vector<Ends> dims;
  PoleCrossing crossing = {};  ///< what crossing a pole does to each channel
};

/// torch.nn.functional.conv1d, conv2d, conv3d of x padded.
///
/// @param weight  [O, C/groups, kernel…].
/// @param bias    [O], or undefined.
/// Rule: samples; O; C with a Partial(sum) result (whole groups, where there are several); space with halos
/// of (kernel − 1)·dilation points, sent while the inner part is computed.
Variable convolution(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                     const Window& window, std::int64_t groups, const Padding& padding);

/// torch.nn.functional.conv_transpose1d, 2d, 3d without bias: the adjoint of a convolution with zero padding.
///
/// @param weight   [C, O/groups, kernel…].
/// @param padding  points that are dropped at the low end of each spatial dim.
/// @param space    spatial extents of the result, from the low end on.
Variable transposed_convolution(Tape& tape, const Variable& x, const Variable& weight, const Window& window,
                                std::int64_t groups, const Shape& padding, const Shape& space);

enum class PoolingKind : std::uint8_t { kMax, kAverage };
/// torch.nn.functional.max_pool and avg_pool. Padding with zeros counts for a maximum as −∞, and for an
/// average only with count_padding; other padding counts as points.
/// @param space  spatial extents of the result: ⌊…⌋ or ⌈…⌉ (ceil_mode), what the last windows read beyond
///               the padding is no point.
/// Rule: samples, C; space with halos where windows lie across a cut, sent while the inner part is computed
/// where that is consecutive in the result. An average takes Partial(sum), too.
Variable pooling(Tape& tape, const Variable& x, PoolingKind kind, const Window& window,
                 const Padding& padding, const Shape& space, bool count_padding);

/// torch.nn.functional.adaptive_avg_pool to one point: the mean over space, [B, 1…, C].
/// Rule: samples, C; space with a Partial(sum) result.
Variable global_average(Tape& tape, const Variable& x);

/// torch.nn.functional.interpolate (nearest; nearest-exact; linear with align_corners off) to a grid of
/// `grid` points, of which the first `space` along each dim are made.
/// @param edges  per spatial dim, what lies beyond the ends: Edge::kReplicate as torch has it, or a circle or
///               poles.
/// Rule: as that of pooling.
Variable resample(Tape& tape, const Variable& x, Interpolation interpolation, const Shape& grid,
                  const Shape& space, const Padding& edges);

/// torch.nn.functional.pad; negative numbers crop.
Variable pad(Tape& tape, const Variable& x, const Padding& padding);

/// torch.cat over channels: [B, space…, C1 + C2].
/// Rule: samples, space; channels with an exchange of what lies on other ranks in the result.
Variable concatenate(Tape& tape, const Variable& x, const Variable& y);

/// torch.split of a field [B, space…, C] along space or channels: parts of these extents, one after the
/// other. Rule: samples, and every other dim; the dim itself with an exchange of what lies on other ranks in
/// a part.
std::vector<Variable> split(Tape& tape, const Variable& x, int dim, const std::vector<std::int64_t>& extents);

}  // namespace jigsaw::inline autograd
