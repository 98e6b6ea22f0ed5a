#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "task/opened_run.h"

namespace jigsaw::inline predict {

/// Which weights of a checkpoint are taken.
enum class Weights : std::uint8_t {
  kAuto,        ///< their moving average where there is one, as validation does
  kAverage,     ///< their moving average
  kParameters,  ///< those of the last step
};
/// "auto", "always" (the average) or "never". @throws ConfigError
Weights parse_weights(const std::string& average);

/// A model as a checkpoint holds it, on the mesh of this job, with the data of a configuration: what predicts
/// and evaluates. Fields are normalised as they were in training.
class TrainedModel {
 public:
  /// Collective: what throws on one rank throws on all.
  ///
  /// @param checkpoint  its folder, or one that checkpoint_at() finds it in; removed before it is loaded, as
  /// beside a training that keeps few, it is chosen anew.
  /// @throws CheckpointError  when it cannot be used or is of another model, with the key that differs;
  /// ConfigError, DataError
  TrainedModel(const Configuration& configuration, const std::filesystem::path& folder,
               const std::string& checkpoint, Weights weights, const DataUse& use, Communicator& world,
               Log& log);

  OpenedRun& run() { return *run_; }
  const std::string& path() const { return path_; }
  std::int64_t step() const { return step_; }
  /// "averaged weights of step 200 of runs/uk/checkpoints/step_00000200".
  const std::string& description() const { return description_; }
  /// The parts of data that it was trained on, as its configuration has them; none where that is not known.
  const std::vector<DataPart>& trained_on() const { return trained_on_; }
  /// A digest of the weights that were loaded, on rank 0; elsewhere "".
  const std::string& digest() const { return digest_; }

 private:
  void open(const Configuration& configuration, const std::filesystem::path& folder,
            const std::optional<GivenStatistics>& given, const DataUse& use, Communicator& world);
  void load(const FoundCheckpoint& found, const std::string& kind, Log& log);

  std::string path_, description_, digest_;
  std::int64_t step_ = 0;
  std::vector<DataPart> trained_on_;
  std::unique_ptr<OpenedRun> run_;
};

/// Models of one configuration whose predictions are averaged, such as those of the folds of a
/// cross-validation.
using TrainedModels = std::vector<TrainedModel>;

/// One for each checkpoint, as TrainedModel opens it. Collective.
/// @throws ConfigError  where two are one and the same
TrainedModels open_models(const Configuration& configuration, const std::filesystem::path& folder,
                          const std::vector<std::string>& checkpoints, Weights weights, const DataUse& use,
                          Communicator& world, Log& log);
/// Those of all, joined.
std::string description_of(const TrainedModels& models);

}  // namespace jigsaw::inline predict
