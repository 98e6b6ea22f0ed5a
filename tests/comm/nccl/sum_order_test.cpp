#include "nccl/sum_order.h"

#include <gtest/gtest.h>

#include "comm/comm_cases.h"

namespace jigsaw {
namespace sum_order_test {

/// Follows an order as sums within sums.
float added(const SumOrder& order, std::size_t& next, int depth, const std::vector<float>& values) {
  if (depth == 0) return values[static_cast<std::size_t>(order.summands[next].rank)];
  float sum = added(order, next, depth - 1, values);
  while (order.summands[next].ends < depth) {
    ++next;
    sum += added(order, next, depth - 1, values);
  }
  return sum;
}
float added(const SumOrder& order, const std::vector<float>& values) {
  std::size_t next = 0;
  const float sum = added(order, next, order.depth, values);
  EXPECT_EQ(next + 1, order.summands.size());
  return sum;
}

/// Against what the tests of all communicators take for right.
TEST(SumOrder, GivesTheBitsOfSumsByLevels) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 17, 18, 32, 65, 100}) {
    for (std::int64_t i = 0; i < 20; ++i) {
      const std::vector<float> values = rough_values<float>(ranks, i);
      EXPECT_EQ(added(order_for_all(ranks), values), sum_of_parts(values)) << ranks;
      for (int owner = 0; owner < ranks; owner += 1 + ranks / 9)
        EXPECT_EQ(added(order_for(owner, ranks), values), owners_sum(values, owner))
            << owner << " of " << ranks;
    }
  }
}

TEST(SumOrder, TakesEachRankOnce) {
  for (const int ranks : {1, 6, 18, 1024}) {
    for (const SumOrder& order : {order_for(ranks / 2, ranks), order_for_all(ranks)}) {
      std::vector<int> taken(static_cast<std::size_t>(ranks), 0);
      for (const Summand& summand : order.summands) ++taken[static_cast<std::size_t>(summand.rank)];
      EXPECT_EQ(taken, std::vector<int>(static_cast<std::size_t>(ranks), 1));
      EXPECT_LE(order.depth, SumOrder::kMostDepth);
    }
  }
}

}  // namespace sum_order_test
}  // namespace jigsaw
