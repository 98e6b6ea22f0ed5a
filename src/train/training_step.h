#pragma once
#include <deque>

#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "samples/prefetch.h"
#include "task/opened_run.h"
#include "train/device_batches.h"
#include "train/recorded_steps.h"

namespace jigsaw::inline train {

struct StepResult {
  double loss = 0;  ///< NaN when it is empty
  double norm = 0;  ///< of the gradient, before clipping
  double rate = 0;  ///< optimizer.learning_rate as scheduled
  int leads = 1;    ///< of its rollout
  double data_wait = 0;
  /// From its first work on a device to the last, by the device's clock; 0 on a host.
  double device_seconds = 0;
  bool recorded = false;  ///< see RecordedSteps
  /// Whether loss and norm are finite; the step was skipped otherwise.
  bool finite = true;
  bool empty = false;  ///< no target of the batch has a valid point
  /// Targets, one of each sample and lead, without a valid point: they add nothing to the loss.
  std::int64_t empty_targets = 0;
};

/// One step of training: forward and backward over the parts of a batch, then the update. On a device its
/// work is put in without waiting for results, the update, too, which is decided there: so the next step may
/// begin before the host knows what this one found.
class TrainingStep {
 public:
  /// Steps that may have begun and not been finished.
  static constexpr int kMostBegun = 2;

  TrainingStep(OpenedRun& run, Optimizer& optimizer, std::int64_t steps);

  /// Has `f` called before the state changes that checkpoints hold.
  void before_update(std::function<void()> f) { before_update_ = std::move(f); }

  /// Collective.
  ///
  /// @param step   from 1 on.
  /// @param parts  gives the parts of the step's batch next.
  void begin(std::int64_t step, Prefetch& parts);
  /// What the first step found that was begun and not finished; on a device the host waits for it.
  StepResult finish();
  /// Of which the schedule takes the last to be.
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// Why steps are no longer recorded (RecordedSteps); said once, then "".
  std::string take_remark() { return recorded_.take_remark(); }
  /// Both.
  StepResult run(std::int64_t step, Prefetch& parts);
  /// The same of parts that are not read ahead: the host puts all of it in.
  StepResult run(std::int64_t step, const std::function<Batch()>& next_part);

 private:
  /// A step that was begun.
  struct Begun {
    StepResult result;  ///< what the host knows of it
    Array numbers;      ///< UpdateNumbers: on the host, or of page-locked memory into which they come
    DeviceRuntime::Ticket come;
    std::int64_t first = 0, last = 0;  ///< instants of the device
  };

  /// @param ready_part  empty: batches are not read ahead, and the step is not recorded (RecordedSteps).
  void begin(std::int64_t step, const std::function<Batch()>& next_part,
             const std::function<std::optional<Batch>()>& ready_part);
  Begun fetch(const Array& numbers) const;
  void run_parts(std::int64_t step, const std::function<Batch()>& next_part,
                 const std::function<std::optional<Batch>()>& ready_part, std::int64_t& forwards);
  void forget_part();
  MeanArray run_part(std::int64_t step, std::int64_t part, const Batch& batch, double scale);

  OpenedRun& run_;
  const Configuration& config_;
  Optimizer& optimizer_;
  std::int64_t steps_;
  std::unique_ptr<Schedule> schedule_;
  DeviceBatches batches_;
  RecordedSteps recorded_;
  MeanArray total_;  ///< of the step that is put in
  int leads_ = 1;    ///< of its rollout
  std::int64_t first_instant_ = 0;
  double full_weight_;  ///< of a batch of which no point is missing
  std::deque<Begun> begun_;
  std::function<void()> before_update_ = [] {};
};

}  // namespace jigsaw::inline train
