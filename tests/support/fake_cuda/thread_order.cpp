#include "support/fake_cuda/thread_order.h"

#include "base/text.h"
#include "support/fake_cuda/work_order.h"

// Of the program: where variables begin that are zero at first, and end. Shared memory is such (__shared__ in
// cuda_runtime.h), and kernels touch no others.
extern "C" std::byte __bss_start, _end;  // NOLINT(bugprone-reserved-identifier)

namespace jigsaw::testing::fake_cuda {

namespace {

constexpr const char *kTwoWrite = ": two of its blocks write the same memory",
                     *kOneReads = ": one of its blocks reads what another one writes";

}  // namespace

ThreadOrder::ThreadOrder() {
  shared_.watch(&__bss_start, static_cast<std::size_t>(&_end - &__bss_start));
}

/// Each block has shared memory of its own.
void ThreadOrder::compare(const Touch& touch, bool writes, bool shared) const {
  if (by_another_thread(touch.written, touch.writer)) found(shared, touch.writer, true, writes);
  if (writes && by_another_thread(touch.read, touch.reader)) found(shared, touch.reader, false, writes);
  if (shared) {
    if (!writes && touch.written < block_)
      WorkOrder::all().accuse(" reads shared memory that no thread of its block has written");
    return;
  }
  if (by_another_block(touch.written)) WorkOrder::all().accuse(writes ? kTwoWrite : kOneReads);
  if (writes && (by_another_block(touch.read) || by_another_block(touch.read_before)))
    WorkOrder::all().accuse(kOneReads);
}

void ThreadOrder::found(bool shared, std::uint16_t other, bool other_writes, bool writes) const {
  const auto who = [](std::uint16_t thread) {
    return thread == kSeveral ? "one thread of several" : concat("thread ", thread);
  };
  WorkOrder::all().accuse(concat(": ", who(other), other_writes ? " writes" : " reads", " what thread ",
                                 thread_, " of its block ", writes ? "writes" : "reads",
                                 shared ? " in shared memory" : "", ", without a barrier between them"));
}

}  // namespace jigsaw::testing::fake_cuda
