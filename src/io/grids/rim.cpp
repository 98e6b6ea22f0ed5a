#include "grids/rim.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline grids {

Rim::Rim(const Grid& grid, std::int64_t width)
    : width_(width), rows_(grid.shape()[0]), columns_(grid.shape()[1]), sides_(!grid.periodic) {
  if (2 * width_ < rows_ && (!sides_ || 2 * width_ < columns_)) return;
  throw ConfigError(
      concat("data.boundary_width ", width, " leaves nothing inside of the grid ", rows_, " x ", columns_));
}

std::vector<Box> Rim::parts_of(const Box& plane) const {
  std::vector<Box> parts;
  const auto add = [&](std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right) {
    top = std::max(top, plane.begin[0]);
    bottom = std::min(bottom, plane.end(0));
    left = std::max(left, plane.begin[1]);
    right = std::min(right, plane.end(1));
    if (top < bottom && left < right) parts.push_back({{top, left}, {bottom - top, right - left}});
  };
  if (empty()) return parts;
  add(0, width_, 0, columns_);
  add(rows_ - width_, rows_, 0, columns_);
  if (!sides_) return parts;
  add(width_, rows_ - width_, 0, width_);
  add(width_, rows_ - width_, columns_ - width_, columns_);
  return parts;
}

}  // namespace jigsaw::inline grids
