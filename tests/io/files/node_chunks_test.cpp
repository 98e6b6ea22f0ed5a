#include "files/node_chunks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "files/chunk_cache.h"
#include "support/child_process.h"

namespace jigsaw {
namespace node_chunks_test {

using namespace std::chrono_literals;

constexpr std::size_t kBytes = 3 * 4096 + 5;
constexpr auto kLong = std::chrono::milliseconds(120'000);

std::byte content(std::int64_t chunk, std::size_t i) {
  return static_cast<std::byte>((static_cast<std::size_t>(chunk) * 31 + i) % 251);
}

void fill(std::int64_t chunk, std::span<std::byte> memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = content(chunk, i);
}

bool holds(const std::span<const std::byte>& bytes, std::int64_t chunk) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != content(chunk, i)) return false;
  return bytes.size() == kBytes;
}

/// Skipped where the system lets processes have no memory together: without /proc, where files may not be
/// long.
class NodeChunksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto node = NodeChunks::make(std::size_t{128} << 20);
    if (!node || !NodeChunks::open(node->address())) GTEST_SKIP() << "no memory in common here";
  }
};

std::shared_ptr<NodeChunks> with_room(std::size_t chunks, std::chrono::milliseconds patience = kLong) {
  auto node = NodeChunks::make(std::size_t{64} << 20, patience);
  if (node) node->raise_room(chunks * 4 * 4096);
  return node;
}

/// Whether the chunk could be had, and was right.
bool take(NodeChunks& node, std::int64_t chunk, std::atomic<int>* made = nullptr) {
  const auto bytes = node.get({7, 1, chunk}, kBytes, true, [&](std::span<std::byte> memory) {
    if (made != nullptr) ++*made;
    fill(chunk, memory);
  });
  const bool right = bytes && holds(*bytes, chunk);
  EXPECT_EQ(right, bytes != nullptr) << chunk;
  return right;
}

/// Numbers that processes have in common.
class InAll {
 public:
  InAll()
      : memory_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        value(*new (memory_) std::atomic<int>(0)) {}
  ~InAll() { ::munmap(memory_, 4096); }
  InAll(const InAll&) = delete;
  InAll& operator=(const InAll&) = delete;

 private:
  void* memory_;

 public:
  std::atomic<int>& value;
};

