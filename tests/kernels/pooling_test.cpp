#include "kernels/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/field_extents.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace pooling_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

struct Case {
  Shape x;
  Pooling pooling;
};

Pooling unpadded(const Shape& x, const Window& window) {
  return {window, Box::whole(space_of(x))};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const Shape& x, const Window& window) { all.push_back({x, unpadded(x, window)}); };
  add({2, 8, 10, 5}, {{2, 2}, {2, 2}, {1, 1}});
  add({1, 9, 11, 64}, {{3, 3}, {2, 2}, {1, 1}});
  add({1, 9, 11, 17}, {{2, 3}, {1, 1}, {2, 1}});
  add({2, 5, 7, 6, 3}, {{2, 2, 2}, {2, 2, 2}, {1, 1, 1}});
  add({1, 6, 7, 8, 33}, {{3, 2, 3}, {1, 3, 2}, {1, 1, 1}});
  add({3, 13, 4}, {{3}, {2}, {1}});
  add({1, 40, 50, 24}, {{2, 2}, {2, 2}, {1, 1}});
  add({1, 40, 40, 2}, {{17, 17}, {5, 5}, {1, 1}});
  add({1, 19, 20, 8}, {{17, 17}, {2, 3}, {1, 1}});
  add({2, 13, 12, 8}, {{3, 2}, {2, 4}, {3, 2}});  // strides and dilations with and without a common factor
  add({1, 5, 14, 16}, {{2, 3}, {1, 2}, {2, 4}});
  add({0, 6, 6, 3}, {{2, 2}, {2, 2}, {1, 1}});
  add({1, 1, 6, 3}, {{2, 2}, {2, 2}, {1, 1}});
  add({1, 6, 6, 0}, {{2, 2}, {2, 2}, {1, 1}});
  for (const bool count : {false, true}) {
    all.push_back({{2, 9, 10, 5}, {{{3, 3}, {2, 2}, {1, 1}}, {{1, 0}, {7, 9}}, count}});
    all.push_back({{1, 6, 6, 7, 18}, {{{3, 3, 3}, {1, 1, 1}, {1, 1, 1}}, {{1, 1, 1}, {4, 4, 5}}, count}});
    all.push_back({{1, 4, 5, 6, 8}, {{{2, 3, 2}, {2, 1, 1}, {1, 1, 3}}, {{1, 0, 1}, {3, 4, 4}}, count}});
    all.push_back({{1, 6, 7, 3}, {{{2, 2}, {2, 2}, {1, 1}}, {{4, 4}, {2, 2}}, count}});  // windows of padding
    all.push_back({{1, 6, 7, 8}, {{{2, 2}, {2, 2}, {1, 1}}, {{4, 4}, {2, 2}}, count}});
    all.push_back({{1, 6, 7, 3}, {{{2, 2}, {2, 2}, {1, 1}}, {{0, 0}, {0, 7}}, count}});
  }
  return all;
}

/// The elements of x under each element of y by the definition: their place in the window and their index.
struct Member {
  std::int64_t number, element;
};
std::vector<std::vector<Member>> members(const Case& of, const Shape& y) {
  std::vector<std::vector<Member>> all(static_cast<std::size_t>(y.count()));
  const Window& window = of.pooling.window;
  const int rank = window.extent.rank();
  for (std::int64_t i = 0; i < y.count(); ++i) {
    Shape place = y;
    for (std::int64_t dim = y.rank() - 1, rest = i; dim >= 0; --dim) {
      place[static_cast<int>(dim)] = rest % y[static_cast<int>(dim)];
      rest /= y[static_cast<int>(dim)];
    }
    for (std::int64_t number = 0; number < window.extent.count(); ++number) {
      Shape index = place;
      bool valid = true;
      for (std::int64_t dim = rank - 1, rest = number; dim >= 0; --dim) {
        const int d = static_cast<int>(dim);
        index[d + 1] = place[d + 1] * window.stride[d] + rest % window.extent[d] * window.dilation[d];
        rest /= window.extent[d];
        valid = valid && index[d + 1] >= of.pooling.valid.begin[d] && index[d + 1] < of.pooling.valid.end(d);
      }
      std::int64_t element = 0;
      for (int dim = 0; dim < of.x.rank(); ++dim) element = element * of.x[dim] + index[dim];
      if (valid) all[static_cast<std::size_t>(i)].push_back({number, element});
    }
  }
  return all;
}

