#include "array/box_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "array/box_runs.h"

namespace jigsaw {
namespace {

/// Counts every element one by one.
bool each_element_once(const Shape& shape, const std::vector<Box>& parts) {
  std::vector<int> hits(static_cast<std::size_t>(shape.count()), 0);
  for (const Box& part : parts) {
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      std::int64_t rest = i;
      bool inside = true;
      for (int dim = shape.rank() - 1; dim >= 0; --dim) {
        const std::int64_t at = rest % shape[dim];
        rest /= shape[dim];
        inside = inside && at >= part.begin[dim] && at < part.end(dim);
      }
      if (inside) ++hits[static_cast<std::size_t>(i)];
    }
  }
  return std::all_of(hits.begin(), hits.end(), [](int n) { return n == 1; });
}

TEST(BoxCover, RandomBoxesMakeAShapeUpWhenTheyHoldEachElementOnce) {
  std::mt19937 random(1);
  const Shape shape = {3, 4, 2};
  int made_up = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    // Runs of elements, as ranks cut them, one of which may be moved.
    std::vector<Box> parts;
    for (std::int64_t first = 0; first < shape.count();) {
      const std::int64_t count =
          std::min<std::int64_t>(1 + static_cast<std::int64_t>(random() % 9), shape.count() - first);
      for (const Box& box : boxes_of_run(Box::whole(shape), first, count)) parts.push_back(box);
      first += count;
    }
    if (trial % 2 == 0) {
      Box& moved = parts[random() % parts.size()];
      const int dim = static_cast<int>(random() % 3);
      moved.begin[dim] =
          static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[dim] - moved.extent[dim] + 1));
    }
    std::shuffle(parts.begin(), parts.end(), random);
    const bool expected = each_element_once(shape, parts);
    ASSERT_EQ(make_up(Box::whole(shape), parts), expected) << trial;
    if (expected) ++made_up;
  }
  EXPECT_GT(made_up, 1500);
  EXPECT_LT(made_up, 2900);
}

TEST(BoxCover, OfNothingAndOfOneNumber) {
  EXPECT_TRUE(make_up(Box::whole({0, 4}), {}));
  EXPECT_FALSE(make_up(Box::whole({2, 4}), {}));
  EXPECT_TRUE(make_up(Box::whole({}), {Box::whole({})}));
  EXPECT_FALSE(make_up(Box::whole({}), {Box::whole({}), Box::whole({})}));
  EXPECT_TRUE(make_up(Box::whole({2}), {Box::whole({2}), {{1}, {0}}}));
}

TEST(BoxCover, OfManyRanksTakesNoTime) {
  const Shape shape = {1000, 1000};
  std::vector<Box> parts;
  for (std::int64_t i = 0; i < 40000; ++i) {
    for (const Box& box : boxes_of_run(Box::whole(shape), i * 25, 25)) parts.push_back(box);
  }
  EXPECT_TRUE(make_up(Box::whole(shape), parts));
  parts[500].begin[1] = 0;
  EXPECT_FALSE(make_up(Box::whole(shape), parts));
}

}  // namespace
}  // namespace jigsaw
