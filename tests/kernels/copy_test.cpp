#include "kernels/copy.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

class Copy : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(Copy, MovesARegion) {
  for (const DType type : kTypes) {
    const Array source = random_array(context_, {4, 5, 6}, type, 1);
    Array target = random_array(context_, {7, 3, 9}, type, 2),
          sum = random_array(context_, {7, 3, 9}, type, 2);
    const std::vector<double> xs = values_of(source);
    std::vector<double> copied = values_of(target), added = copied;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 2; ++j) {
        for (std::size_t k = 0; k < 4; ++k) {
          const double x = xs[((1 + i) * 5 + 3 + j) * 6 + 2 + k];
          const std::size_t at = ((4 + i) * 3 + j) * 9 + 5 + k;
          copied[at] = x;
          added[at] += x;
        }
      }
    }
    const Box from = {{1, 3, 2}, {3, 2, 4}}, to = {{4, 0, 5}, {3, 2, 4}};
    copy_box(context_, source, from, target, to);
    EXPECT_EQ(values_of(target), copied);
    add_box(context_, source, from, sum, to);
    expect_near(values_of(sum), added, tolerance(type, 1, 2));
  }
}

TEST_P(Copy, WholeRowsColumnsAndEmptyRegions) {
  const Array x = random_array(context_, {40, 7, 300}, DType::kFloat32, 1);
  EXPECT_EQ(values_of(extract_box(context_, x, Box::whole(x.shape()))), values_of(x));
  const Array rows = extract_box(context_, x, {{10, 0, 0}, {20, 7, 300}});
  EXPECT_EQ(values_of(rows), values_of(x.slice(10 * 2100, {20, 7, 300})));
  EXPECT_EQ(extract_box(context_, x, {{3, 2, 1}, {0, 2, 5}}).count(), 0);
  Array back = filled(context_, x.shape(), DType::kFloat32, 0.0);
  for (const Box& box : {Box{{0, 0, 0}, {40, 7, 113}}, Box{{0, 0, 113}, {40, 7, 187}}}) {
    copy_box(context_, extract_box(context_, x, box), Box::whole(box.extent), back, box);
  }
  EXPECT_EQ(values_of(back), values_of(x));
  const Array scalar = random_array(context_, {}, DType::kFloat32, 1);
  EXPECT_EQ(values_of(extract_box(context_, scalar, {{}, {}})), values_of(scalar));
}

TEST_P(Copy, PermutesAnyOrder) {
  for (const DType type : kTypes) {
    const Array x = random_array(context_, {3, 4, 5, 6}, type, 1);
    const std::vector<double> xs = values_of(x);
    std::array<int, 4> order = {0, 1, 2, 3};
    do {
      const Array y = permute(context_, x, order);
      const std::vector<double> ys = values_of(y);
      const Shape strides = x.shape().strides();
      std::size_t at = 0;
      for (std::int64_t i = 0; i < y.shape()[0]; ++i) {
        for (std::int64_t j = 0; j < y.shape()[1]; ++j) {
          for (std::int64_t k = 0; k < y.shape()[2]; ++k) {
            for (std::int64_t l = 0; l < y.shape()[3]; ++l, ++at) {
              const std::int64_t read = i * strides[order[0]] + j * strides[order[1]] +
                                        k * strides[order[2]] + l * strides[order[3]];
              ASSERT_EQ(ys[at], xs[static_cast<std::size_t>(read)]);
            }
          }
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST_P(Copy, LargeTransposesGoBack) {
  for (const DType type : kTypes) {
    const Array x = random_array(context_, {2, 131, 77, 3}, type, 1);
    const Array y = permute(context_, x, std::array{2, 0, 3, 1});
    EXPECT_EQ(y.shape(), (Shape{77, 2, 3, 131}));
    EXPECT_EQ(values_of(y)[static_cast<std::size_t>(((5 * 2 + 1) * 3 + 2) * 131 + 100)],
              values_of(x)[static_cast<std::size_t>(((1 * 131 + 100) * 77 + 5) * 3 + 2)]);
    EXPECT_EQ(values_of(permute(context_, y, std::array{1, 3, 0, 2})), values_of(x));
  }
  EXPECT_EQ(permute(context_, random_array(context_, {0, 4}, DType::kFloat32, 1), std::array{1, 0}).shape(),
            (Shape{4, 0}));
}

TEST_P(Copy, ErrorsSayWhatIsWrong) {
  const Array x = random_array(context_, {4, 5}, DType::kFloat32, 1);
  Array y = random_array(context_, {4, 5}, DType::kFloat32, 2);
  EXPECT_THROW(copy_box(context_, x, {{0, 0}, {4, 4}}, y, {{0, 2}, {4, 4}}), ShapeError);
  EXPECT_THROW(copy_box(context_, x, {{0, 0}, {4, 4}}, y, {{0, 0}, {4, 3}}), ShapeError);
  EXPECT_THROW(copy_box(context_, x, {{-1, 0}, {2, 2}}, y, {{0, 0}, {2, 2}}), ShapeError);
  EXPECT_THROW(extract_box(context_, x, {{0}, {4}}), ShapeError);
  Array wide = cast(context_, y, DType::kFloat64);
  EXPECT_THROW(add_box(context_, x, {{0, 0}, {2, 2}}, wide, {{0, 0}, {2, 2}}), ShapeError);
  EXPECT_THROW(permute(context_, x, std::array{0, 0}), ShapeError);
  EXPECT_THROW(permute(context_, x, std::array{0}), ShapeError);
  EXPECT_THROW(permute(context_, x, std::array{0, 2}), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Copy, testing::kernel_backends(), testing::backend_name);

}  // namespace
}  // namespace jigsaw
