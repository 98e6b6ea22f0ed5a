#pragma once
#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "base/log.h"
#include "comm/watchdog.h"
#include "images/label_scan.h"
#include "optim/optimizer.h"
#include "samples/prefetch.h"
#include "task/opened_run.h"
#include "train/checkpointer.h"
#include "train/data_remarks.h"
#include "train/metrics_log.h"
#include "train/nan_search.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/run_observer.h"
#include "train/run_trace.h"
#include "train/time_left.h"
#include "train/training_batches.h"
#include "train/training_state.h"
#include "train/training_step.h"
#include "train/validation.h"

namespace jigsaw::inline train {

/// What the command line says beside the configuration.
struct RunOptions {
  std::filesystem::path config_folder;  ///< from which relative data files start
  std::string command_line;
  Json versions = Json::object();
  std::string resume = "auto";  ///< "auto", "never", or a checkpoint's folder
  bool allow_change = false;
  Verify verify = Verify::kBytes;  ///< what is checked of a checkpoint before it is loaded
  std::string init_from;           ///< a checkpoint's folder, for a run that has none to resume from
  double max_minutes = 0;          ///< 0: no limit
  TraceOptions trace;
  bool find_nan = false;                     ///< replay steps that go wrong, see NanSearch
  const std::atomic<int>* stop = nullptr;    ///< the number of a signal: end with a checkpoint; 0: none
  std::vector<RunObserver*> observers = {};  ///< look on
  /// Called when the run's own watchdog begins, or is not wanted: who watched before that may end.
  std::function<void()> on_watched = [] {};
  /// Seconds since some moment, for what is timed and for the limit.
  std::function<double()> clock = monotonic_seconds;
};

/// Trains one model on one rank of a job: opens the run and its folder, makes the steps, validates, and
/// writes checkpoints. Every member function is collective.
///
/// On a device a step is told while the next one runs, unless something depends on what it found.
///
/// What a step has learned is saved before its validation, which a signal or the time limit cuts short at its
/// next batch; a run that goes on from there makes up for the validation first.
class Trainer {
 public:
  /// @throws ConfigError, DataError, CheckpointError (alike on all ranks)
  Trainer(const Configuration& configuration, const RunOptions& options, Communicator& world, Log& log);
  ~Trainer();

  /// As RunOptions::stop, from now on.
  void stop_on(const std::atomic<int>& signal) { options_.stop = &signal; }

  /// kDone, or kStopped after a signal or at the time limit.
  ExitCode run();

 private:
  /// Why a run ends early; the greatest of all ranks counts.
  enum class Stop : std::uint8_t { kNo, kLate, kAsked, kGone };

  Opening opening(const Configuration& configuration);
  void open_run_directory(const Configuration& configuration);
  void open_watchdog(const Configuration& configuration);
  void resume();
  void open_steps(std::int64_t first);
  ExitCode run_from(std::int64_t first);
  ExitCode train(std::int64_t first);
  bool make_up_for_validation();
  void make_up_for_best();
  void go_on_behind(const SamplesSeen& seen);
  /// Whether validations have not improved for as long as validation.patience says.
  bool out_of_patience() const;
  bool improves() const;
  void warn_of_other_data(const Json& line);
  void note_improvement();
  void count_skipped(const StepResult& result, std::int64_t step);
  void require_points(std::int64_t step);
  /// Looks whether the scan has found a label that is none; after the last step waits for its end.
  void poll_labels(bool last);
  /// What kernels have to say, of this rank's pieces, where it speaks.
  void tell_kernels();
  void note_empty_targets(const StepResult& result, std::int64_t step);
  void write_metrics(const Json& line);
  void log_step(std::int64_t step, const StepResult& result, double seconds, double communication,
                double flops);
  void show_step(std::int64_t step, const StepResult& result, double seconds, double flops);
  bool validates_at(std::int64_t step) const;
  Stop validate(std::int64_t step);
  void tell_validation(std::int64_t step, double seconds);
  Validation::BatchUse observing() const;
  void measure_machine();
  std::optional<CheckpointScore> score() const;
  /// A step that was begun and not told.
  struct BegunStep {
    std::int64_t step;
    double time;                           ///< when it was begun
    double flops = 0;                      ///< of the rank
    std::optional<StepResult> found = {};  ///< where it is known already
  };
  void begin_step(std::int64_t step);
  void tell_steps(std::size_t left);
  void tell_step(const BegunStep& begun, const StepResult& result);
  bool must_be_known(std::int64_t step) const;
  bool run_step(std::int64_t step);
  bool stop_early(std::int64_t step);
  void save(const std::optional<CheckpointScore>& score);
  void count_time(double seconds);
  Stop should_stop(double ahead);
  Stop look_for_directory();
  double now() const { return options_.clock(); }
  void set_metrics_aside(bool found);
  bool summary_stands(std::int64_t steps);
  void take_last_lines(std::int64_t step, Json& results) const;
  void finish(std::int64_t step);

  RunOptions options_;
  Communicator& world_;
  Log& log_;
  double started_ = 0;
  std::shared_ptr<Heartbeat> heartbeat_ =
      current_heartbeat() ? current_heartbeat() : std::make_shared<Heartbeat>();
  WorksFor works_for_{heartbeat_};
  RunTrace trace_;
  // Opened by run_, on its way.
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Watchdog> watchdog_;
  std::optional<GivenStatistics> given_;
  std::optional<GridOrder> order_;
  OpenedRun run_;
  DataRemarks remarks_;
  const Configuration& config_;
  std::int64_t steps_;
  std::int64_t first_step_ = 1;  ///< of this start
  std::unique_ptr<Optimizer> optimizer_;
  TrainingStep step_;
  std::optional<NanSearch> nan_search_;
  TrainingState state_;
  TrainingBatches batches_;
  std::unique_ptr<Validation> validation_;
  std::unique_ptr<LabelScan> labels_;  // these two last: their threads use what stands above
  std::unique_ptr<Prefetch> prefetch_;
  std::optional<ValidationResult> last_validation_, before_last_validation_;
  Json last_numbers_;  ///< of the last validation, as metrics.jsonl has them
  TimeLeft time_left_;
  double apart_seconds_ = 0;        ///< of validations and saves in the step under way
  std::optional<Machine> machine_;  ///< measured or given; none with reference kernels
  bool empty_targets_noted_ = false, found_points_ = false, validation_data_compared_ = false;
  bool from_elsewhere_ = false;      // its checkpoint is another run's, and not yet saved here
  std::int64_t empty_steps_ = 0;     ///< since the process began
  std::int64_t recorded_steps_ = 0;  ///< see RecordedSteps
  std::deque<BegunStep> begun_;
  double told_ = 0, communicated_ = 0;  ///< when the last step was told, and communication until then
  StepResult last_{.loss = std::numeric_limits<double>::quiet_NaN()};  ///< of the step told last
  double longest_step_ = 0;        ///< seconds, without validations and saves
  double longest_validation_ = 0;  ///< seconds
  std::int64_t not_improved_ = 0;  ///< validations since one improved checkpoint.best
  double saved_ = 0;               ///< when the last save was begun, or the first step
  bool minutes_over_ = false;      ///< as the last should_stop() agreed on: checkpoint.minutes since saved_
  double looked_ = 0;              ///< for the run directory
  std::string gone_;               ///< why it is gone, on rank 0
  std::string stop_cause_;         ///< of the last should_stop() that said so
};

}  // namespace jigsaw::inline train
