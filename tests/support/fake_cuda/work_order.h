#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_cuda/shadow.h"

namespace jigsaw::testing::fake_cuda {

/// Finds two pieces of work that touch the same memory, one of them writing, of which neither waits for the
/// other: whichever runs first here, on a device the other one might. Order is kept by vector clocks: a piece
/// of work comes after those before it in its stream, after what its stream was told to wait for, and after
/// what the host had waited for when it put it in. What work touches kernels say themselves: they are
/// compiled with calls at each access (those of the thread sanitizer, which access_hooks.cpp has); copies and
/// products say it here. Memory is looked at in words of four bytes.
///
/// All functions are called under the runtime's mutex; touched() from anywhere, for code that no work runs
/// calls it, too.
class WorkOrder {
 public:
  /// By stream: how many of its pieces of work are done.
  using Clock = std::vector<std::int64_t>;
  using Id = std::uint32_t;

  /// Never destroyed: streams that end after main() still name it.
  static WorkOrder& all() {
    static WorkOrder& order = *new WorkOrder;
    return order;
  }

  int open_stream();
  void close_stream(int stream);

  /// A piece of work was put into the stream.
  Id put(int stream, const std::string& name);
  /// What is done when all is that was put into the stream.
  Clock place(int stream) const { return streams_[static_cast<std::size_t>(stream)].clock; }
  void stream_waits(int stream, const Clock& place);
  void host_waited(const Clock& place) { join(host_, place); }

  /// Memory that work may touch: of a device, or pinned on the host.
  void watch(const std::byte* base, std::size_t bytes) { words_.watch(base, bytes); }
  void forget(const std::byte* base) { words_.forget(base); }

  /// While it lives this piece of work runs; what runs within it is another one.
  class Running {
   public:
    explicit Running(Id work) : outer_(running_) { all().run(work); }
    ~Running() { all().run(outer_); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Id outer_;
  };
  void touched(const void* address, std::size_t bytes, bool writes) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (running_ != 0 && words_.may_hold(at))
      words_.each(at, bytes, [&](Word& word) {
        // What the same piece of work does again in a word tells nothing new.
        if (word.writer != running_ && (writes || word.readers[reader_] != running_)) look_at(word, writes);
      });
  }

  /// What was found first, and its like; "" for nothing.
  const std::string& conflict() const { return conflict_; }
  void report(const std::string& conflict) {
    if (conflict_.empty()) conflict_ = conflict;
  }
  /// Of the piece of work that runs: what it does wrong.
  void accuse(const std::string& what) { report(work_[running_].name + what); }
  void forget_conflict() { conflict_.clear(); }

 private:
  static constexpr std::size_t kWord = 4, kReaders = 8;

  struct Stream {
    bool open = false;
    Clock clock;
    std::shared_ptr<const Clock> others;  ///< the clock without its own entry
  };
  struct Work {
    std::string name;
    int stream = 0;
    std::int64_t number = 0;
    std::shared_ptr<const Clock> others;  ///< what of other streams was done before
  };
  /// Who touched a word last.
  struct Word {
    Id writer;
    Id readers[kReaders];  ///< by the stream's number
  };

  void run(Id work) {
    running_ = work;
    reader_ = static_cast<std::size_t>(work_[work].stream) % kReaders;
  }
  static void join(Clock& clock, const Clock& other);
  bool comes_before(Id first, Id second) const;
  void look_at(Word& word, bool writes);
  void found(Id other, bool other_writes, bool writes);

  std::vector<Stream> streams_;
  Clock host_;
  std::vector<Work> work_ = {{}};  ///< by id, from 1 on
  Shadow<Word, kWord> words_;
  static inline thread_local Id running_ = 0;
  static inline thread_local std::size_t reader_ = 0;  ///< among a word's readers, that which runs
  std::string conflict_;
};

}  // namespace jigsaw::testing::fake_cuda