TEST_F(NodeChunksTest, ProcessesMakeEachChunkOnce) {
  const auto node = with_room(200);
  const InAll made, reached;
  const NodeChunks::Address address = node->address();
  constexpr int kProcesses = 4, kChunks = 200;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(testing::in_child([&] {
      const auto opened = NodeChunks::open(address, kLong);
      ++reached.value;
      while (reached.value < kProcesses) std::this_thread::yield();
      if (!opened) return false;
      bool good = true;
      for (int i = 0; i < kChunks; ++i)
        good = take(*opened, (i + p * kChunks / kProcesses) % kChunks, &made.value) && good;
      return good;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(testing::exit_status(child), 0);
  EXPECT_EQ(made.value, kChunks);
  // They are here as well, without being made.
  const auto last = node->find({7, 1, kChunks - 1}, kBytes);
  ASSERT_TRUE(last);
  EXPECT_TRUE(holds(*last, kChunks - 1));
  EXPECT_EQ(node->find({7, 1, kChunks - 1}, kBytes - 1), nullptr);
  EXPECT_EQ(node->find({7, 1, kChunks}, kBytes), nullptr);
  EXPECT_EQ(node->find({7, 2, 1}, kBytes), nullptr);
  EXPECT_EQ(node->find({8, 1, 1}, kBytes), nullptr);
}

TEST_F(NodeChunksTest, TheOldestMakesRoom) {
  const auto node = with_room(10);
  std::atomic<int> made = 0;
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(take(*node, i, &made));
  for (int i = 0; i < 15; ++i) EXPECT_EQ(node->find({7, 1, i}, kBytes), nullptr) << i;
  for (int i = 15; i < 25; ++i) EXPECT_TRUE(take(*node, i, &made));
  EXPECT_EQ(made, 25);
  EXPECT_TRUE(take(*node, 0, &made));
  EXPECT_EQ(made, 26);
  EXPECT_EQ(node->find({7, 1, 15}, kBytes), nullptr);
}

TEST_F(NodeChunksTest, MoreChunksThanItHasNumbersFor) {
  const auto node = NodeChunks::make(std::size_t{1} << 31, kLong);
  node->raise_room(std::size_t{1} << 31);
  constexpr int kChunks = 300'000;
  for (int i = 0; i < kChunks; ++i) {
    const auto bytes = node->get({7, 1, i}, 8, true, [&](std::span<std::byte> memory) { fill(i, memory); });
    ASSERT_TRUE(bytes && bytes->size() == 8 && (*bytes)[3] == content(i, 3)) << i;
  }
  EXPECT_NE(node->find({7, 1, kChunks - 1}, 8), nullptr);
  EXPECT_NE(node->find({7, 1, kChunks - 100'000}, 8), nullptr);
  EXPECT_EQ(node->find({7, 1, 1}, 8), nullptr);
}

TEST_F(NodeChunksTest, WhatIsReadStays) {
  const auto node = with_room(10);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(take(*node, i));
  const auto held = node->find({7, 1, 2}, kBytes);
  ASSERT_TRUE(held);
  int had = 0;
  for (int i = 100; i < 200; ++i) had += take(*node, i) ? 1 : 0;
  EXPECT_TRUE(holds(*held, 2));
  EXPECT_LT(had, 100);
  EXPECT_GE(had, 6);
}

TEST_F(NodeChunksTest, ChunksOfAnyLengthDoNotOverlap) {
  const auto node = with_room(10);
  std::mt19937 random(5);
  std::vector<std::pair<std::int64_t, std::shared_ptr<const std::span<const std::byte>>>> held;
  for (int i = 0; i < 3000; ++i) {
    if (i == 1500) node->raise_room(40 * 4 * 4096);
    const std::int64_t chunk = static_cast<std::int64_t>(random() % 60);
    const std::size_t bytes = 1 + static_cast<std::size_t>(chunk * 1009);
    auto got =
        node->get({7, 1, chunk}, bytes, true, [&](std::span<std::byte> memory) { fill(chunk, memory); });
    if (got) {
      EXPECT_EQ(got->size(), bytes);
      held.emplace_back(chunk, std::move(got));
    }
    if (held.size() > 3 || !got) {
      for (const auto& [of, all] : held)
        for (std::size_t b = 0; b < all->size(); ++b) ASSERT_EQ((*all)[b], content(of, b)) << of;
      held.clear();
    }
  }
}

TEST_F(NodeChunksTest, ThreadsToo) {
  const auto node = with_room(50);
  std::atomic<int> made = 0, had = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) had += take(*node, i / 10, &made) ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 50);
  EXPECT_EQ(had, 2000);
}

TEST_F(NodeChunksTest, WhatFailsIsMadeAgain) {
  const auto node = with_room(10);
  const auto fail = [](std::span<std::byte>) { throw std::runtime_error("no"); };
  EXPECT_THROW(node->get({7, 1, 3}, kBytes, true, fail), std::runtime_error);
  EXPECT_EQ(node->find({7, 1, 3}, kBytes), nullptr);
  EXPECT_TRUE(take(*node, 3));
  for (int i = 10; i < 40; ++i) EXPECT_TRUE(take(*node, i));
}

TEST_F(NodeChunksTest, WhoeverWaitsForAProcessThatDiedMakesItForItself) {
  const auto node = with_room(10, 50ms);
  const pid_t child = testing::in_child([&] {
    node->get({7, 1, 3}, kBytes, true, [](std::span<std::byte>) { ::raise(SIGKILL); });
    return false;
  });
  EXPECT_TRUE(WIFSIGNALED(testing::exit_status(child)));
  // Who does not want to wait is told at once; one waits as long as it does, and then nobody any more.
  EXPECT_EQ(node->get({7, 1, 3}, kBytes, false, [](std::span<std::byte>) { FAIL(); }), nullptr);
  EXPECT_FALSE(take(*node, 3));
  EXPECT_TRUE(take(*node, 3));
  // What the dead process began is never overwritten; the rest is of use until it comes to that.
  int had = 0;
  for (int i = 10; i < 40; ++i) had += take(*node, i) ? 1 : 0;
  EXPECT_GE(had, 7);
  EXPECT_LT(had, 30);
}

TEST_F(NodeChunksTest, ProcessesThatDieAnywhereHangNobody) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    const auto node = with_room(20, 1ms);
    const pid_t child = testing::in_child([&] {
      for (std::int64_t i = 0;; ++i) take(*node, i % 40);
      return false;
    });
    for (int i = 0; i < 20; ++i) take(*node, i);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(testing::exit_status(child)));
    for (int i = 0; i < 60; ++i) take(*node, i);  // right, or not had
  }
}

/// Nothing is to be had any more where a process died while it held the lock; what others read stays.
TEST_F(NodeChunksTest, ProcessesThatDieWithTheLockLeaveWhatIsRead) {
  std::mt19937 random(3);
  int rounds = 0;
  for (bool damaged = false; !damaged; ++rounds) {
    ASSERT_LT(rounds, 1000) << "each process died without the lock, or its death was not noticed";
    const auto node = with_room(20);
    EXPECT_TRUE(take(*node, 1));
    const auto held = node->find({7, 1, 1}, kBytes);
    const InAll running;
    const pid_t child = testing::in_child([&] {
      running.value = 1;
      while (true) node->raise_room(1);  // under the lock half of the time
      return false;
    });
    while (running.value == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(testing::exit_status(child)));
    damaged = !take(*node, 2);
    if (!damaged) continue;
    EXPECT_EQ(node->find({7, 1, 1}, kBytes), nullptr);
    EXPECT_FALSE(take(*node, 3));
    EXPECT_TRUE(holds(*held, 1));
  }
  std::printf("damaged in round %d\n", rounds);
}

TEST_F(NodeChunksTest, WhatIsSomethingElseIsNotOpened) {
  const auto node = with_room(10);
  NodeChunks::Address address = node->address();
  EXPECT_NE(NodeChunks::open(address), nullptr);
  ++address.token;
  EXPECT_EQ(NodeChunks::open(address), nullptr);
  address = node->address();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  address.descriptor = ends[0];
  EXPECT_EQ(NodeChunks::open(address), nullptr);
  address.descriptor = 1'000'000;
  EXPECT_EQ(NodeChunks::open(address), nullptr);
  std::FILE* other = std::tmpfile();
  address.descriptor = ::fileno(other);
  EXPECT_EQ(NodeChunks::open(address), nullptr);
  ASSERT_EQ(::ftruncate(::fileno(other), 1 << 26), 0);
  EXPECT_EQ(NodeChunks::open(address), nullptr);
  std::fclose(other);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(NodeChunksTest, AChunkLargerThanTheRoomIsNotHere) {
  const auto node = with_room(2);
  EXPECT_EQ(node->get({7, 1, 1}, 3 * kBytes, true, [](std::span<std::byte>) { FAIL(); }), nullptr);
  EXPECT_TRUE(take(*node, 1));
}

/// What finds no place in common is kept by the process.
TEST_F(NodeChunksTest, TheCacheFallsBackToItsOwn) {
  ChunkCache cache;
  cache.share(0, 2, NodeChunks::make(4 * 4096));
  ASSERT_TRUE(cache.shares());
  int made = 0;
  const auto take_from_cache = [&](std::int64_t chunk, std::size_t bytes) {
    const auto got = cache.get({7, 1, chunk}, bytes, bytes,
                               [&](std::span<std::byte> memory) { ++made, fill(chunk, memory); });
    return got->size() == bytes && (*got)[bytes - 1] == content(chunk, bytes - 1);
  };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(take_from_cache(1, 10 * kBytes));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(cache.bytes(), 10 * kBytes);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(take_from_cache(2, kBytes));
  EXPECT_EQ(made, 2);
  EXPECT_EQ(cache.bytes(), 10 * kBytes);
  EXPECT_NE(cache.find({7, 1, 1}, 10 * kBytes), nullptr);
  cache.drop(7);
  EXPECT_EQ(cache.bytes(), 0U);
  EXPECT_EQ(cache.find({7, 1, 1}, 10 * kBytes), nullptr);
  EXPECT_NE(cache.find({7, 1, 2}, kBytes), nullptr);
}

TEST_F(NodeChunksTest, NeighboursBeginFarApart) {
  ChunkCache cache;
  EXPECT_EQ(cache.order(64, 1).front(), 0U);
  std::vector<std::size_t> first;
  for (int place = 0; place < 8; ++place) {
    cache.share(place, 8, NodeChunks::make(4096));
    first.push_back(cache.order(64, 1).front());
  }
  EXPECT_EQ(first, (std::vector<std::size_t>{0, 32, 16, 48, 8, 40, 24, 56}));
  EXPECT_EQ(cache.order(64, 0).front(), 0U);
}

/// Of what has no room at a time all come to the same quarter together.
TEST_F(NodeChunksTest, WhatHasNoRoomTogetherIsReadInParts) {
  ChunkCache cache;
  cache.share(1, 2, NodeChunks::make(4096));
  const auto read = [&](std::size_t n, std::size_t times) {
    return cache.order(n, times * ChunkCache::most_bytes());
  };
  EXPECT_EQ(read(10, 1), (std::vector<std::size_t>{1, 0, 3, 4, 2, 6, 5, 8, 9, 7}));
  EXPECT_EQ(read(4, 100), (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(FileKey, IsThatOfAFileAsItIs) {
  ChunkCache cache;
  const FileState state{1, 2, 3, 4, 5};
  const std::uint64_t key = cache.file_key(state);
  EXPECT_EQ(ChunkCache().file_key(state), key);
  EXPECT_NE(cache.file_key({1, 2, 3, 4, 6}), key);
  EXPECT_NE(cache.file_key({1, 3, 3, 4, 5}), key);
  ChunkCache other;
  other.new_data(cache.new_data());
  EXPECT_NE(cache.file_key(state), key);
  EXPECT_EQ(other.file_key(state), cache.file_key(state));
}

}  // namespace node_chunks_test
}  // namespace jigsaw
