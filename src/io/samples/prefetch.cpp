#include "samples/prefetch.h"

#include <chrono>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/trace.h"

namespace jigsaw::inline samples {

Prefetch::Prefetch(Load load, std::int64_t first, std::int64_t last)
    : thread_([this, load = std::move(load), first, last, heartbeat = current_heartbeat(),
               trace = current_trace()] {
        const WorksFor rank(heartbeat);
        const TracesFor traced(trace, "reading ahead");
        run(load, first, last);
      }) {}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetch::run(const Load& load, std::int64_t first, std::int64_t last) {
  std::unique_lock lock(mutex_);
  try {
    for (std::int64_t step = first; step < last; ++step) {
      changed_.wait(lock, [&] { return stop_ || ready_.size() < kDepth; });
      if (stop_) break;
      lock.unlock();
      Batch batch;
      {
        const TraceSpan span(TraceKind::kPhase, "read a batch");
        batch = load(step);
      }
      lock.lock();
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    error_ = std::current_exception();
  }
  done_ = true;
  changed_.notify_all();
}

Batch Prefetch::next() {
  const TraceSpan span(TraceKind::kDataWait, "wait for a batch");
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ || !ready_.empty(); });
  seconds_waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    fail("a batch beyond the last step was asked for");
  }
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace jigsaw::inline samples
