#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "comm/watchdog.h"
#include "optim/adamw.h"
#include "samples/prefetch.h"
#include "samples/sampler.h"
#include "train/checkpointer.h"
#include "train/configuration.h"
#include "train/forecaster.h"
#include "train/metrics_log.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/validation.h"

namespace jigsaw {

/// What the command line says beside the configuration.
struct RunOptions {
  std::filesystem::path config_folder;  ///< from which relative data files start
  std::string command_line;
  Json versions = Json::object();
  std::string resume = "auto";  ///< "auto", "never", or a checkpoint's folder
  bool allow_change = false;
  Verify verify = Verify::kBytes;           ///< what is checked of a checkpoint before it is loaded
  std::string init_from;                    ///< a checkpoint's folder, for a run that has none to resume from
  double max_minutes = 0;                   ///< 0: no limit
  const std::atomic<bool>* stop = nullptr;  ///< set by a signal: end with a checkpoint
};

/// The types that a precision stands for.
struct PrecisionTypes {
  DType compute;  ///< activations
  DType master;   ///< stored parameters, gradients, optimizer
  Backend backend;
};
PrecisionTypes types_of(Precision precision);

/// Trains one model on one rank of a job: builds everything from the configuration, runs the steps,
/// validates, writes checkpoints and the run directory. Every member function is collective.
class Trainer {
 public:
  /// @throws ConfigError, DataError, CheckpointError (alike on all ranks)
  Trainer(const Configuration& configuration, const RunOptions& options, Communicator& world, Log& log);
  ~Trainer();

  /// kDone, or kStopped after a signal or at the time limit.
  ExitCode run();

 private:
  struct StepResult {
    double loss = 0, norm = 0, rate = 0, data_wait = 0;
    bool finite = true;
  };

  void open_data();
  void build_model();
  void open_run_directory();
  void resume();
  void restore(const FoundCheckpoint& found);
  void load(const FoundCheckpoint& found);
  void initialise();
  Json mesh_json() const;
  void check_unchanged(const Json& before) const;
  void check_data(const Json& before) const;
  std::int64_t total_steps() const;
  int rollout_of(std::int64_t step) const;
  Batch load(std::int64_t micro_step);
  StepResult train_step(std::int64_t step);
  double run_micro_batch(std::int64_t step, std::int64_t micro, const Batch& batch);
  void count_skipped(const StepResult& result, std::int64_t step);
  void log_step(std::int64_t step, const StepResult& result, double seconds, double communication);
  void validate(std::int64_t step);
  void check_best() const;
  std::optional<CheckpointScore> score() const;
  bool run_step(std::int64_t step);
  void save(std::int64_t step, const std::optional<CheckpointScore>& score);
  bool should_stop();
  void finish(std::int64_t step);
  Json manifest_extra(std::int64_t step) const;

  Configuration config_;
  RunOptions options_;
  Communicator& world_;
  Log& log_;
  PrecisionTypes types_;
  Json resolved_;
  double started_ = 0;
  std::int64_t steps_ = 0, first_step_ = 1, micro_samples_ = 0;
  int skipped_in_row_ = 0;

  std::unique_ptr<Objective> objective_;
  SampleSource* data_ = nullptr;  ///< the objective's
  std::unique_ptr<Model> model_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<Rank> rank_;
  PlanBook plans_;
  std::unique_ptr<Forecaster> forecaster_;
  std::unique_ptr<AdamW> optimizer_;
  std::unique_ptr<Validation> validation_;
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<SampleReader> reader_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<Prefetch> prefetch_;  // last: its thread uses what stands above
  std::optional<ValidationResult> last_validation_;
  double last_loss_ = 0;
  double longest_step_ = 0;  ///< seconds
};

}  // namespace jigsaw
