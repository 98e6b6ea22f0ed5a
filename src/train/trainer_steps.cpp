// The steps of a Trainer: on a device one is put in before the one before it is told.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/trace.h"
#include "comm/agreement.h"
#include "train/trainer.h"

namespace jigsaw::inline train {

void Trainer::begin_step(std::int64_t step) {
  if (watchdog_) watchdog_->beat(step);
  checkpointer_->poll();
  if (begun_.empty()) communicated_ = world_.traffic().seconds;
  trace_.at_step(step);
  if (tracing()) tell_steps(0);
  BegunStep begun{step, now()};
  const double flops = world_.context().tally().flops;
  const TraceSpan span(TraceKind::kStep, tracing() ? concat("step ", step) : "");
  if (nan_search_) {
    begun.found = nan_search_->run(step, *prefetch_);
  } else {
    step_.begin(step, *prefetch_);
    if (must_be_known(step)) {
      tell_steps(0);
      begun.found = step_.finish();
    }
  }
  begun.flops = world_.context().tally().flops - flops;
  begun_.push_back(begun);
}

/// Whether what follows a step depends on what it found. On a host it is known anyway.
bool Trainer::must_be_known(std::int64_t step) const {
  const bool last = step == steps_;
  return world_.context().runtime() == nullptr || tracing() || last || checkpointer_->is_due(step, last) ||
         validates_at(step);
}

/// Those that were begun but for so many: waits for them.
void Trainer::tell_steps(std::size_t left) {
  while (begun_.size() > left) {
    const BegunStep begun = begun_.front();
    begun_.pop_front();
    tell_step(begun, begun.found ? *begun.found : step_.finish());
  }
}

void Trainer::tell_step(const BegunStep& begun, const StepResult& result) {
  last_ = result;
  const double seconds = now() - std::max(begun.time, told_);
  longest_step_ = std::max(longest_step_, seconds);
  recorded_steps_ += result.recorded ? 1 : 0;
  told_ = now();
  tell_kernels();
  const double communicated = std::exchange(communicated_, world_.traffic().seconds);
  log_step(begun.step, result, seconds, communicated_ - communicated, begun.flops);
  count_skipped(result, begun.step);
  note_empty_targets(result, begun.step);
}

/// Whether the run stops after it.
bool Trainer::run_step(std::int64_t step) {
  try {
    begin_step(step);
  } catch (const AgreedError&) {
    tell_steps(0);  // of the steps before
    throw;
  }
  tell_steps(begun_.back().found ? 0 : 1);
  const bool last = step == steps_;
  poll_labels(last);
  Stop stop =
      should_stop(static_cast<double>(begun_.size() + 1) * longest_step_ + checkpointer_->longest_seconds());
  const bool late = minutes_over_;
  if (stop != Stop::kNo || late) tell_steps(0);
  // Nothing was learned in a step that was skipped, and what came before it may be the cause.
  const bool due = (late || checkpointer_->is_due(step, last)) && (last || last_.finite);
  bool saved = due || (stop != Stop::kNo && !last);
  if (saved) save({});
  if (stop == Stop::kNo || last) {
    if (validates_at(step)) {
      stop = validate(step);
      if (stop == Stop::kNo && improves()) save(score());
    } else if (last) {
      stop = Stop::kNo;
    }
  }
  const bool ends = stop != Stop::kNo || out_of_patience();
  if (ends && !saved) save({});
  if (ends || last) checkpointer_->finish_last();
  return stop != Stop::kNo && stop_early(step);
}

}  // namespace jigsaw::inline train