class PoolingKernel : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(PoolingKernel, Maximum) {
  for (const DType type : kTypes) {
    for (const Case& each : cases()) {
      SCOPED_TRACE(each.x.to_string() + each.pooling.valid.to_string() + std::string(name(type)));
      const Array x = random_array(context_, each.x, type, 1);
      Array winners;
      const Array y = max_pool_forward(context_, each.pooling, x, winners);
      const std::vector<double> xs = values_of(x);
      const auto windows = members(each, y.shape());
      std::vector<double> largest(windows.size(), -std::numeric_limits<double>::infinity()),
          dx(xs.size(), 0.0);
      const Array dy = random_array(context_, y.shape(), type, 2);
      const std::vector<double> dys = values_of(dy);
      for (std::size_t i = 0; i < windows.size(); ++i) {
        std::size_t winner = xs.size();
        for (const Member& member : windows[i]) {
          const auto element = static_cast<std::size_t>(member.element);
          if (xs[element] > largest[i]) largest[i] = xs[element], winner = element;
        }
        if (winner < xs.size()) dx[winner] += dys[i];
      }
      ASSERT_EQ(values_of(y), largest);
      expect_near(values_of(max_pool_backward(context_, each.pooling, dy, winners, space_of(each.x))), dx,
                  tolerance(type, 16, 4));
    }
  }
}

TEST_P(PoolingKernel, TheFirstOfEqualsAndNanWin) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array x = array_of(context_, {1, 4, 2, 1}, DType::kFloat32, {3, 5, 5, 5, 1, nan, 7, nan});
  const Pooling pooling = unpadded(x.shape(), {{2, 2}, {2, 2}, {1, 1}});
  Array winners;
  const Array y = max_pool_forward(context_, pooling, x, winners);
  EXPECT_EQ(values_of(y)[0], 5);
  EXPECT_TRUE(std::isnan(values_of(y)[1]));
  EXPECT_EQ(values_of(winners), (std::vector<double>{1, 1}));
  const Array dy = array_of(context_, {1, 2, 1, 1}, DType::kFloat32, {2, 4});
  EXPECT_EQ(values_of(max_pool_backward(context_, pooling, dy, winners, {4, 2})),
            (std::vector<double>{0, 2, 0, 0, 0, 4, 0, 0}));
}

TEST_P(PoolingKernel, Average) {
  for (const DType type : kTypes) {
    for (const Case& each : cases()) {
      SCOPED_TRACE(each.x.to_string() + each.pooling.valid.to_string() + std::string(name(type)));
      const Array x = random_array(context_, each.x, type, 1);
      const Array y = average_pool_forward(context_, each.pooling, x);
      const Array dy = random_array(context_, y.shape(), type, 2);
      const std::vector<double> xs = values_of(x), dys = values_of(dy);
      const auto windows = members(each, y.shape());
      std::vector<double> means(windows.size(), 0.0), dx(xs.size(), 0.0);
      for (std::size_t i = 0; i < windows.size(); ++i) {
        const auto count = static_cast<double>(
            each.pooling.count_padding ? static_cast<std::size_t>(each.pooling.window.extent.count())
                                       : windows[i].size());
        for (const Member& member : windows[i]) {
          means[i] += xs[static_cast<std::size_t>(member.element)] / count;
          dx[static_cast<std::size_t>(member.element)] += dys[i] / count;
        }
      }
      expect_near(values_of(y), means, tolerance(type, each.pooling.window.extent.count()));
      expect_near(values_of(average_pool_backward(context_, each.pooling, dy, space_of(each.x))), dx,
                  tolerance(type, 32, 2));
    }
  }
}

