#include "array/box_runs.h"

#include <gtest/gtest.h>

#include <vector>

namespace jigsaw {
namespace {

/// Row-major indices in a global shape of a box's elements.
std::vector<std::int64_t> elements(const Shape& global, const Box& box) {
  std::vector<std::int64_t> result;
  const Shape strides = global.strides();
  for (std::int64_t i = 0; i < box.extent.count(); ++i) {
    std::int64_t rest = i, index = 0;
    for (int dim = global.rank() - 1; dim >= 0; --dim) {
      index += (box.begin[dim] + rest % box.extent[dim]) * strides[dim];
      rest /= box.extent[dim];
    }
    result.push_back(index);
  }
  return result;
}

TEST(BoxRuns, TheBoxesOfEveryRunAreTheRun) {
  const struct {
    Shape global;
    Box box;
  } cases[] = {{{}, {{}, {}}},
               {{7}, {{2}, {5}}},
               {{4, 6}, {{1, 2}, {3, 4}}},
               {{3, 4, 5}, {{0, 1, 2}, {3, 3, 3}}},
               {{2, 3, 1, 4}, {{0, 0, 0, 1}, {2, 3, 1, 2}}},
               {{5, 3}, {{1, 1}, {4, 1}}}};
  for (const auto& [global, box] : cases) {
    const std::vector<std::int64_t> all = elements(global, box);
    const auto count = static_cast<std::int64_t>(all.size());
    for (std::int64_t first = 0; first <= count; ++first) {
      for (std::int64_t length = 0; first + length <= count; ++length) {
        std::vector<std::int64_t> found;
        const std::vector<Box> boxes = boxes_of_run(box, first, length);
        for (const Box& part : boxes) {
          const auto some = elements(global, part);
          found.insert(found.end(), some.begin(), some.end());
        }
        EXPECT_EQ(found, std::vector<std::int64_t>(all.begin() + first, all.begin() + first + length))
            << box << " from " << first << ", " << length;
        EXPECT_LE(boxes.size(), static_cast<std::size_t>(std::max(2 * global.rank() - 1, 1)));
      }
    }
  }
  EXPECT_TRUE(boxes_of_run({{0, 2}, {4, 0}}, 0, 0).empty());
}

TEST(BoxRuns, CommonRunsCoverTheIntersectionInBothBoxes) {
  const Shape global{3, 5, 4};
  std::vector<Box> boxes;
  for (std::int64_t i = 0; i < 3; ++i) {
    boxes.push_back({{0, i, 0}, {3, 5 - i, 4}});
    boxes.push_back({{i, 0, 1}, {3 - i, 5, 2}});
    boxes.push_back({{0, 1, i}, {2, 1 + i, 4 - i}});
  }
  for (const Box& a : boxes) {
    for (const Box& b : boxes) {
      const Box part = intersect(a, b);
      const auto in_a = elements(global, a), in_b = elements(global, b);
      std::vector<std::int64_t> found;
      std::int64_t runs = 0;
      for_each_common_run(part, a, b, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
        ++runs;
        for (std::int64_t i = 0; i < count; ++i) {
          found.push_back(in_a.at(static_cast<std::size_t>(from + i)));
          EXPECT_EQ(found.back(), in_b.at(static_cast<std::size_t>(to + i)));
        }
      });
      EXPECT_EQ(found, part.empty() ? std::vector<std::int64_t>{} : elements(global, part)) << a << b;
      if (a == b) {
        EXPECT_EQ(runs, 1);
      }
    }
  }
}

TEST(BoxRuns, AScalarIsOneRun) {
  int runs = 0;
  for_each_common_run({{}, {}}, {{}, {}}, {{}, {}}, [&](std::int64_t, std::int64_t, std::int64_t count) {
    ++runs;
    EXPECT_EQ(count, 1);
  });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace jigsaw
