#include "images/tiling.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace jigsaw {
namespace tiling_test {

TEST(Tiling, ScoresEachPointOnceAndStaysInTheImage) {
  for (const std::int64_t image : {7, 12, 31}) {
    for (std::int64_t tile = 1; tile <= image; tile += 3) {
      for (std::int64_t overlap = 0; overlap < tile; overlap += 2) {
        for (std::int64_t begin = 0; begin < image; begin += 5) {
          for (std::int64_t length = 1; begin + length <= image; length += 4) {
            std::vector<int> scored(static_cast<std::size_t>(image), 0);
            std::int64_t before = -1;
            for (const ImageTile& each :
                 tile_region({image, image}, {{begin, 0}, {length, 1}}, {tile, image}, {overlap, 0})) {
              EXPECT_GE(each.box.begin[0], 0);
              EXPECT_LE(each.box.end(0), image);
              EXPECT_TRUE(length <= tile ||
                          (each.box.begin[0] >= begin && each.box.end(0) <= begin + length));
              EXPECT_EQ(intersect(each.box, each.scored), each.scored);
              if (before >= 0) {
                EXPECT_GE(before - each.box.begin[0], overlap);
              }
              before = each.box.end(0);
              for (std::int64_t i = each.scored.begin[0]; i < each.scored.end(0); ++i) {
                ++scored[static_cast<std::size_t>(i)];
              }
            }
            for (std::int64_t i = 0; i < image; ++i) {
              EXPECT_EQ(scored[static_cast<std::size_t>(i)], i >= begin && i < begin + length ? 1 : 0);
            }
          }
        }
      }
    }
  }
}

/// Where neighbours overlap each point is scored by the one whose facing border is farther away.
TEST(Tiling, ScoresEachPointFarFromTheBorder) {
  const auto scored = [](std::int64_t length, std::int64_t tile, std::int64_t overlap) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (const ImageTile& each : tile_region({64}, {{3}, {length}}, {tile}, {overlap}))
      ranges.emplace_back(each.scored.begin[0], each.scored.end(0));
    return ranges;
  };
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  // Tiles at 3, 7, 11 and 15 of eight points each.
  EXPECT_EQ(scored(20, 8, 4), (Ranges{{3, 9}, {9, 13}, {13, 17}, {17, 23}}));
  for (const std::int64_t length : {17, 26, 41}) {
    for (const std::int64_t overlap : {0, 3, 5, 8}) {
      const std::vector<ImageTile> tiles = tile_region({64}, {{3}, {length}}, {9}, {overlap});
      ASSERT_GT(tiles.size(), 1U);
      for (const ImageTile& by : tiles) {
        for (std::int64_t i = by.scored.begin[0]; i < by.scored.end(0); ++i) {
          for (const ImageTile& other : tiles) {
            const std::int64_t begin = other.box.begin[0], end = other.box.end(0);
            if (i < begin || i >= end) continue;
            if (begin > by.box.begin[0]) {
              EXPECT_GE(by.box.end(0) - 1 - i, i - begin) << i;
            } else if (begin < by.box.begin[0]) {
              EXPECT_GE(i - by.box.begin[0], end - 1 - i) << i;
            }
          }
        }
      }
    }
  }
}

}  // namespace tiling_test
}  // namespace jigsaw
