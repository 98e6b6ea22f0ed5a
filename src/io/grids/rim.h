#pragma once
#include <cstdint>
#include <vector>

#include "array/box.h"
#include "array/grid.h"

namespace jigsaw::inline grids {

/// The points of a grid that are less than `width` rows or columns from its edge; of one whose longitudes
/// close the circle rows only.
class Rim {
 public:
  Rim() = default;
  /// @throws ConfigError  when it leaves no point inside.
  Rim(const Grid& grid, std::int64_t width);

  bool empty() const { return width_ == 0; }
  bool holds(std::int64_t row, std::int64_t column) const {
    if (empty()) return false;
    return row < width_ || row >= rows_ - width_ ||
           (sides_ && (column < width_ || column >= columns_ - width_));
  }
  /// Whether it holds point i, row-major, of rows and columns `plane` [H, W].
  bool holds(const Box& plane, std::size_t i) const {
    const auto number = static_cast<std::int64_t>(i);
    return holds(plane.begin[0] + number / plane.extent[1], plane.begin[1] + number % plane.extent[1]);
  }
  /// Boxes that lie apart and together are what it has of a plane.
  std::vector<Box> parts_of(const Box& plane) const;

 private:
  std::int64_t width_ = 0, rows_ = 0, columns_ = 0;
  bool sides_ = false;
};

}  // namespace jigsaw::inline grids
