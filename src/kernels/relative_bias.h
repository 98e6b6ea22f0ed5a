#pragma once
#include "array/array.h"

namespace jigsaw {

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

}  // namespace jigsaw
