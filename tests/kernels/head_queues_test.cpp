#include "kernels/cpu/head_queues.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "base/text.h"

namespace jigsaw::cpu {
namespace {

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
        for (const bool fixed : {false, true}) {
          SCOPED_TRACE(
              concat(heads, " heads of ", blocks, " blocks, ", threads, " threads", fixed ? ", fixed" : ""));
          HeadQueues queues(heads, blocks, threads, fixed);
          std::map<std::int64_t, std::int64_t> times;
          std::set<std::tuple<std::int64_t, std::int64_t>> parts;
          for (const HeadQueues::Item& item : taken_by(queues, threads)) {
            for (std::int64_t b = item.begin; b < item.end; ++b) ++times[item.head * blocks + b];
            if (item.cut_head < 0) {
              EXPECT_EQ(item.end - item.begin, blocks);
              continue;
            }
            EXPECT_FALSE(fixed);
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

TEST(HeadQueues, TheLastItemIsShort) {
  for (const int threads : {2, 4, 12}) {
    HeadQueues queues(12, 32, threads, false);
    EXPECT_EQ(queues.cut_heads(), threads);
    for (const HeadQueues::Item& item : taken_by(queues, threads)) {
      if (item.cut_head < 0) continue;
      EXPECT_LE(item.end - item.begin, 16);
      if (item.part == queues.parts() - 1) {
        EXPECT_EQ(item.end - item.begin, 2);
      }
    }
  }
}

/// Fewer heads than threads: all have work from the start.
TEST(HeadQueues, ThreadsShareAHead) {
  HeadQueues queues(2, 40, 8, false);
  HeadQueues::Item item;
  for (int thread = 0; thread < 8; ++thread) {
    ASSERT_TRUE(queues.take(thread, item));
    EXPECT_EQ(item.head, thread % 2);
    EXPECT_EQ(item.end - item.begin, 5);
  }
}

}  // namespace
}  // namespace jigsaw::cpu
