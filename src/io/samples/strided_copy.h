#pragma once
#include <span>
#include <vector>

#include "array/shape.h"

namespace jigsaw::inline samples {

/// Fills the row-major `to` of these extents with elements of `from`: that of index 0 stands at `first`, and
/// one step along dim d moves by strides[d], which may be negative.
inline void copy_strided(std::span<const double> from, std::int64_t first,
                         const std::vector<std::int64_t>& strides, const Shape& extents,
                         std::span<double> to) {
  Shape at = Shape::filled(extents.rank(), 0);
  std::int64_t source = first;
  for (double& value : to) {
    value = from[static_cast<std::size_t>(source)];
    for (int d = extents.rank() - 1; d >= 0; --d) {
      const std::int64_t stride = strides[static_cast<std::size_t>(d)];
      source += stride;
      if (++at[d] < extents[d]) break;
      source -= extents[d] * stride;
      at[d] = 0;
    }
  }
}

}  // namespace jigsaw::inline samples
