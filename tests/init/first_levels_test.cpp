#include "init/first_levels.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace first_levels_test {

/// "3 levels [1, 2, 2]".
std::string text_of(const FirstLevels& levels) {
  return std::to_string(levels.count) + " levels " + levels.strides_text();
}

TEST(FirstLevels, HalveAxesThatAreLongEnough) {
  EXPECT_EQ(text_of(levels_by_axis({32, 128, 128}, {})), "4 levels []") << "2 everywhere";
  EXPECT_EQ(text_of(levels_by_axis({128, 128}, {})), "4 levels []");
  EXPECT_EQ(text_of(levels_by_axis({12, 32, 32}, {})), "4 levels [1, 2, [1, 2, 2], [1, 2, 2]]");
  EXPECT_EQ(text_of(levels_by_axis({4, 32, 32}, {})), "4 levels [1, [1, 2, 2], [1, 2, 2], [1, 2, 2]]");
  EXPECT_EQ(text_of(levels_by_axis({10, 64}, {})), "4 levels [1, 2, [1, 2], [1, 2]]");
  EXPECT_EQ(text_of(levels_by_axis({4, 24}, {})), "3 levels [1, [1, 2], [1, 2]]") << "then 6, one axis alone";
  EXPECT_EQ(text_of(levels_by_axis({4, 8}, {})), "1 levels []");
  EXPECT_EQ(text_of(levels_by_axis({7, 7, 7}, {})), "1 levels []");
  EXPECT_EQ(text_of(even_levels({12, 32, 32})), "2 levels []");
}

/// Slices of 5 mm are halved when the points within them are 4 mm apart.
TEST(FirstLevels, WaitForAxesOfFinerPoints) {
  EXPECT_EQ(text_of(levels_by_axis({32, 32, 32}, {5, 1, 1})), "4 levels [1, [1, 2, 2], [1, 2, 2], 2]");
  EXPECT_EQ(text_of(levels_by_axis({32, 32, 32}, {2, 1, 1})), "4 levels [1, [1, 2, 2], 2, 2]");
  EXPECT_EQ(text_of(levels_by_axis({32, 32}, {1, 2.5})), "4 levels [1, [2, 1], 2, 2]");
  EXPECT_EQ(text_of(levels_by_axis({32, 6, 6}, {5, 1, 1})), "3 levels [1, [2, 1, 1], [2, 1, 1]]")
      << "of the axes that can be halved the first is the finest";
}

}  // namespace first_levels_test
}  // namespace jigsaw
