#include "base/overdue.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace jigsaw::inline base {

Overdue::Overdue(std::vector<Step> steps) {
  static constexpr double kMost = 1e9;  // of what a clock can count
  const auto begun = std::chrono::steady_clock::now();
  thread_ = std::thread([this, begun, steps = std::move(steps)] {
    for (const Step& step : steps) {
      const auto due = begun + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                   std::chrono::duration<double>(std::min(step.seconds, kMost)));
      std::unique_lock lock(mutex_);
      if (changed_.wait_until(lock, due, [this] { return ended_; })) return;
      lock.unlock();
      step.act();
    }
  });
}

Overdue::~Overdue() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace jigsaw::inline base
