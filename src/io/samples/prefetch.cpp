#include "samples/prefetch.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/start_thread.h"
#include "base/trace.h"

namespace jigsaw::inline samples {

ReadAhead ReadAhead::within_budget(std::int64_t batch_bytes, std::int64_t workers) {
  constexpr std::int64_t kUsualDepth = 4, kUsualWorkers = 2;
  const std::int64_t depth = std::clamp<std::int64_t>(kBudget / std::max<std::int64_t>(batch_bytes, 1),
                                                      Prefetch::kDepth, std::max(kUsualDepth, workers + 1));
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  if (workers == 0) workers = std::min(cores, kUsualWorkers);
  // A worker more than there are places would have nothing to do.
  return {static_cast<std::size_t>(depth), static_cast<std::size_t>(std::min(workers, depth))};
}

Prefetch::Prefetch(Load load, std::int64_t first, std::int64_t last, const ReadAhead& ahead)
    : load_(std::move(load)), last_(last), depth_(ahead.depth), to_load_(first), to_give_(first) {
  for (std::size_t i = 0; i < ahead.workers; ++i) {
    try {
      start_thread("to read ahead", [&] {
        threads_.emplace_back([this, heartbeat = current_heartbeat(), trace = current_trace()] {
          const WorksFor rank(heartbeat);
          const TracesFor traced(trace, "reading ahead");
          run();
        });
      });
    } catch (const Error&) {
      // The system has no more threads for us: those that are there read the same, only later.
      if (threads_.empty()) throw;
      break;
    }
  }
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetch::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] {
      return stop_ || to_load_ >= last_ || to_load_ < to_give_ + static_cast<std::int64_t>(depth_);
    });
    if (stop_ || to_load_ >= last_ || !errors_.empty()) return;
    load_next(lock);
  }
}

void Prefetch::load_next(std::unique_lock<std::mutex>& lock) {
  const std::int64_t step = to_load_++;
  lock.unlock();
  Batch batch;
  std::exception_ptr error;
  try {
    const TraceSpan span(TraceKind::kPhase, "read a batch");
    batch = load_(step);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error) {
    errors_[step] = error;
  } else {
    ready_[step] = std::move(batch);
  }
  changed_.notify_all();
}

Batch Prefetch::next() {
  const auto begin = std::chrono::steady_clock::now();
  Batch batch = wait_for_next();
  // Around the whole span of the trace, so that both say the same of a step.
  seconds_waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return batch;
}

Batch Prefetch::wait_for_next() {
  const TraceSpan span(TraceKind::kDataWait, "wait for a batch");
  std::unique_lock lock(mutex_);
  if (to_give_ >= last_) fail("a batch beyond the last step was asked for");
  changed_.wait(lock, [&] { return ready_.contains(to_give_) || errors_.contains(to_give_); });
  if (errors_.contains(to_give_)) std::rethrow_exception(errors_[to_give_]);
  return give();
}

std::optional<Batch> Prefetch::next_if_there() {
  const std::lock_guard lock(mutex_);
  if (!ready_.contains(to_give_)) return std::nullopt;
  return give();
}

/// The next one, which is there; under the lock.
Batch Prefetch::give() {
  Batch batch = std::move(ready_[to_give_]);
  ready_.erase(to_give_++);
  changed_.notify_all();
  return batch;
}

}  // namespace jigsaw::inline samples
