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
  std::string loss_type;  ///< what the loss is, "mse"
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;
  std::optional<double> peak_share;  ///< of what this rank's products could do, 0 to 1
  std::int64_t memory_bytes = 0;     ///< the most that this rank has held; 0: not known
  std::optional<double> seconds_left;
};

/// "step 120/600  loss 0.01234 (mse)  learning rate 1.00e-03  45.3 samples/s  61 % of peak  1.2 GiB  0:48
/// left"; what is not known is left out, and what does not fit into so many columns (0: all does): memory
/// first, then the share of peak, the name of the loss, the learning rate, samples per second.
std::string format_progress(const ProgressState& state, int columns = 0);

/// Shows people where a run stands: on a terminal one line that is rewritten in place, elsewhere a plain
/// line every few seconds, and the first and the last. log.txt gets those plain lines in both cases.
class Progress {
 public:
  explicit Progress(Log& log) : log_(&log) {}

  /// Whether update() would show a step now. @param now  seconds on a clock that only goes forward.
  bool is_due(std::int64_t step, std::int64_t steps, double now) const;
  void update(const ProgressState& state, double now);
  /// Ends a line that is being rewritten, so that other text can follow.
  void end_line() { log_->end_status(true); }

 private:
  static constexpr double kSecondsBetweenLines = 5;
  static constexpr double kSecondsBetweenRewrites = 0.1;

  bool line_is_due(std::int64_t step, std::int64_t steps, double now) const;

  Log* log_;
  std::optional<double> last_line_, last_rewrite_;
};

}  // namespace jigsaw::inline train
