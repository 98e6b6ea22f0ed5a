#include "train/progress.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/text.h"

namespace jigsaw::inline train {
namespace {

bool is_due(const std::optional<double>& last, double now, double interval) {
  return !last || now - *last >= interval;
}

}  // namespace

std::string format_progress(const ProgressState& state, std::optional<double> seconds_left) {
  const std::string steps = std::to_string(state.steps);
  char text[192];
  std::snprintf(text, sizeof text, "step %*lld/%s  loss %.5g  rate %.2e  %.3g samples/s",
                static_cast<int>(steps.size()), static_cast<long long>(state.step), steps.c_str(), state.loss,
                state.learning_rate, state.samples_per_second);
  return seconds_left ? concat(text, "  ", human_seconds(*seconds_left), " left") : text;
}

// Open MPI gives ranks a terminal for stdout wherever its own output goes, but not for stderr.
Progress::Progress(Log& log) : Progress(log, ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {}

void Progress::update(const ProgressState& state, double now) {
  if (!log_->speaks()) return;
  if (!first_time_) {
    first_time_ = now;
    first_step_ = state.step;
  }
  const bool last = state.step >= state.steps;
  const bool line_due = last || is_due(last_line_, now, kSecondsBetweenLines);
  const bool rewrite_due = terminal_ && (last || is_due(last_rewrite_, now, kSecondsBetweenRewrites));
  if (!line_due && !rewrite_due) return;
  const std::string line = format_progress(state, seconds_left(state, now));
  if (terminal_) {
    std::cout << '\r' << line << "\033[K" << std::flush;
    line_open_ = true;
    last_rewrite_ = now;
    if (line_due) log_->record(line);
  } else {
    log_->info(line);
  }
  if (line_due) last_line_ = now;
  if (last) end_line();
}

void Progress::end_line() {
  if (!line_open_) return;
  std::cout << std::endl;
  line_open_ = false;
}

std::optional<double> Progress::seconds_left(const ProgressState& state, double now) const {
  // The first step is left out: it also pays for what happens once.
  const std::int64_t done = state.step - first_step_;
  if (done <= 0) return std::nullopt;
  return (now - *first_time_) / static_cast<double>(done) * static_cast<double>(state.steps - state.step);
}

}  // namespace jigsaw::inline train
