#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

namespace jigsaw::inline base {

/// Counts what a rank gets done, so that whoever looks on tells a slow rank from one that hangs. Thread-safe.
class Heartbeat {
 public:
  void beat() { count_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_ = 0;
};

/// While it lives, the calling thread works for the rank whose heartbeat this is. It ends on the same thread.
class WorksFor {
 public:
  explicit WorksFor(std::shared_ptr<Heartbeat> heartbeat);
  ~WorksFor();
  WorksFor(const WorksFor&) = delete;
  WorksFor& operator=(const WorksFor&) = delete;

 private:
  std::shared_ptr<Heartbeat> before_;
};

/// Of the rank that the calling thread works for, null where it works for none; a thread hands it on to those
/// that it starts.
std::shared_ptr<Heartbeat> current_heartbeat();

/// A unit of work has come to its end: a buffer was read or written, an operation computed, a message came.
/// Whoever may take long has units that are short. Nothing where the thread works for no rank.
void beat();

}  // namespace jigsaw::inline base
