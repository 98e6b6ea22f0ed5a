#pragma once
#include <cstddef>
#include <cstdint>

#include "support/fake_cuda/shadow.h"

namespace jigsaw::testing::fake_cuda {

/// Finds two threads of one kernel that touch the same memory, one of them writing, in no order: threads of
/// two blocks, or of one block without a barrier between them. Whichever runs first here, on a GPU the other
/// one might. In shared memory, as racecheck of CUDA's compute-sanitizer does, and in that of the device.
/// Finds, too, what a block reads in shared memory where none of its threads has written.
///
/// The time that a block takes from one barrier to the next is an interval; intervals are numbered through
/// all blocks of all kernels. Memory is looked at in units of two bytes. All functions are called under the
/// runtime's mutex; touched() from anywhere, for code that is no kernel calls it, too.
class ThreadOrder {
 public:
  /// Never destroyed, as WorkOrder.
  static ThreadOrder& all() {
    static ThreadOrder& order = *new ThreadOrder;
    return order;
  }

  /// Memory of a device, or pinned.
  void watch(const std::byte* base, std::size_t bytes) { memory_.watch(base, bytes); }
  void forget(const std::byte* base) { memory_.forget(base); }

  void begin_kernel() { kernel_ = last_ + 1; }
  void begin_block() { block_ = interval_ = ++last_; }
  void pass_barrier() { interval_ = ++last_; }
  void end_block() { interval_ = 0; }
  /// The thread, by its number in the block, that runs from now on.
  void go_on(unsigned thread) { thread_ = static_cast<std::uint16_t>(thread); }

  void touched(const void* address, std::size_t bytes, bool writes) {
    if (interval_ == 0) return;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (memory_.may_hold(at)) {
      memory_.each(at, bytes, [&](Touch& touch) { look_at(touch, writes, false); });
    } else if (shared_.may_hold(at)) {
      shared_.each(at, bytes, [&](Touch& touch) { look_at(touch, writes, true); });
    }
  }

 private:
  static constexpr std::size_t kUnit = 2;
  static constexpr std::uint16_t kSeveral = 0xffff;

  /// Who touched a unit last.
  struct Touch {
    std::uint32_t written;            ///< in this interval
    std::uint32_t read, read_before;  ///< in this one, and in this one by another block of the same kernel
    std::uint16_t writer, reader;     ///< threads in their blocks
  };

  ThreadOrder();
  void look_at(Touch& touch, bool writes, bool shared) {
    const std::uint32_t settled =
        shared ? block_ : 0;  // what was done from then on, and before the last barrier
    const bool no_conflict = touch.written - settled < (shared ? interval_ : kernel_) - settled &&
                             (!writes || touch.read < (shared ? interval_ : kernel_));
    if (!no_conflict) compare(touch, writes, shared);
    if (writes) {
      touch.written = interval_;
      touch.writer = thread_;
    } else {
      if (by_another_block(touch.read)) touch.read_before = touch.read;
      touch.reader = by_another_thread(touch.read, touch.reader) ? kSeveral : thread_;
      touch.read = interval_;
    }
  }
  void compare(const Touch& touch, bool writes, bool shared) const;
  /// Whether another block of this kernel did it.
  bool by_another_block(std::uint32_t interval) const { return interval >= kernel_ && interval < block_; }
  /// Whether another thread did it behind the last barrier.
  bool by_another_thread(std::uint32_t interval, std::uint16_t thread) const {
    return interval == interval_ && thread != thread_;
  }
  void found(bool shared, std::uint16_t other, bool other_writes, bool writes) const;

  Shadow<Touch, kUnit> memory_, shared_;
  std::uint32_t last_ = 0, kernel_ = 0,
                block_ = 0;  ///< intervals: the last one, the first of the kernel and of the block
  /// That of now; 0 outside of kernels. They run in one of the program's threads at a time, beside which
  /// others may run code that is compiled with them.
  static inline thread_local std::uint32_t interval_ = 0;
  std::uint16_t thread_ = 0;
};

}  // namespace jigsaw::testing::fake_cuda
