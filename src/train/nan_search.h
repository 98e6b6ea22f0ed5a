#pragma once
#include <deque>
#include <string>
#include <vector>

#include "base/log.h"
#include "train/training_step.h"

namespace jigsaw::inline train {

/// Makes steps and replays those that go wrong (`--find-nan`). A step whose loss or gradient is not finite
/// runs once more, with every result and gradient of an operation looked at: the first that is not finite is
/// named, with the variables of its batch that stand out, and parameters and their gradients that are not
/// finite. Of a step whose
/// loss leaps (kLeap times the median of the last kRemembered), after which there is no way back, its batch
/// and that of the step before run forward once more: the first operation is named whose largest result is
/// kGrown times as large, or that none is, so that the parameters leapt, and not the data. Keeps the batches
/// of two steps, and costs nothing else while all is well.
class NanSearch {
 public:
  static constexpr double kLeap = 5, kGrown = 4;
  static constexpr std::size_t kRemembered = 20, kNeeded = 5;

  NanSearch(OpenedRun& run, TrainingStep& step, Log& log) : run_(run), step_(step), log_(log) {}

  /// TrainingStep::run(), and what is found is said as a warning. Collective.
  StepResult run(std::int64_t step, Prefetch& parts);

 private:
  struct Forward {
    std::vector<std::string> names;
    std::vector<double> largest;  ///< over all ranks
  };

  void tell_not_finite(std::int64_t step, const StepResult& result);
  void tell_leap(std::int64_t step, const StepResult& result, double usual);
  bool leaps(double loss, double& usual) const;
  /// What of a batch is farthest from 0, normalised: "input t2m (hour -6) reaches 3.2e+19".
  std::string extremes(const std::vector<Batch>& parts) const;
  /// The first parameter that is not finite, or whose gradient is not; "" when all are. Collective.
  std::string first_parameter(bool gradient) const;
  Forward forward(const std::vector<Batch>& parts) const;

  OpenedRun& run_;
  TrainingStep& step_;
  Log& log_;
  std::vector<Batch> parts_, before_;
  std::deque<double> losses_;
};

}  // namespace jigsaw::inline train
