#include "files/node_chunks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace jigsaw {
namespace {

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

std::shared_ptr<NodeChunks> with_room(std::size_t chunks, std::chrono::milliseconds patience = kLong) {
  auto node = NodeChunks::make(std::size_t{64} << 20, patience);
  node->raise_room(chunks * 4 * 4096);
  return node;
}

/// Whether the chunk could be had, and was right.
bool take(NodeChunks& node, std::int64_t chunk, std::atomic<int>* made = nullptr) {
  const auto bytes = node.get({7, 1, chunk}, kBytes, [&](std::span<std::byte> memory) {
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

template <typename Work>
pid_t in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(240);
  ::_exit(work() ? 0 : 1);
}

int exit_status(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(NodeChunks, ProcessesMakeEachChunkOnce) {
  const auto node = with_room(200);
  const InAll made, reached;
  const NodeChunks::Address address = node->address();
  constexpr int kProcesses = 4, kChunks = 200;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(in_child([&] {
      const auto opened = NodeChunks::open(address, kLong);
      if (!opened) return false;
      ++reached.value;
      while (reached.value < kProcesses) std::this_thread::yield();
      bool good = true;
      for (int i = 0; i < kChunks; ++i)
        good = take(*opened, (i + p * kChunks / kProcesses) % kChunks, &made.value) && good;
      return good;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  EXPECT_EQ(made.value, kChunks);
  // They are here as well, without being made.
  EXPECT_TRUE(holds(*node->find({7, 1, kChunks - 1}), kChunks - 1));
  EXPECT_EQ(node->find({7, 1, kChunks}), nullptr);
  EXPECT_EQ(node->find({7, 2, 1}), nullptr);
  EXPECT_EQ(node->find({8, 1, 1}), nullptr);
}

TEST(NodeChunks, TheOldestMakesRoom) {
  const auto node = with_room(10);
  std::atomic<int> made = 0;
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(take(*node, i, &made));
  for (int i = 0; i < 15; ++i) EXPECT_EQ(node->find({7, 1, i}), nullptr) << i;
  for (int i = 15; i < 25; ++i) EXPECT_TRUE(take(*node, i, &made));
  EXPECT_EQ(made, 25);
  EXPECT_TRUE(take(*node, 0, &made));
  EXPECT_EQ(made, 26);
  EXPECT_EQ(node->find({7, 1, 15}), nullptr);
}

TEST(NodeChunks, MoreChunksThanItHasNumbersFor) {
  const auto node = NodeChunks::make(std::size_t{128} << 20, kLong);
  node->raise_room(std::size_t{128} << 20);
  for (int i = 0; i < 40'000; ++i) {
    const auto bytes = node->get({7, 1, i}, 8, [&](std::span<std::byte> memory) { fill(i, memory); });
    ASSERT_TRUE(bytes && bytes->size() == 8 && (*bytes)[3] == content(i, 3)) << i;
  }
  EXPECT_NE(node->find({7, 1, 39'999}), nullptr);
  EXPECT_EQ(node->find({7, 1, 1}), nullptr);
}

TEST(NodeChunks, WhatIsReadStays) {
  const auto node = with_room(10);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(take(*node, i));
  const auto held = node->find({7, 1, 2});
  ASSERT_TRUE(held);
  int had = 0;
  for (int i = 100; i < 200; ++i) had += take(*node, i) ? 1 : 0;
  EXPECT_TRUE(holds(*held, 2));
  EXPECT_LT(had, 100);
  EXPECT_GE(had, 6);
}

TEST(NodeChunks, ChunksOfAnyLengthDoNotOverlap) {
  const auto node = with_room(10);
  std::mt19937 random(5);
  std::vector<std::pair<std::int64_t, std::shared_ptr<const std::span<const std::byte>>>> held;
  for (int i = 0; i < 3000; ++i) {
    if (i == 1500) node->raise_room(40 * 4 * 4096);
    const std::int64_t chunk = static_cast<std::int64_t>(random() % 60);
    const std::size_t bytes = 1 + static_cast<std::size_t>(chunk * 1009);
    auto got = node->get({7, 1, chunk}, bytes, [&](std::span<std::byte> memory) { fill(chunk, memory); });
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

TEST(NodeChunks, ThreadsToo) {
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

TEST(NodeChunks, WhatFailsIsMadeAgain) {
  const auto node = with_room(10);
  EXPECT_THROW(node->get({7, 1, 3}, kBytes, [](std::span<std::byte>) { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(node->find({7, 1, 3}), nullptr);
  EXPECT_TRUE(take(*node, 3));
  for (int i = 10; i < 40; ++i) EXPECT_TRUE(take(*node, i));
}

TEST(NodeChunks, WhoeverWaitsForAProcessThatDiedMakesItForItself) {
  const auto node = with_room(10, 50ms);
  const pid_t child = in_child([&] {
    node->get({7, 1, 3}, kBytes, [](std::span<std::byte>) { ::raise(SIGKILL); });
    return false;
  });
  EXPECT_TRUE(WIFSIGNALED(exit_status(child)));
  EXPECT_FALSE(take(*node, 3));
  // What the dead process began is never overwritten; the rest is of use until it comes to that.
  EXPECT_TRUE(take(*node, 4));
  int had = 0;
  for (int i = 10; i < 40; ++i) had += take(*node, i) ? 1 : 0;
  EXPECT_GE(had, 8);
}

TEST(NodeChunks, ProcessesThatDieAnywhereHangNobody) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    const auto node = with_room(20, 1ms);
    const pid_t child = in_child([&] {
      for (std::int64_t i = 0;; ++i) take(*node, i % 40);
      return false;
    });
    for (int i = 0; i < 20; ++i) take(*node, i);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(exit_status(child)));
    for (int i = 0; i < 60; ++i) take(*node, i);  // right, or not had
  }
}

TEST(NodeChunks, WhatIsSomethingElseIsNotOpened) {
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

TEST(NodeChunks, AChunkLargerThanTheRoomIsNotHere) {
  const auto node = with_room(2);
  EXPECT_EQ(node->get({7, 1, 1}, 3 * kBytes, [](std::span<std::byte>) { FAIL(); }), nullptr);
  EXPECT_TRUE(take(*node, 1));
}

}  // namespace
}  // namespace jigsaw
