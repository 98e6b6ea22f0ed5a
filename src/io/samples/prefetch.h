#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "samples/batch.h"

namespace jigsaw::inline samples {

/// How many batches are read ahead, and by how many threads.
struct ReadAhead {
  std::size_t depth = 2;  ///< batches that are there or being read, at most
  std::size_t workers = 1;

  /// What kBudget bytes of memory allow with batches of this size, at least a depth of 2.
  /// @param workers  how many threads are wanted, which a depth of one more suits; 0: at most two with a
  ///                 depth of 4, for whoever computes needs the cores, too.
  static ReadAhead within_budget(std::int64_t batch_bytes, std::int64_t workers = 0);
  static constexpr std::int64_t kBudget = std::int64_t{1} << 30;
};

/// Reads the batches of the steps to come on threads of its own; a step may be one lead of a rollout.
/// Destroying it at any time ends them after the reads they are in.
class Prefetch {
 public:
  static constexpr std::size_t kDepth = 2;
  using Load = std::function<Batch(std::int64_t step)>;

  /// @param load  reads the batch of one step, first … last − 1; called on the other threads only, in order
  ///              if there is one, at the same time for several steps if there are more.
  Prefetch(Load load, std::int64_t first, std::int64_t last, const ReadAhead& ahead = {kDepth, 1});
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The batch of the next step; waits for it. Throws what `load` threw, at the step that it threw for and at
  /// every later call; Error beyond the last step.
  Batch next();
  /// The same, if next() would neither wait nor throw.
  std::optional<Batch> next_if_there();
  /// Time that all calls of next() which gave a batch have taken, from before they asked whether it was
  /// there.
  double seconds_waited() const { return seconds_waited_; }

 private:
  void run();
  Batch wait_for_next();
  Batch give();
  void load_next(std::unique_lock<std::mutex>& lock);

  Load load_;
  std::int64_t last_;
  std::size_t depth_;
  double seconds_waited_ = 0;  ///< of the thread that calls next()
  std::mutex mutex_;           ///< guards what follows
  std::condition_variable changed_;
  std::int64_t to_load_, to_give_;  ///< the next steps of each
  std::map<std::int64_t, Batch> ready_;
  std::map<std::int64_t, std::exception_ptr> errors_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace jigsaw::inline samples
