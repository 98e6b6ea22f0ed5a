#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace jigsaw::inline predict {

/// Runs jobs one after the other on a thread of its own, while at most kDepth wait for it: what they hold is
/// bounded by the largest kDepth + 1.
class BackgroundWriter {
 public:
  static constexpr std::size_t kDepth = 2;
  using Job = std::function<void()>;

  BackgroundWriter();
  /// Ends after the job it is in.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Waits for room. Once a job threw, jobs are dropped.
  void push(Job job);
  /// Throws what a job threw.
  void check();
  /// Waits until all jobs are done; throws what one threw.
  void finish();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::exception_ptr error_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace jigsaw::inline predict
