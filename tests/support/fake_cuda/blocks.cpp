// Threads of a block as fibers. A fiber runs threads to their end, one after the other, until one comes to a
// barrier; then the next fiber goes on with those that have not begun. So kernels without barriers need one.
#undef _FORTIFY_SOURCE  // whose longjmp refuses to leave a stack
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "cuda_runtime.h"
#include "support/fake_cuda/thread_order.h"

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace jigsaw::testing::fake_cuda {

namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

struct Fiber {
  unsigned thread = 0;
  bool begun = false, waits = false;
  jmp_buf place;
  ucontext_t start;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);

  /// Those of this thread of the program, kept from kernel to kernel until it ends.
  static std::vector<std::unique_ptr<Fiber>>& all() {
    struct Kept {
      ~Kept() { thread_has_ended = true; }
      std::vector<std::unique_ptr<Fiber>> fibers;
    };
    static thread_local Kept kept;
    return kept.fibers;
  }
  static thread_local bool thread_has_ended;
};

thread_local bool Fiber::thread_has_ended = false;

/// SplitMix64.
std::uint64_t next_random(std::uint64_t& seed) {
  seed += 0x9E3779B97F4A7C15ULL;
  std::uint64_t x = seed;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

template <typename Number>
void put_in_order(std::vector<Number>& numbers, Order order, std::uint64_t& seed) {
  if (order == Order::kBackward) std::ranges::reverse(numbers);
  if (order != Order::kShuffled) return;
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[next_random(seed) % i]);
}

/// The threads of one block.
class Block {
 public:
  static thread_local Block* current;

  Block(const std::function<void()>& thread, Order order, std::uint64_t& seed)
      : thread_(thread), order_(order), seed_(seed) {}

  void run(dim3 threads) {
    count_ = threads.x * threads.y * threads.z;
    to_begin_.resize(count_);
    std::iota(to_begin_.begin(), to_begin_.end(), 0U);
    put_in_order(to_begin_, order_, seed_);
    current = this;
    ThreadOrder::all().begin_block();
    std::ranges::reverse(to_begin_);
    while (!ended_ && !to_begin_.empty()) resume(free_fiber());
    while (!ended_) {
      std::vector<Fiber*> waiting;
      for (const auto& fiber : Fiber::all()) {
        if (fiber->waits) waiting.push_back(fiber.get());
      }
      if (waiting.empty()) break;
      if (waiting.size() != count_) {
        Fiber::all().clear();
        leave();
        fail("some threads of a block wait at a barrier for others that have left the kernel");
      }
      std::ranges::sort(waiting, {}, &Fiber::thread);
      put_in_order(waiting, order_, seed_);
      for (Fiber* fiber : waiting) fiber->waits = false;
      ThreadOrder::all().pass_barrier();
      for (Fiber* fiber : waiting) {
        if (!ended_) resume(*fiber);
      }
    }
    if (ended_) Fiber::all().clear();
    leave();
  }
  bool ended() const { return ended_; }

  /// Of the thread that runs: comes back when all others have come to the barrier, too.
  void wait() {
    Fiber& fiber = *running_;
    fiber.waits = true;
    if (_setjmp(fiber.place) == 0) _longjmp(scheduler_, 1);
    go_on(fiber.thread);
  }

  /// Of the thread that runs: neither it nor the others go on.
  void end() {
    ended_ = true;
    _longjmp(scheduler_, 1);
  }

 private:
  static void go_on(unsigned thread) {
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
    ThreadOrder::all().go_on(thread);
  }
  static void leave() {
    current = nullptr;
    ThreadOrder::all().end_block();
  }

  Fiber& free_fiber() {
    for (const auto& fiber : Fiber::all()) {
      if (!fiber->waits) return *fiber;
    }
    return *Fiber::all().emplace_back(std::make_unique<Fiber>());
  }

  void resume(Fiber& fiber) {
    running_ = &fiber;
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = kStackBytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, &Block::enter, 0);
    setcontext(&fiber.start);
  }

  /// A fiber's life: the threads that have not begun; then it waits until there are more.
  static void enter() {
    while (true) {
      Block& block = *current;
      Fiber& fiber = *block.running_;
      if (block.to_begin_.empty()) {
        if (_setjmp(fiber.place) == 0) _longjmp(block.scheduler_, 1);
        continue;
      }
      fiber.thread = block.to_begin_.back();
      block.to_begin_.pop_back();
      go_on(fiber.thread);
      block.thread_();
    }
  }

  const std::function<void()>& thread_;
  Order order_;
  std::uint64_t& seed_;
  unsigned count_ = 0;
  std::vector<unsigned> to_begin_;  ///< threads, the next one last
  Fiber* running_ = nullptr;
  bool ended_ = false;
  jmp_buf scheduler_;
};

thread_local Block* Block::current = nullptr;

}  // namespace

void run_blocks(dim3 blocks, dim3 threads, const std::function<void()>& thread, Order order,
                std::uint64_t& seed) {
  std::vector<unsigned> numbers(blocks.x * blocks.y * blocks.z);
  std::iota(numbers.begin(), numbers.end(), 0U);
  put_in_order(numbers, order, seed);
  gridDim = blocks;
  blockDim = threads;
  ThreadOrder::all().begin_kernel();
  Block block(thread, order, seed);
  for (const unsigned number : numbers) {
    blockIdx = {number % blocks.x, number / blocks.x % blocks.y, number / blocks.x / blocks.y};
    block.run(threads);
    if (block.ended()) return;
  }
}

bool in_kernel() {
  return Block::current != nullptr;
}

void end_kernel() {
  Block::current->end();
}

bool kernels_can_run() {
  return !Fiber::thread_has_ended;
}

void wait_for_block() {
  require(Block::current != nullptr, "a barrier outside of a kernel");
  Block::current->wait();
}

}  // namespace jigsaw::testing::fake_cuda

void __syncthreads() {
  jigsaw::testing::fake_cuda::wait_for_block();
}
