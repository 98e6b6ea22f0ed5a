#include "comm/reduce.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/comm_cases.h"

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

template <typename T>
void expect_equal_bits_of_any_threads(DType dtype) {
#ifdef __SANITIZE_THREAD__
  constexpr int kMostThreads = 1;  // it does not see that threads of OpenMP have ended
#else
  constexpr int kMostThreads = 5;
#endif
  constexpr std::int64_t kCount = (1 << 17) + 12345;
  std::vector<std::vector<T>> values;
  std::vector<const std::byte*> pieces;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<T>& own = values.emplace_back();
    for (std::int64_t i = 0; i < kCount; ++i) own.push_back(static_cast<T>(rough_value(rank, i)));
  }
  for (const auto& own : values) pieces.push_back(reinterpret_cast<const std::byte*>(own.data()));
  std::vector<T> expected;
  for (std::size_t i = 0; i < kCount; ++i)
    expected.push_back(values[0][i] + values[1][i] + values[2][i] + values[3][i]);
  for (int threads = 1; threads <= kMostThreads; ++threads) {
    std::vector<T> sums(kCount, -1);
    reduce_in_order(pieces, kCount, dtype, ReduceOp::kSum, reinterpret_cast<std::byte*>(sums.data()),
                    threads);
    EXPECT_TRUE(same_bits(sums, expected)) << threads;
  }
}

TEST(Reduce, AddsTheSameOnAnyNumberOfThreads) {
  expect_equal_bits_of_any_threads<float>(DType::kFloat32);
  expect_equal_bits_of_any_threads<double>(DType::kFloat64);
}

TEST(Reduce, CutsEvenlyWithTheRemainderFirst) {
  EXPECT_EQ(even_counts(10, 4), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(even_counts(1, 3), (std::vector<std::int64_t>{1, 0, 0}));
}

}  // namespace reduce_test
}  // namespace jigsaw