/// A window as large as a grid of 0.25 degrees: a mean of equal numbers is that number.
TEST_P(PoolingKernel, AverageOverAWholeGrid) {
  const Shape space = {721, 1440};
  const Pooling whole{{space, {1, 1}, {1, 1}}, Box::whole(space), false};
  for (const double value : {0.1, 280.3}) {
    const Array x = filled(context_, {1, space[0], space[1], 3}, DType::kFloat32, value);
    const double wanted = static_cast<float>(value);
    for (const double mean : values_of(average_pool_forward(context_, whole, x)))
      EXPECT_NEAR(mean, wanted, 1e-6 * wanted);
  }
}

/// A point that stands in thousands of windows: the sum over them is as exact as one over a few.
TEST_P(PoolingKernel, GradientsOfWindowsThatOverlapLargely) {
  const std::int64_t window = 4096, points = 2 * window - 1, middle = window - 1;
  const Pooling pooling{{{window}, {1}, {1}}, {{0}, {points}}, false};
  std::vector<double> xs(static_cast<std::size_t>(points), 0.0);
  xs[static_cast<std::size_t>(middle)] = 1;
  const double slope = static_cast<float>(0.1);
  const Array dy = filled(context_, {1, window, 1}, DType::kFloat32, slope);
  Array winners;
  max_pool_forward(context_, pooling, array_of(context_, {1, points, 1}, DType::kFloat32, xs), winners);
  const std::vector<double> of_max = values_of(max_pool_backward(context_, pooling, dy, winners, {points}));
  const std::vector<double> of_mean = values_of(average_pool_backward(context_, pooling, dy, {points}));
  const double total = slope * static_cast<double>(window);
  EXPECT_NEAR(of_max.at(static_cast<std::size_t>(middle)), total, 1e-6 * total);
  for (std::int64_t point = 0; point < points; ++point) {
    const auto places = static_cast<double>(std::min(point + 1, points - point));
    const double wanted = slope * places / static_cast<double>(window);
    ASSERT_NEAR(of_mean[static_cast<std::size_t>(point)], wanted, 1e-6 * wanted) << point;
  }
}

TEST_P(PoolingKernel, MetaCountsAlike) {
  Context meta = Context::make_meta();
  const Pooling pooling = unpadded({2, 8, 8, 3}, {{2, 2}, {2, 2}, {1, 1}});
  for (Context* context : {&context_, &meta}) {
    const Array x = testing::random_array(*context, {2, 8, 8, 3}, DType::kBfloat16, 1);
    Array winners;
    const Array y = max_pool_forward(*context, pooling, x, winners);
    EXPECT_EQ(max_pool_backward(*context, pooling, y, winners, {8, 8}).shape(), x.shape());
    EXPECT_EQ(average_pool_forward(*context, pooling, x).shape(), (Shape{2, 4, 4, 3}));
    average_pool_backward(*context, pooling, y, {8, 8});
  }
  EXPECT_GT(meta.tally().flops, 0);
  EXPECT_EQ(meta.tally().flops, context_.tally().flops);
  EXPECT_EQ(meta.tally().bytes, context_.tally().bytes);
}

TEST_P(PoolingKernel, ErrorsSayWhatIsWrong) {
  const Array x = random_array(context_, {1, 6, 6, 4}, DType::kFloat32, 1);
  const Window window = {{2, 2}, {2, 2}, {1, 1}};
  EXPECT_THROW(average_pool_forward(context_, {window, {{0, 0}, {7, 6}}}, x), ShapeError);
  EXPECT_THROW(average_pool_forward(context_, {window, {{-1, 0}, {6, 6}}}, x), ShapeError);
  EXPECT_THROW(average_pool_forward(context_, {{{2}, {2}, {1}}, {{0}, {6}}}, x), ShapeError);
  EXPECT_THROW(average_pool_backward(context_, {window, {{0, 0}, {6, 6}}}, x, {6, 6}), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, PoolingKernel, testing::kernel_backends(), testing::backend_name);

}  // namespace pooling_test
}  // namespace jigsaw
