#include "comm/reduce.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace jigsaw {
namespace reduce_test {

TEST(Reduce, GoesFromLeftToRight) {
  // (1 + 1e8) − 1e8 is 0 in float32, 1 + (1e8 − 1e8) is 1.
  const float a = 1;
  const float b = 1e8F;
  const float c = -1e8F;
  const std::vector<const std::byte*> pieces = {reinterpret_cast<const std::byte*>(&a),
                                                reinterpret_cast<const std::byte*>(&b),
                                                reinterpret_cast<const std::byte*>(&c)};
  float sum = -1;
  reduce_in_order(pieces, 1, DType::kFloat32, ReduceOp::kSum, reinterpret_cast<std::byte*>(&sum));
  EXPECT_EQ(sum, 0);
  EXPECT_THROW(
      reduce_in_order(pieces, 1, DType::kBfloat16, ReduceOp::kSum, reinterpret_cast<std::byte*>(&sum)),
      CommError);
}

TEST(Reduce, CutsEvenlyWithTheRemainderFirst) {
  EXPECT_EQ(even_counts(10, 4), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(even_counts(1, 3), (std::vector<std::int64_t>{1, 0, 0}));
}

}  // namespace reduce_test
}  // namespace jigsaw
