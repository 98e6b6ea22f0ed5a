#include "images/tiling.h"

#include <algorithm>

#include "base/error.h"
#include "images/sliding_window.h"

namespace jigsaw::inline images {

namespace {

/// Along one dim.
struct Span {
  std::int64_t begin = 0, scored_begin = 0, scored_end = 0;
};

std::vector<Span> spans(std::int64_t image, std::int64_t begin, std::int64_t end, std::int64_t tile,
                        std::int64_t overlap) {
  const std::int64_t length = end - begin;
  if (length <= tile) {
    const std::int64_t centred = begin - (tile - length) / 2;
    const std::int64_t first = image < tile ? centred : std::clamp<std::int64_t>(centred, 0, image - tile);
    return {{first, begin, end}};
  }
  const std::int64_t step = tile - overlap, count = (length - overlap + step - 1) / step;
  std::vector<Span> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back({begin + (i * (length - tile) + (count - 1) / 2) / (count - 1), begin, end});
    if (i == 0) continue;
    Span& before = result[static_cast<std::size_t>(i - 1)];
    const std::int64_t middle = (before.begin + tile + result.back().begin + 1) / 2;
    before.scored_end = result.back().scored_begin = middle;
  }
  return result;
}

}  // namespace

std::vector<ImageTile> tile_region(const Shape& image, const Box& region, const Shape& tile,
                                   const std::vector<std::int64_t>& overlap) {
  std::vector<ImageTile> tiles = {{}};
  for (int d = 0; d < tile.rank(); ++d) {
    const std::int64_t shared = overlap.empty() ? 0 : overlap[static_cast<std::size_t>(d)];
    require(shared < tile[d], "tiles must overlap in part");
    std::vector<ImageTile> longer;
    for (const ImageTile& so_far : tiles) {
      for (const Span& span : spans(image[d], region.begin[d], region.end(d), tile[d], shared)) {
        ImageTile next = so_far;
        append_dim(next.box, span.begin, tile[d]);
        next.scored.begin.append(span.scored_begin);
        next.scored.extent.append(span.scored_end - span.scored_begin);
        longer.push_back(next);
      }
    }
    tiles = std::move(longer);
  }
  return tiles;
}

}  // namespace jigsaw::inline images
