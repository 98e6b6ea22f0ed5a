#include "nccl/sum_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/transfer.h"
#include "comm/comm_cases.h"
#include "kernels/cuda_context.h"
#include "nccl/sums.h"
#include "support/fake_cuda/fake_cuda.h"

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

/// Kernels add in it, of few ranks and of many: all summands in one array, or the own ones apart, in pieces
/// of three of which each begins five after the one before.
TEST(SumOrder, KernelsAddInIt) {
  testing::fake_cuda::machine().devices = 1;
  Context context = make_cuda_context(0);
  constexpr std::int64_t kCount = 7, kPiece = 3, kStride = 5;
  const auto on_device = [&](const std::vector<double>& numbers) {
    return constant(context, {std::ssize(numbers)}, DType::kFloat32, numbers);
  };
  for (const int ranks : {1, 2, 4, 5, 16, 17, 64, 65, 300}) {
    SCOPED_TRACE(ranks);
    const int owner = ranks / 2;
    std::vector<double> all, others, own(kStride * (kCount / kPiece) + kPiece, 0.0), whole, owners;
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::int64_t i = 0; i < kCount; ++i) {
        const auto value = static_cast<double>(rough_values<float>(ranks, i)[static_cast<std::size_t>(rank)]);
        all.push_back(value);
        if (rank != owner) others.push_back(value);
        if (rank == owner) own[static_cast<std::size_t>(i / kPiece * kStride + i % kPiece)] = value;
      }
    }
    for (std::int64_t i = 0; i < kCount; ++i) {
      whole.push_back(static_cast<double>(sum_of_parts(rough_values<float>(ranks, i))));
      owners.push_back(static_cast<double>(owners_sum(rough_values<float>(ranks, i), owner)));
    }
    Array sum(context, {kCount}, DType::kFloat32, Purpose::kWorkspace);
    nccl::DeviceOrder(context, order_for_all(ranks))
        .add(context, {on_device(all), {}, -1}, ReduceOp::kSum, sum);
    EXPECT_EQ(download_values(context, sum), whole);
    const nccl::DeviceOrder order(context, order_for(owner, ranks));
    const Array apart = on_device(own);
    order.add(context, {on_device(others), apart, owner, kPiece, kStride}, ReduceOp::kSum, sum);
    EXPECT_EQ(download_values(context, sum), owners);
    all[static_cast<std::size_t>(ranks / 3 * kCount)] = std::numeric_limits<double>::quiet_NaN();
    order.add(context, {on_device(all), {}, -1}, ReduceOp::kMax, sum);
    const std::vector<double> most = download_values(context, sum);
    EXPECT_TRUE(std::isnan(most[0]));
    for (std::int64_t i = 1; i < kCount; ++i) {
      const std::vector<float> values = rough_values<float>(ranks, i);
      EXPECT_EQ(most[static_cast<std::size_t>(i)], static_cast<double>(*std::ranges::max_element(values)));
    }
  }
}

}  // namespace sum_order_test
}  // namespace jigsaw
