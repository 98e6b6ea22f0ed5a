#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/best_is.h"
#include "config/config.h"
#include "fields/data_options.h"
#include "layers/registry.h"
#include "optim/registry.h"
#include "task/ensemble.h"
#include "task/loss_types.h"
#include "task/run_machine.h"

namespace jigsaw::inline task {

/// How many ranks cut what; the product is the number of ranks.
struct MeshOptions {
  int data = 1;
  std::vector<int> domain;
  int tensor = 1;
};
void declare(Keys<MeshOptions>& keys);

enum class DeviceChoice : std::uint8_t { kAuto, kCpu, kCuda };
enum class Precision : std::uint8_t { kFloat32, kBfloat16, kFloat64 };
/// In what order sums over ranks are added: one for all transports, or what NCCL finds fastest.
enum class Reduction : std::uint8_t { kOrdered, kFast };
/// Through which leads of a rollout gradients flow.
enum class RolloutGradient : std::uint8_t { kAll, kLast };
enum class Recompute : std::uint8_t { kNone, kBlock };

/// Rollout steps of training: fixed, drawn for each step, or by the number of the step.
struct RolloutOptions {
  int min = 1, max = 1;
  std::vector<int> leads;          ///< empty: between min and max
  std::vector<std::int64_t> from;  ///< the step, from 1 on, from which leads[i] holds; ascending

  bool operator==(const RolloutOptions&) const = default;
  /// Of any step.
  int most() const;
  int fewest() const;
  /// Leads that a step runs, by its number from 1 on. @param draw  in [0, 1), where they are drawn.
  int at(std::int64_t step, double draw) const;
};
void declare(Keys<RolloutOptions>& keys);

/// The most updates of a run: times the most samples of each they are a number still.
inline constexpr std::int64_t kMostUpdates = 1'000'000'000;

struct TrainOptions {
  std::optional<std::int64_t> steps;
  std::optional<double> epochs;
  std::int64_t batch_size = 8;
  std::int64_t accumulate = 1;
  Precision precision = Precision::kFloat32;
  bool tf32 = false;
  bool deterministic = true;
  bool graphs = true;
  RolloutOptions rollout;
  std::vector<double> rollout_weights;
  RolloutGradient rollout_gradient = RolloutGradient::kAll;
  Recompute recompute = Recompute::kNone;
  std::int64_t max_skipped = 5;

  /// Weight of lead `r` (0 is the first) of so many in the loss.
  double lead_weight(int r, int leads) const;
};
void declare(Keys<TrainOptions>& keys);

/// Forecasts of each sample that run side by side, and by which inputs they differ.
struct EnsembleOptions {
  int members = 1;
  int local_noise = 0, global_noise = 0;  ///< channels of the input

  int noise_channels() const { return local_noise + global_noise; }
};
void declare(Keys<EnsembleOptions>& keys);

struct ValidationOptions {
  std::int64_t every = 100;
  std::vector<std::int64_t> overlap;
  std::optional<double> peak;  ///< nothing for "auto"
  std::optional<int> rollout;  ///< nothing: as train.rollout
  std::int64_t patience = 0;   ///< validations that do not improve checkpoint.best; 0: any number
  bool climatology = false;
  /// Of evaluate, by name of a variable or field, in the unit of the files; ascending.
  std::map<std::string, std::vector<double>> thresholds = {};
  std::vector<std::int64_t> fss_scales = {};  ///< points along an edge of a neighbourhood; odd, ascending
};
void declare(Keys<ValidationOptions>& keys);

struct CheckpointOptions {
  std::int64_t every = 500;
  std::int64_t keep = 3;
  std::int64_t keep_every = 0;
  double minutes = 0;  ///< of the clock, between checkpoints at most; 0: as `every` says
  std::string best;
  BestIs best_is = BestIs::kAuto;
};
void declare(Keys<CheckpointOptions>& keys);

/// How --init-from takes parameters.
struct InitOptions {
  std::vector<std::string> skip;
};
void declare(Keys<InitOptions>& keys);

/// The whole configuration of a run.
struct Configuration {
  std::string name = "run";
  std::int64_t seed = 1;
  std::optional<MeshOptions> mesh;
  Zero zero = Zero::kNone;
  DeviceChoice device = DeviceChoice::kAuto;
  Reduction reduction = Reduction::kOrdered;
  std::optional<MachineOptions> machine;
  double watchdog_seconds = 600;
  DataOptions data;
  Tagged model;
  Tagged loss;
  Tagged optimizer;
  Tagged schedule;
  TrainOptions train;
  EnsembleOptions ensemble;
  ValidationOptions validation;
  CheckpointOptions checkpoint;
  InitOptions init;
  std::int64_t log_every = 1;
  bool report = false;
  bool tensorboard = false;
  std::string output = "runs/run";

  /// Leads that a validation runs.
  int validation_rollout() const { return validation.rollout.value_or(train.rollout.most()); }
};
void declare(Keys<Configuration>& keys);

/// The ensemble of a configuration, beside the samples that run at a time.
Members members_of(const Configuration& configuration);

/// A resolved configuration as a checkpoint holds it, with the defaults of keys that are newer than it; as it
/// is where it cannot be read any more.
Json with_new_keys(const Json& stored);

/// The mesh for a number of ranks: as configured, or "auto": the cut of the domain whose largest piece, in
/// whole units (patches), is smallest.
MeshOptions resolved_mesh(const std::optional<MeshOptions>& mesh, int ranks, const Shape& space,
                          const std::vector<std::int64_t>& units);

}  // namespace jigsaw::inline task
