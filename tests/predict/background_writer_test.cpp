#include "predict/background_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace jigsaw {
namespace {

TEST(BackgroundWriter, RunsJobsInOrderAndFinishes) {
  std::vector<int> done;
  BackgroundWriter writer;
  for (int i = 0; i < 50; ++i) writer.push([&done, i] { done.push_back(i); });
  writer.finish();
  ASSERT_EQ(done.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST(BackgroundWriter, TellsWhatAJobThrewAndRunsNoMore) {
  std::atomic<int> after = 0;
  BackgroundWriter writer;
  writer.push([] { throw std::runtime_error("disk"); });
  EXPECT_THROW(writer.finish(), std::runtime_error);
  for (int i = 0; i < 10; ++i) writer.push([&] { ++after; });
  EXPECT_THROW(writer.check(), std::runtime_error);
  EXPECT_THROW(writer.finish(), std::runtime_error);
  EXPECT_EQ(after, 0);
}

TEST(BackgroundWriter, HoldsAFewJobsAtMost) {
  std::mutex gate;
  std::unique_lock closed(gate);
  std::atomic<int> pushed = 0;
  BackgroundWriter writer;
  std::thread pusher([&] {
    for (int i = 0; i < 10; ++i) {
      writer.push([&gate] { const std::lock_guard wait(gate); });
      ++pushed;
    }
  });
  // One job is held at the gate and kDepth wait: no more can have been pushed, however long this takes.
  while (pushed < static_cast<int>(BackgroundWriter::kDepth)) std::this_thread::yield();
  EXPECT_LE(pushed, static_cast<int>(BackgroundWriter::kDepth) + 1);
  closed.unlock();
  pusher.join();
  writer.finish();
  EXPECT_EQ(pushed, 10);
}

}  // namespace
}  // namespace jigsaw
