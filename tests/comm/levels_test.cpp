// The messages of collectives by levels, for every rank of many sizes, against what they must bring about.
#include "comm/levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "array/array.h"

namespace jigsaw {
namespace levels_test {

std::vector<int> sizes() {
  std::vector<int> result = {100, 255, 256, 257, 1000};
  for (int n = 1; n <= 40; ++n) result.push_back(n);
  return result;
}

/// ⌈log₄ n⌉
int log4(int n) {
  int levels = 0;
  for (int reach = 1; reach < n; reach *= 4) ++levels;
  return levels;
}

TEST(Levels, AreLogarithmicallyManyAndSourcesSendToTheirCounterparts) {
  for (const int n : sizes()) {
    std::vector<std::vector<Level>> all;
    for (int rank = 0; rank < n; ++rank) all.push_back(levels(n, rank));
    for (int rank = 0; rank < n; ++rank) {
      ASSERT_LE(std::ssize(all[static_cast<std::size_t>(rank)]), log4(n)) << n;
      for (std::size_t l = 0; l < all[static_cast<std::size_t>(rank)].size(); ++l) {
        const Level& level = all[static_cast<std::size_t>(rank)][l];
        ASSERT_LE(level.parts(), Level::kParts);
        for (const int source : level.sources) {
          const Level& theirs = all[static_cast<std::size_t>(source)][l];
          ASSERT_EQ(theirs.begin, level.begin);
          ASSERT_EQ(theirs.counterparts[static_cast<std::size_t>(level.own)], rank) << n << " " << source;
        }
      }
    }
    const auto sent = [&](const std::vector<Level>& each) {
      std::int64_t messages = 0;
      for (const Level& level : each) messages += level.parts() - 1;
      return messages;
    };
    std::int64_t most = 0;
    for (const auto& each : all) most = std::max(most, sent(each));
    EXPECT_EQ(most, most_messages(Collective::kReduceScatter, n, 0)) << n;
    EXPECT_LE(most, 3 * log4(n)) << n;
  }
}

/// Follows which ranks' summands each rank has: all of them, once, in the end.
TEST(Levels, EveryOwnerGetsEverySummandOnce) {
  for (const int n : sizes()) {
    if (n > 100) continue;
    for (int owner = 0; owner < n; ++owner) {
      std::vector<std::vector<int>> has;
      for (int rank = 0; rank < n; ++rank) has.push_back({rank});
      for (const Level& level : levels(n, owner)) {
        const auto own = static_cast<std::size_t>(level.own);
        std::vector<std::vector<int>> next = has;
        for (int rank = level.begin[own]; rank < level.begin[own + 1]; ++rank) {
          std::vector<int>& sum = next[static_cast<std::size_t>(rank)];
          sum.clear();
          for (const int from : summands(level, rank)) {
            const auto& part = has[static_cast<std::size_t>(from)];
            sum.insert(sum.end(), part.begin(), part.end());
          }
        }
        has = next;
      }
      std::vector<int> all = has[static_cast<std::size_t>(owner)];
      std::ranges::sort(all);
      ASSERT_EQ(std::ssize(all), n);
      for (int rank = 0; rank < n; ++rank) ASSERT_EQ(all[static_cast<std::size_t>(rank)], rank);
    }
  }
}

TEST(Levels, ATreeReachesEveryRankOnceInLogarithmicallyManyMessages) {
  for (const int n : sizes()) {
    std::set<int> reached = {0};
    std::vector<int> depth(static_cast<std::size_t>(n), 0);
    for (int rank = 0; rank < n; ++rank) {
      const Tree branch = tree(n, rank);
      ASSERT_EQ(branch.parent == -1, rank == 0);
      ASSERT_LE(std::ssize(branch.branches), 3 * log4(n));
      int next = rank + 1;  // subtrees lie one after the other
      for (const auto& [child, end] : branch.branches) {
        ASSERT_EQ(child, next);
        next = end;
        ASSERT_TRUE(reached.insert(child).second);
        ASSERT_EQ(tree(n, child).parent, rank);
        ASSERT_EQ(tree(n, child).end, end);
        depth[static_cast<std::size_t>(child)] = depth[static_cast<std::size_t>(rank)] + 1;
      }
      ASSERT_EQ(next, branch.end);
      ASSERT_LE(depth[static_cast<std::size_t>(rank)], log4(n));
    }
    ASSERT_EQ(std::ssize(reached), n);
  }
}

/// Follows every block of an all_to_all through the levels: in the end each rank has one of every rank, and
/// has had the rows that it expected.
TEST(Levels, ForwardedBlocksArrive) {
  using Block = std::pair<int, int>;  // from, to
  for (const int n : sizes()) {
    if (n > 100) continue;
    std::vector<std::vector<Level>> all;
    std::vector<std::vector<Block>> has(static_cast<std::size_t>(n));
    for (int rank = 0; rank < n; ++rank) {
      all.push_back(levels(n, rank));
      for (int to = 0; to < n; ++to) has[static_cast<std::size_t>(rank)].emplace_back(rank, to);
    }
    for (std::size_t l = 0; std::ranges::any_of(all, [l](const auto& own) { return l < own.size(); }); ++l) {
      std::vector<std::vector<Block>> next(static_cast<std::size_t>(n));
      for (int rank = 0; rank < n; ++rank) {
        const auto own = static_cast<std::size_t>(rank);
        for (const Block& block : has[own]) {
          int to = rank;
          for (std::size_t part = 0; l < all[own].size() && part + 1 < all[own][l].begin.size(); ++part) {
            if (block.second >= all[own][l].begin[part] && block.second < all[own][l].begin[part + 1])
              to = all[own][l].counterparts[part];
          }
          next[static_cast<std::size_t>(to)].push_back(block);
        }
      }
      has = next;
      for (int rank = 0; rank < n; ++rank) {
        const auto own = static_cast<std::size_t>(rank);
        if (l >= all[own].size()) continue;
        std::multiset<int> expected, found;
        const auto brought = forwarded_from(all[own], n, rank);
        for (const std::vector<int>& part : brought[l]) expected.insert(part.begin(), part.end());
        for (const Block& block : has[own]) {
          if (block.second == rank) found.insert(block.first);
        }
        ASSERT_EQ(found, expected) << n << " " << rank << " " << l;
      }
    }
    for (int rank = 0; rank < n; ++rank) {
      std::vector<Block>& own = has[static_cast<std::size_t>(rank)];
      std::ranges::sort(own);
      ASSERT_EQ(std::ssize(own), n);
      for (int from = 0; from < n; ++from)
        ASSERT_EQ(own[static_cast<std::size_t>(from)], Block(from, rank)) << n;
    }
  }
}

TEST(Levels, SmallBlocksForManyAreForwarded) {
  const Forwarding small = forwarding(1024, 1023, 64);
  EXPECT_TRUE(small.worth_it);
  EXPECT_EQ(small.messages, 15);
  EXPECT_EQ(small.bytes, 64.0 * 1024 * 5 * 3 / 4);
  EXPECT_FALSE(forwarding(1024, 1023, 1e6).worth_it);  // large ones go to their receivers
  EXPECT_FALSE(forwarding(1024, 8, 64).worth_it);      // and so does what goes to a few
  EXPECT_FALSE(forwarding(4, 3, 64).worth_it);
}

/// A message to each rank of a thousand would be this many times as many.
TEST(Levels, AThousandRanksSendAFewMessages) {
  EXPECT_EQ(most_messages(Collective::kReduceScatter, 4, 1e9), 3);
  EXPECT_EQ(most_messages(Collective::kReduceScatter, 1024, 1e9), 15);
  EXPECT_EQ(most_messages(Collective::kAllReduce, 1024, 1e9), 30);
  EXPECT_EQ(most_messages(Collective::kAllReduce, 1024, 4096), 15);
  EXPECT_EQ(most_messages(Collective::kAllGather, 1000, 1e9), 15);
  EXPECT_EQ(most_messages(Collective::kAllToAll, 1024, 1e9), 1023);
}

}  // namespace levels_test
}  // namespace jigsaw
