#pragma once
#include <array>

#include "array/array.h"
#include "array/box.h"

namespace jigsaw::inline kernels {

enum class Interpolation : std::uint8_t { kNearest, kLinear, kNearestExact };
/// Whether each point is one of the source's.
constexpr bool is_nearest(Interpolation interpolation) {
  return interpolation != Interpolation::kLinear;
}

/// torch.nn.functional.interpolate (modes nearest, nearest-exact, and linear, bilinear, trilinear with
/// align_corners off) from a grid of `input` points to one of `output` points per spatial dim, 1 to 3 of
/// them. Any part of the result can be made from the part of the input that it reads: both regions are in
/// coordinates of the whole grids, so that pieces are those of the whole, whatever the cut.
struct Resampling {
  Interpolation interpolation = Interpolation::kNearest;
  Shape input, output;  ///< extents of the whole grids, at least 1
  /// Per spatial dim, whether reads beyond an end of the input take its last point, as torch's do; where not,
  /// they are read at coordinates below 0 or from `input` on, where the source region holds what lies beyond
  /// (the other end of a circle of longitude).
  std::array<bool, 3> clamped{true, true, true};
  /// The region of the input that x holds; it may begin below 0 where reads are not clamped.
  std::array<std::int64_t, 3> source_begin{};
  Shape source_extent;
  Box target;  ///< region of the output that is made

  std::int64_t source_first(int dim) const { return source_begin[static_cast<std::size_t>(dim)]; }
  std::int64_t source_end(int dim) const { return source_first(dim) + source_extent[dim]; }
};

/// Coordinates [begin, end) of the input.
struct ReadRange {
  std::int64_t begin = 0, end = 0;
};
/// What outputs [begin, end) of spatial dim `dim` read; empty for none. `source` and `target` are not used.
ReadRange resampling_reads(const Resampling& resampling, int dim, std::int64_t begin, std::int64_t end);

/// @param x  [B, source_extent…, C]; f32, f64 or bf16.
/// @return   [B, target.extent…, C] of x's type: for output o, nearest reads point ⌊o·input/output⌋,
///           nearest-exact ⌊(o + ½)·input/output⌋, linear the two neighbours of (o + ½)·input/output − ½.
/// @throws ShapeError unless the source holds what the target reads.
Array resample_forward(Context& context, const Resampling& resampling, const Array& x);
/// The same into an array that is there, of the result's shape.
void resample_forward_into(Context& context, const Resampling& resampling, const Array& x, Array& y);
/// The adjoint: the part of dx, [B, source_extent…, C], that comes from dy, [B, target.extent…, C]; of dy's
/// type.
Array resample_backward(Context& context, const Resampling& resampling, const Array& dy);

}  // namespace jigsaw::inline kernels
