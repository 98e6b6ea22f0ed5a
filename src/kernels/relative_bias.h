#pragma once
#include "array/array.h"
#include "array/box.h"

namespace jigsaw::inline kernels {

/// The bias of attention inside windows from a table of relative positions (Swin transformer, Liu et al.
/// 2021, arXiv 2103.14030; torchvision's relative_position_bias_table): result[head, query, key] is the
/// table's row for query − key along each dim, counted in row-major order of [2·w₀ − 1, 2·w₁ − 1, …] from −(w
/// − 1) on.
/// @param table   [Π (2w − 1), heads], any float type.
/// @param window  points of a window along each dim.
/// @return        [heads, Π w, Π w], f32 (f64 for f64).
Array relative_bias(Context& context, const Array& table, const Shape& window);
/// The adjoint: [Π (2w − 1), heads], of dbias's type.
Array relative_bias_backward(Context& context, const Array& dbias, const Shape& window);

/// Windows of a field that was wrapped round by `wrapped` points along each dim.
struct WrappedWindows {
  Shape window;   ///< points of a window along each dim
  Shape wrapped;  ///< points along each dim that come from the other end, the last of the dim
  Shape space;    ///< of the whole grid
  Box piece;      ///< of the space, in whole windows

  std::int64_t windows() const;
};
/// For each window of a piece: −∞ between points on two sides of an end where the field was wrapped round,
/// else 0; [windows, Π w, Π w], f32 (f64 for f64).
Array wrap_mask(Context& context, const WrappedWindows& windows, DType dtype);

}  // namespace jigsaw::inline kernels
