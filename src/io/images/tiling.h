#pragma once
#include <cstdint>
#include <vector>

#include "array/box.h"

namespace jigsaw::inline images {

/// A part of an image as a model sees it, and the points in it that it is scored at, both as boxes of the
/// image.
struct ImageTile {
  std::int64_t image = 0;
  Box box, scored;
};

/// Tiles of one size that cover a region of an image and score each of its points once: where two overlap,
/// each in the one whose border is farther away. They stay in the region along dims in which it is at least
/// as long as a tile; else they reach beyond it, about equally to both sides, as far as the image goes, or
/// where it is smaller than a tile beyond the image, as windows_over() has it.
///
/// @param image    extents of the image.
/// @param overlap  points that neighbours share at least, per dim, less than a tile's extent; or empty: 0.
std::vector<ImageTile> tile_region(const Shape& image, const Box& region, const Shape& tile,
                                   const std::vector<std::int64_t>& overlap);

}  // namespace jigsaw::inline images
