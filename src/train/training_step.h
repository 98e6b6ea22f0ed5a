#pragma once
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "samples/prefetch.h"
#include "train/device_batches.h"
#include "train/opened_run.h"

namespace jigsaw::inline train {

struct StepResult {
  double loss = 0;  ///< NaN when it is empty
  double norm = 0;  ///< of the gradient, before clipping
  double rate = 0;  ///< optimizer.learning_rate as scheduled
  double data_wait = 0;
  /// Whether loss and norm are finite; the step was skipped otherwise.
  bool finite = true;
  bool empty = false;  ///< no target of the batch has a valid point
  /// Targets, one of each sample and lead, without a valid point: they add nothing to the loss.
  std::int64_t empty_targets = 0;
};

/// One step of training: forward and backward over the parts of a batch, then the update. On a device its
/// work is put in without waiting for results; between backward and update the host reads the loss and the
/// gradient's norm at once, and decides by them.
class TrainingStep {
 public:
  TrainingStep(OpenedRun& run, Optimizer& optimizer, std::int64_t steps);

  /// Has `f` called before the state changes that checkpoints hold.
  void before_update(std::function<void()> f) { before_update_ = std::move(f); }

  /// Collective.
  ///
  /// @param step   from 1 on.
  /// @param parts  gives the parts of the step's batch next.
  StepResult run(std::int64_t step, Prefetch& parts);
  /// The same of parts that are not read ahead.
  StepResult run(std::int64_t step, const std::function<Batch()>& next_part);

 private:
  StepResult run(std::int64_t step, const std::function<Batch()>& next_part,
                 const std::function<std::optional<Batch>()>& ready_part);
  MeanArray run_part(std::int64_t step, std::int64_t part, const Batch& batch, double scale);

  OpenedRun& run_;
  const Configuration& config_;
  Optimizer& optimizer_;
  std::int64_t steps_;
  std::unique_ptr<Schedule> schedule_;
  DeviceBatches batches_;
  std::function<void()> before_update_ = [] {};
};

}  // namespace jigsaw::inline train
