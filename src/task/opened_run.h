#pragma once
#include <filesystem>
#include <functional>
#include <memory>

#include "base/log.h"
#include "samples/sampler.h"
#include "task/given_statistics.h"
#include "task/placed_model.h"

namespace jigsaw::inline task {

/// What goes with the opening of a run.
struct Opening {
  /// Called on all ranks when what costs little was checked, before data is read for statistics. Collective.
  std::function<void()> checked;
  /// Tells how far the pass over the data is; may be null.
  Log* log = nullptr;
  /// Folder of statistics that runs share; empty: none.
  std::filesystem::path cache;
  /// Statistics to take instead of those that data.normalization says; may be null.
  const GivenStatistics* given = nullptr;
  /// Which samples the data must hold.
  DataUse use;
};

/// Where runs of this user keep what others can use: $XDG_CACHE_HOME/jigsaw-train, else
/// $HOME/.cache/jigsaw-train; empty where neither is set.
std::filesystem::path cache_folder();

/// Shows how far a pass over the data for statistics is. @param log  lives as long as the pass.
void tell_statistics(StatisticsPass& pass, Log& log);

/// What a configuration names, opened and built on the ranks of a job: its data with loss and scores, and its
/// model on its mesh. Training, validation, checks and predictions begin with it.
class OpenedRun {
 public:
  /// Collective: what throws on one rank throws on all.
  ///
  /// @param folder  that of the configuration, from which relative names start.
  /// @throws ConfigError, DataError
  OpenedRun(const Configuration& configuration, const std::filesystem::path& folder, Communicator& world,
            const Opening& opening = {});
  /// The same with the model on other ranks than those that read the data: on ones that are only planned for.
  OpenedRun(const Configuration& configuration, const std::filesystem::path& folder, Communicator& world,
            Communicator& model_ranks, const Opening& opening);
  /// Of an objective that is there: on ranks that are only planned for, of data that are only described.
  /// @param costs, known  see PlacedModel.
  OpenedRun(const Configuration& configuration, std::unique_ptr<Objective> objective, Communicator& world,
            const CostModel& costs = {}, const std::vector<BlockPlan>& known = {});

  const Configuration& configuration() const { return configuration_; }
  /// The checkpoint whose statistics were given, or "".
  const std::string& statistics_from() const { return statistics_from_; }
  Communicator& world() { return world_; }
  Objective& objective() { return *objective_; }
  SampleSource& data() { return objective_->data(); }
  const SampleSource& data() const { return objective_->data(); }
  const Loss& loss() const { return objective_->loss(); }
  PlacedModel& placed() { return *placed_; }
  const PlacedModel& placed() const { return *placed_; }

  /// Whether the configuration asks for validations and has data for them.
  bool validates() const;
  /// Updates that the configuration asks for: train.steps, or as many as its epochs take, with those made
  /// before the batch size changed.
  std::int64_t total_steps() const;
  /// Of a run that goes on with another batch size than it had.
  void go_on_behind(const SamplesSeen& seen) { seen_ = seen; }
  const SamplesSeen& seen() const { return seen_; }

 private:
  Configuration configuration_;
  std::string statistics_from_;
  Communicator& world_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<PlacedModel> placed_;
  SamplesSeen seen_;
};

/// @throws ConfigError  when `checkpoint.best` names no number that this run's validations give.
void check_best(const Configuration& configuration, const SampleSource& data);

}  // namespace jigsaw::inline task
