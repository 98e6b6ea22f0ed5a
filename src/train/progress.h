#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"

namespace jigsaw::inline train {

/// Where a run stands after a step.
struct ProgressState {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;
};

/// "step  120/600  loss 0.01234  rate 1.00e-03  45.3 samples/s  0:48 left"; without the last part where the
/// seconds left are not known.
std::string format_progress(const ProgressState& state, std::optional<double> seconds_left);

/// Shows people where a run stands: on a terminal one line that is rewritten in place, elsewhere a plain
/// line every few seconds, and the first and the last. log.txt gets those plain lines in both cases.
class Progress {
 public:
  Progress(Log& log, bool terminal) : log_(&log), terminal_(terminal) {}
  /// Looks itself whether stdout is a terminal.
  explicit Progress(Log& log);

  /// @param now  seconds on a clock that only goes forward.
  void update(const ProgressState& state, double now);
  /// Ends a line that is being rewritten, so that other text can follow.
  void end_line();

 private:
  static constexpr double kSecondsBetweenLines = 5;
  static constexpr double kSecondsBetweenRewrites = 0.1;

  std::optional<double> seconds_left(const ProgressState& state, double now) const;

  Log* log_;
  bool terminal_;
  bool line_open_ = false;
  std::optional<double> first_time_, last_line_, last_rewrite_;
  std::int64_t first_step_ = 0;
};

}  // namespace jigsaw::inline train
