#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace jigsaw::inline base {

/// What is done while a call does not come back, by a thread beside it. What is not due when it ends is not
/// done.
class Overdue {
 public:
  struct Step {
    double seconds;  ///< from the beginning on
    std::function<void()> act;
  };

  /// @param steps  in the order of their times. The last may end the program.
  explicit Overdue(std::vector<Step> steps);
  ~Overdue();
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace jigsaw::inline base
