// What tries a machine's collectives finds them right, and wrong ones wrong, over the fake NCCL.
#include "parallel/collective_check.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "comm/nccl/ranks_nccl.h"
#include "comm/thread/run_ranks.h"
#include "support/fake_nccl/fake_nccl.h"

namespace jigsaw {
namespace {

const std::set<std::string> kKinds = {"all_gather", "reduce_scatter", "all_reduce",
                                      "all_to_all", "broadcast",      "exchange"};

std::string kind_in(const std::string& failure) {
  return failure.substr(0, failure.find(' '));
}

TEST(CollectiveCheck, FindsNothingWhereAllIsRight) {
  for (const int ranks : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(ranks);
    run_ranks(ranks, [](Communicator& world) { EXPECT_EQ(wrong_collective(world), ""); });
    run_nccl_ranks(ranks, {.poll_seconds = 0.02},
                   [](Communicator& world) { EXPECT_EQ(wrong_collective(world), ""); });
    EXPECT_EQ(testing::fake_nccl::take_mistakes(), std::vector<std::string>());
  }
}

/// Each number that rank 1 gets from NCCL once becomes another: every kind is found wrong, there and, where
/// it passes its sums on, elsewhere.
TEST(CollectiveCheck, NamesWhatIsWrong) {
  constexpr int kRanks = 3;
  std::set<std::string> found;
  bool all_right = false;
  for (int after = 0; !all_right; ++after) {
    ASSERT_LT(after, 100);
    std::mutex mutex;
    std::vector<std::string> said(kRanks);
    run_nccl_ranks(kRanks, {.poll_seconds = 0.02}, [&](Communicator& world) {
      if (world.rank() == 0) testing::fake_nccl::spoil(1, after);
      world.barrier();
      const std::string failure = wrong_collective(world);
      const std::lock_guard lock(mutex);
      said[static_cast<std::size_t>(world.rank())] = failure;
    });
    all_right = said == std::vector<std::string>(kRanks);
    if (all_right) break;
    for (const std::string& each : said) {
      if (each.empty()) continue;
      found.insert(kind_in(each));
      EXPECT_NE(each.find(" along world (3 ranks) gives "), std::string::npos) << each;
      EXPECT_NE(each.find(" in place of "), std::string::npos) << each;
    }
    EXPECT_NE(said[1], "") << after;
  }
  EXPECT_EQ(found, kKinds);
}

/// Of every kind and size that there is room and time for, what a rank sends over the time.
TEST(CollectiveCheck, MeasuresEachKind) {
  run_nccl_ranks(2, {.poll_seconds = 0.02}, [](Communicator& world) {
    Mesh mesh(world, 1, {1, 1}, 2);
    const Rank rank{world.context(), mesh};
    constexpr std::int64_t kSmallest = 1 << 16;
    const auto rates = collective_rates(rank, mesh.tensor(), kSmallest, 1e6);
    std::set<std::string> measured;
    for (const CollectiveRate& rate : rates) {
      EXPECT_TRUE(measured.insert(name(rate.kind)).second);
      EXPECT_EQ(rate.bytes, kSmallest);
      EXPECT_GT(rate.bytes_per_second, 0);
    }
    EXPECT_EQ(measured.size(), kKinds.size() - 1);  // all but the broadcast
    // Without time the smallest alone.
    for (const CollectiveRate& rate : collective_rates(rank, mesh.tensor(), 1 << 30, 0))
      EXPECT_EQ(rate.bytes, kSmallest);
  });
}

}  // namespace
}  // namespace jigsaw
