#pragma once
#include "array/shape.h"

namespace jigsaw::inline autograd {

/// A field [B, space…, rest…] of whole tiles with these apart: [B, n₀, t₀, n₁, t₁, …, rest].
inline Shape split_shape(const Shape& field, const Shape& tile) {
  Shape shape{field[0]};
  for (int dim = 0; dim < tile.rank(); ++dim) {
    shape.append(field[1 + dim] / tile[dim]);
    shape.append(tile[dim]);
  }
  shape.append(field.count(1 + tile.rank(), field.rank()));
  return shape;
}

}  // namespace jigsaw::inline autograd
