#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "samples/batch_reader.h"

namespace jigsaw::inline samples {

/// Reads the batches of the steps to come on one thread, at most kDepth ahead. Destroying it at any time ends
/// the thread after the read it is in.
class Prefetch {
 public:
  static constexpr std::size_t kDepth = 2;
  using Load = std::function<Batch(std::int64_t step)>;

  /// @param load  reads the batch of one step; called on the other thread only, for first … last − 1 in
  /// order.
  Prefetch(Load load, std::int64_t first, std::int64_t last);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The batch of the next step; waits for it. Throws what `load` threw, at the step that it threw for and at
  /// every later call; Error beyond the last step.
  Batch next();
  /// Time that next() has waited in all.
  double seconds_waited() const { return seconds_waited_; }

 private:
  void run(const Load& load, std::int64_t first, std::int64_t last);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr error_;
  bool done_ = false, stop_ = false;
  double seconds_waited_ = 0;
  std::thread thread_;
};

}  // namespace jigsaw::inline samples
