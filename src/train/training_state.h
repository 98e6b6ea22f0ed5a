#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "optim/optimizer.h"
#include "samples/sample_source.h"
#include "samples/sampler.h"
#include "task/opened_run.h"

namespace jigsaw::inline train {

// What checkpoints hold of a run: its tensors are "<kind>/<parameter>", of Optimizer::kinds().

/// The arrays that this rank saves or loads, as boxes of whole tensors. They share the optimizer's memory.
std::vector<CheckpointPiece> checkpoint_pieces(const Optimizer& optimizer, Optimizer::Share share);

/// All tensors of a run, in the order of the model.
/// @param kinds  Optimizer::kinds().
std::vector<TensorRecord> expected_tensors(const std::vector<ParameterBlock*>& blocks, DType master,
                                           const std::vector<std::string>& kinds);

/// Placements of the parameters along the mesh's axes, by name.
Json layouts_json(const std::vector<ParameterBlock*>& blocks, const Mesh& mesh);

/// Takes the parameters of a checkpoint, by name, into a run that has made no step. Of a run that was trained
/// without noise all are taken, too: weights of noise become zero, see Parameter::noise().
///
/// @param skip  patterns of names that stay as they were initialised.
/// @return      a report of what matched.
/// @throws CheckpointError  when a parameter has another shape there or none is there; ConfigError naming
///                          init.skip when a pattern matches nothing.
std::string initialise_from(const FoundCheckpoint& found, const std::vector<ParameterBlock*>& blocks,
                            Optimizer& optimizer, const std::vector<std::string>& skip, Communicator& world);

/// @param before  the keys of the run that is to be resumed.
/// @throws ConfigError naming one that differs from the configuration and decides the result.
void require_same_keys(const Json& before, const Configuration& now);

/// That a key differs by which the model of a checkpoint is given its files otherwise than in training:
/// brought to another grid or spacing, or normalised otherwise.
std::optional<std::string> inputs_remark(const FoundCheckpoint& found, const Configuration& configuration);

/// What a warning of other validations ends with.
inline constexpr const char* kScoresCompared =
    "checkpoint.best compares their scores with those of before: the best checkpoint so far stays until "
    "one of now is better; a run of its own, with --init-from, compares scores of now alone";

/// Where a training run stands beside its arrays, and how it comes to stand where a checkpoint was.
class TrainingState {
 public:
  TrainingState(OpenedRun& run, Optimizer& optimizer, Log& log);

  std::int64_t steps_done() const { return steps_done_; }
  /// Before the batch size was what it is.
  const SamplesSeen& seen() const { return seen_; }
  int skipped_in_row() const { return skipped_in_row_; }
  /// Whether restore() has warned that scores of validations do not compare with those of before.
  bool told_other_validations() const { return told_other_validations_; }
  /// A step was made, or skipped.
  void count(std::int64_t step, bool skipped);

  /// Goes on from a checkpoint of a run with this configuration. Collective.
  ///
  /// @param allow_change  although keys or data differ that decide the result.
  /// @throws ConfigError naming what differs; CheckpointError
  void restore(const FoundCheckpoint& found, bool allow_change);
  /// Begins with the parameters of any checkpoint; warns where they were trained on other channels.
  /// Collective. @throws CheckpointError, ConfigError
  void initialise(const FoundCheckpoint& found);

  /// What the manifest of a checkpoint says of the run beside its tensors.
  Json manifest_extra(std::int64_t total_steps) const;

 private:
  /// Of a run that goes on although keys or data are others.
  void tell_allowed(const Json& configuration);
  void tell_changes(const FoundCheckpoint& found);
  void check_data(const Json& extra) const;
  void load(const FoundCheckpoint& found, bool allow_change);

  OpenedRun& run_;
  Optimizer& optimizer_;
  Log& log_;
  std::int64_t steps_done_ = 0;
  SamplesSeen seen_;
  int skipped_in_row_ = 0;
  bool told_other_validations_ = false;
};

}  // namespace jigsaw::inline train
