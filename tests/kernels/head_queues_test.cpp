#include "kernels/cpu/head_queues.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"

namespace jigsaw::cpu {
namespace head_queues_test {

/// The threads take in turn, in an order that is not theirs, until none gets more.
std::vector<HeadQueues::Item> taken_by(HeadQueues& queues, int threads) {
  std::vector<HeadQueues::Item> all;
  HeadQueues::Item item;
  for (int idle = 0, turn = 0; idle < threads; ++turn) {
    if (queues.take(turn * 5 % threads, item)) {
      all.push_back(item);
      idle = 0;
    } else {
      ++idle;
    }
  }
  return all;
}

TEST(HeadQueues, EveryBlockIsTakenOnce) {
  for (const std::int64_t heads : {1, 2, 3, 7, 12, 100}) {
    for (const std::int64_t blocks : {1, 2, 3, 22, 43}) {
      for (const int threads : {1, 2, 3, 8, 64}) {
        for (const auto how : {HeadQueues::Threads::kHelp, HeadQueues::Threads::kKeep}) {
          SCOPED_TRACE(concat(heads, " heads of ", blocks, " blocks, ", threads, " threads"));
          HeadQueues queues(heads, blocks, threads, how);
          std::map<std::int64_t, std::int64_t> times;
          std::set<std::tuple<std::int64_t, std::int64_t>> parts;
          for (const HeadQueues::Item& item : taken_by(queues, threads)) {
            for (std::int64_t b = item.begin; b < item.end; ++b) ++times[item.head * blocks + b];
            if (item.cut_head < 0) {
              EXPECT_EQ(item.end - item.begin, blocks);
              continue;
            }
            EXPECT_EQ(queues.head_of_cut(item.cut_head), item.head);
            EXPECT_TRUE(parts.emplace(item.cut_head, item.part).second);
          }
          EXPECT_EQ(std::ssize(times), heads * blocks);
          for (const auto& [block, count] : times) EXPECT_EQ(count, 1);
          // Each part has summands of its own, all of which are written.
          EXPECT_EQ(std::ssize(parts), queues.cut_heads() * (queues.cut_heads() > 0 ? queues.parts() : 0));
        }
      }
    }
  }
}

TEST(HeadQueues, TheLastPartIsShort) {
  const std::map<int, std::int64_t> shortest{{2, 2}, {4, 4}, {12, 16}};  // more heads to a thread, more parts
  for (const auto& [threads, blocks] : shortest) {
    HeadQueues queues(12, 32, threads, HeadQueues::Threads::kHelp);
    EXPECT_EQ(queues.cut_heads(), threads);
    EXPECT_LE(queues.parts(), 1 + 12 / threads);
    for (const HeadQueues::Item& item : taken_by(queues, threads)) {
      if (item.cut_head >= 0 && item.part == queues.parts() - 1) {
        EXPECT_EQ(item.end - item.begin, blocks);
      }
    }
  }
}

/// Heads that do not divide among the threads, and fewer heads than threads.
TEST(HeadQueues, ThreadsShareEvenly) {
  for (const auto& [heads, threads] : {std::pair{1, 2}, {2, 3}, {3, 2}, {2, 8}, {12, 8}, {7, 4}}) {
    HeadQueues queues(heads, 40, threads, HeadQueues::Threads::kKeep);
    for (int thread = 0; thread < threads; ++thread) {
      std::int64_t blocks = 0;
      for (HeadQueues::Item item; queues.take(thread, item);) blocks += item.end - item.begin;
      EXPECT_NEAR(static_cast<double>(blocks), 40.0 * heads / threads, 1) << heads << ", " << threads;
    }
  }
}

TEST(HeadQueues, ThreadsThatHelpTakeAll) {
  HeadQueues queues(7, 3, 3, HeadQueues::Threads::kHelp);
  std::int64_t blocks = 0;
  for (HeadQueues::Item item; queues.take(1, item);) blocks += item.end - item.begin;
  EXPECT_EQ(blocks, 7 * 3);
}

TEST(HeadQueues, NoItemIsTakenByTwoThreads) {
  constexpr int kThreads = 4;
  constexpr std::int64_t kHeads = 40000;
  HeadQueues queues(kHeads, 4, kThreads, HeadQueues::Threads::kHelp);
  std::vector<std::atomic<int>> times(kHeads * 4);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&queues, &times] {  // all from the first queue
        for (HeadQueues::Item item; queues.take(0, item);) {
          for (std::int64_t b = item.begin; b < item.end; ++b)
            ++times[static_cast<std::size_t>(item.head * 4 + b)];
        }
      });
    }
  }
  for (const std::atomic<int>& count : times) ASSERT_EQ(count, 1);
}

}  // namespace head_queues_test
}  // namespace jigsaw::cpu
