// The validations of a Trainer, and the best of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/progress_bar.h"
#include "base/text.h"
#include "base/trace.h"
#include "comm/agreement.h"
#include "task/metric.h"
#include "train/best_so_far.h"
#include "train/trainer.h"
#include "train/validation_table.h"

namespace jigsaw::inline train {

bool Trainer::validates_at(std::int64_t step) const {
  return validation_ && (step == steps_ || step % config_.validation.every == 0);
}

/// Whether it was cut short, and why.
Trainer::Stop Trainer::validate(std::int64_t step) {
  progress_->end_line();
  const double before = now();
  double longest_batch = 0, last = before;
  const TraceSpan span(TraceKind::kPhase, "validation");
  // One that would not end in time is not begun.
  Stop stop = should_stop(longest_validation_ + checkpointer_->longest_seconds());
  if (stop != Stop::kNo) return stop;
  checkpointer_->copied();
  std::optional<ValidationResult> result;
  optimizer_->with_averages([&] {
    ProgressBar bar(log_, concat("step ", step, "  validation"));
    std::int64_t begun = 0;
    result = validation_->run(
        [&] {
          bar.update(begun++, validation_->batches());
          longest_batch = std::max(longest_batch, now() - last);
          last = now();
          checkpointer_->poll();
          stop = should_stop(longest_batch + checkpointer_->longest_seconds());
          return stop != Stop::kNo;
        },
        observing());
  });
  if (stop != Stop::kNo) return stop;
  before_last_validation_ = std::exchange(last_validation_, std::move(result));
  const double seconds = now() - before;
  longest_validation_ = std::max(longest_validation_, seconds);
  time_left_.validation(seconds);
  apart_seconds_ += seconds;
  for (RunObserver* observer : options_.observers) observer->validated(step, *last_validation_);
  last_numbers_ = last_validation_->numbers(config_.data);  // with what observers added
  note_improvement();
  tell_validation(step, seconds);
  return Stop::kNo;
}

/// What observers see of a validation.
Validation::BatchUse Trainer::observing() const {
  if (options_.observers.empty()) return {};
  return [this](std::int64_t number, int lead, const ShardedTensor& prediction, const Batch& batch) {
    for (RunObserver* observer : options_.observers) observer->predicted(number, lead, prediction, batch);
  };
}

void Trainer::tell_validation(std::int64_t step, double seconds) {
  remarks_.tell();
  Json line = {{"kind", "valid"}, {"step", step}};
  line.update(last_numbers_);
  if (const std::string& best = config_.checkpoint.best; !best.empty())
    line[kNotImproved] = {{best, not_improved_}};
  line[kValidationSamples] = run_.data().count(Split::kValid);
  line["validation_seconds"] = seconds;
  line["time"] = utc_stamp(true);
  warn_of_other_data(line);
  write_metrics(line);
  ValidationTable options{{},
                          config_.data.of_images() ? 0 : config_.data.lead(),
                          config_.data.time_step.month,
                          log_.terminal(),
                          config_.data.of_sequences(),
                          !config_.data.regions.empty()};
  for (const auto& [name, field] : run_.data().statistics().fields) options.units[name] = field.units;
  const auto text_of = [](double loss) { return std::isnan(loss) ? "nan" : concat(loss); };
  log_.info(concat(
      "step ", step, "  validation loss ", text_of(last_validation_->loss), " (", config_.loss.type(), ")",
      before_last_validation_ ? concat(", before ", text_of(before_last_validation_->loss)) : ""));
  const ValidationResult* before = before_last_validation_ ? &*before_last_validation_ : nullptr;
  for (const std::string& row : table_of(*last_validation_, before, options)) log_.info(row);
}

/// Of the first validation behind a resumed step, whose score is compared with those of before.
void Trainer::warn_of_other_data(const Json& line) {
  const bool is_first = !std::exchange(validation_data_compared_, true);
  if (!is_first || config_.checkpoint.best.empty() || state_.told_other_validations()) return;
  const std::string other = other_validation_data(metrics_->last("valid"), line);
  if (other.empty()) return;
  log_.warn(concat("validations are of others than before: ", other, "; ", kScoresCompared));
}

/// Whether the validation is the best so far. Of a step that was skipped it is not saved.
bool Trainer::improves() const {
  return last_.finite && checkpointer_->is_best(score());
}

/// What `checkpoint.best` looks at, after a validation.
std::optional<CheckpointScore> Trainer::score() const {
  const std::string& best = config_.checkpoint.best;
  if (best.empty()) return std::nullopt;
  const std::optional<double> value = number_in(last_numbers_, best);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return CheckpointScore{best, *value};
}

void Trainer::note_improvement() {
  not_improved_ = improves() ? 0 : not_improved_ + 1;
}

bool Trainer::out_of_patience() const {
  const std::int64_t patience = config_.validation.patience;
  return validation_ && patience > 0 && not_improved_ >= patience;
}

/// The validation of the step that the run goes on from, if it was cut short or killed. Whether the run
/// stops.
bool Trainer::make_up_for_validation() {
  const std::int64_t step = state_.steps_done();
  const double done =
      world_.all_reduce(std::array{static_cast<double>(metrics_->validated())}, ReduceOp::kMax)[0];
  if (step == 0 || !validates_at(step)) return false;
  if (done >= static_cast<double>(step)) {
    make_up_for_best();
    return false;
  }
  const double opened = now() - started_;
  const Stop stop = validate(step);
  // Each start would come as far as this one.
  if (stop == Stop::kLate) {
    throw AgreedError(
        ExitCode::kConfig, 0,
        concat("--max-minutes: after ", human_seconds(opened), " in which the run was opened, ",
               "the validation of step ", step, ", which the last start left out, does not end within ",
               options_.max_minutes, " minutes; raise the limit or make data.valid shorter"));
  }
  if (stop != Stop::kNo) return stop_early(step);
  if (improves()) {
    save(score());
    checkpointer_->finish();
  }
  if (step == steps_ || out_of_patience()) finish(step);
  return false;
}

/// The save of the best validation so far, if the run was killed behind its line: that of the step that the
/// run goes on from.
void Trainer::make_up_for_best() {
  const std::string& best = config_.checkpoint.best;
  double value = best_in(metrics_->last("valid"), best).value_or(-std::numeric_limits<double>::infinity());
  value = world_.all_reduce(std::array{value}, ReduceOp::kMax)[0];
  const CheckpointScore score{best, value};
  if (!std::isfinite(value) || !checkpointer_->is_best(score)) return;
  save(score);
  checkpointer_->finish();
}

}  // namespace jigsaw::inline train
