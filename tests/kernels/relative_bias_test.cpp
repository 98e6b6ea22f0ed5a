#include "kernels/relative_bias.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace relative_bias_test {

using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

class RelativeBias : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

/// Windows of 2 × 3 points by hand: the row of the table for query (y, x) and key (v, u).
std::int64_t row_of(std::int64_t query, std::int64_t key) {
  const std::int64_t down = query / 3 - key / 3, right = query % 3 - key % 3;
  return (down + 1) * 5 + right + 2;
}

TEST_P(RelativeBias, IsTheTablesRowOfTheWayFromKeyToQuery) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    const Array table = random_array(context_, {15, 4}, type, 1);
    const std::vector<double> rows = values_of(table),
                              bias = values_of(relative_bias(context_, table, {2, 3}));
    const DType sums = type == DType::kFloat64 ? type : DType::kFloat32;
    const Array dbias = random_array(context_, {4, 6, 6}, sums, 2);
    const std::vector<double> slopes = values_of(dbias);
    std::vector<double> wanted(bias.size()), dtable(rows.size(), 0.0);
    for (std::int64_t head = 0; head < 4; ++head) {
      for (std::int64_t query = 0; query < 6; ++query) {
        for (std::int64_t key = 0; key < 6; ++key) {
          const auto pair = static_cast<std::size_t>((head * 6 + query) * 6 + key),
                     row = static_cast<std::size_t>(row_of(query, key) * 4 + head);
          wanted[pair] = rows[row];
          dtable[row] += slopes[pair];
        }
      }
    }
    EXPECT_EQ(bias, wanted);
    expect_near(values_of(relative_bias_backward(context_, dbias, {2, 3})), dtable, tolerance(sums, 6, 6));
  }
  EXPECT_THROW(relative_bias(context_, random_array(context_, {14, 4}, DType::kFloat32, 1), {2, 3}),
               ShapeError);
}

/// A space of 4 × 6, wrapped by one row and two columns, of which the right half is here.
TEST_P(RelativeBias, WrappedWindowsDoNotSeeAcrossTheEnds) {
  const WrappedWindows windows{{2, 3}, {1, 2}, {4, 6}, {{0, 3}, {4, 3}}};
  ASSERT_EQ(windows.windows(), 2);
  const auto side = [](std::int64_t window, std::int64_t point) {
    const std::int64_t row = window * 2 + point / 3, column = 3 + point % 3;
    return std::pair(row >= 3, column >= 4);
  };
  std::vector<double> wanted;
  for (std::int64_t window = 0; window < 2; ++window)
    for (std::int64_t query = 0; query < 6; ++query)
      for (std::int64_t key = 0; key < 6; ++key) {
        const bool alike = side(window, query) == side(window, key);
        wanted.push_back(alike ? 0.0 : -std::numeric_limits<double>::infinity());
      }
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    const Array mask = wrap_mask(context_, windows, type);
    EXPECT_EQ(mask.shape(), (Shape{2, 6, 6}));
    EXPECT_EQ(values_of(mask), wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RelativeBias, testing::kernel_backends(), testing::backend_name);

}  // namespace relative_bias_test
}  // namespace jigsaw
