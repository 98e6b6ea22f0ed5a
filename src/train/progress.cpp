#include "train/progress.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "base/text.h"

namespace jigsaw::inline train {
namespace {

bool is_over(const std::optional<double>& last, double now, double interval) {
  return !last || now - *last >= interval;
}

template <typename... Numbers>
std::string printed(const char* format, Numbers... numbers) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, numbers...);
  return text.data();
}

/// A part of the line; of those that may be left out the one of the highest number goes first.
struct Part {
  int order;
  std::string text;
};

std::vector<Part> parts_of(const ProgressState& state) {
  const std::string steps = std::to_string(state.steps), step = std::to_string(state.step);
  std::vector<Part> parts = {
      {0, concat("step ", std::string(steps.size() - std::min(step.size(), steps.size()), ' '), step, "/",
                 steps)},
      {0, printed("loss %.5g", state.loss)},
      {3, state.loss_type.empty() ? "" : concat("(", state.loss_type, ")")},
      {2, printed("learning rate %.2e", state.learning_rate)},
      {1, printed("%.3g samples/s", state.samples_per_second)}};
  if (state.peak_share) parts.push_back({4, printed("%.0f %% of peak", 100 * *state.peak_share)});
  if (state.memory_bytes > 0) parts.push_back({5, human_bytes(state.memory_bytes)});
  if (state.seconds_left) parts.push_back({0, human_seconds(*state.seconds_left) + " left"});
  std::erase_if(parts, [](const Part& part) { return part.text.empty(); });
  return parts;
}

}  // namespace

std::string format_progress(const ProgressState& state, int columns) {
  const std::vector<Part> parts = parts_of(state);
  std::string line;
  for (int most = 5; most >= 0; --most) {
    line.clear();
    for (const Part& part : parts) {
      if (part.order > most) continue;
      line += concat(line.empty() ? "" : part.text.starts_with("(") ? " " : "  ", part.text);
    }
    if (columns <= 0 || columns_of(line) < columns) break;
  }
  return line;
}

bool Progress::line_is_due(std::int64_t step, std::int64_t steps, double now) const {
  return step >= steps || is_over(last_line_, now, kSecondsBetweenLines);
}

bool Progress::is_due(std::int64_t step, std::int64_t steps, double now) const {
  if (!log_->speaks()) return false;
  const bool rewrites = log_->terminal().rewrites && is_over(last_rewrite_, now, kSecondsBetweenRewrites);
  return rewrites || line_is_due(step, steps, now);
}

void Progress::update(const ProgressState& state, double now) {
  if (!is_due(state.step, state.steps, now)) return;
  const bool line_due = line_is_due(state.step, state.steps, now);
  if (line_due) last_line_ = now;
  if (!log_->terminal().rewrites) return log_->info(format_progress(state));
  log_->status(format_progress(state, log_->terminal().columns));
  last_rewrite_ = now;
  if (line_due) log_->record(format_progress(state));
  if (state.step >= state.steps) end_line();
}

}  // namespace jigsaw::inline train
