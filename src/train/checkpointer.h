#pragma once
#include <optional>
#include <string>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/writer.h"
#include "task/configuration.h"

namespace jigsaw::inline train {

/// The checkpoint that a run goes on from; of those in the folder that are not whole a warning says so.
/// Collective.
///
/// @param folder  the run's checkpoints.
/// @param resume  "auto": the newest whole one of the folder, if any; "never"; or a checkpoint's folder.
/// @throws CheckpointError  also where none in the folder is whole.
std::optional<FoundCheckpoint> checkpoint_to_resume(const std::string& folder, const std::string& resume,
                                                    Verify verify, Communicator& world, Log& log);

/// The checkpoints of one run: when to save, and what to do when that fails. Every member function is
/// collective.
class Checkpointer {
 public:
  /// Removes what a run left that died while saving.
  Checkpointer(const CheckpointOptions& options, std::string folder, Communicator& world, Log& log);

  /// Once the run is where it goes on from (nullptr: at its begin): checkpoints of the folder that were saved
  /// after it belong to another history and are moved aside, so that "auto" never takes them.
  /// @return  whether the checkpoint that it goes on from is another folder's: the state is to be saved here
  ///          at once, so that "auto" goes on from there, too.
  bool begin(const FoundCheckpoint* from);
  /// Then, on rank 0: whether it goes on from a checkpoint of this folder, and whether others were moved
  /// aside.
  bool goes_on() const { return goes_on_; }
  bool moved_aside() const { return moved_aside_; }

  /// Whether the state after a step is to be saved.
  bool is_due(std::int64_t step, bool last) const {
    return options_.every > 0 && (last || step % options_.every == 0);
  }
  /// Whether the validation of a state makes it the best, so that it is to be saved with its score.
  bool is_best(const std::optional<CheckpointScore>& score) const {
    return options_.every > 0 && score && improves(score->value);
  }
  /// Whether a checkpoint with a score stands.
  bool has_best() const { return best_.has_value(); }
  /// Waits for the save before.
  ///
  /// @param pieces  which may not change before copied() is called.
  void save(CheckpointManifest manifest, const std::vector<CheckpointPiece>& pieces);
  /// What a device does to the pieces from now on comes behind their copies.
  void copied() { writer_.copied(); }
  /// Once a step: says how a save ended. @throws AgreedError  of code kCheckpoint after three failed in a
  /// row.
  void poll() { tell(writer_.poll()); }
  /// Waits for the save under way and says how it ended.
  void finish() { tell(writer_.finish()); }
  /// The same for the last one of a run, which must stand. @throws AgreedError  when it does not.
  void finish_last();

  /// Whether the last one could not be saved, as far as that is told.
  bool failing() const { return failures_in_row_ > 0; }
  /// How long the slowest save took until it stood.
  double longest_seconds() const { return longest_seconds_; }

 private:
  void tell(const std::optional<SaveOutcome>& outcome);
  void tell_failure(const SaveOutcome& outcome);
  void find_best();
  bool improves(double score) const;
  std::string what_is_kept() const;

  CheckpointOptions options_;
  Retention retention_;
  CheckpointFolder folder_;
  Communicator& world_;
  Log& log_;
  CheckpointWriter writer_;
  std::optional<double> best_;    ///< of those that stand
  std::optional<double> saving_;  ///< of the save under way
  bool goes_on_ = false, moved_aside_ = false;
  bool one_stands_ = false;  ///< a checkpoint of this run, from which it could go on
  int failures_in_row_ = 0;
  std::string failure_;  ///< of the last that failed
  double longest_seconds_ = 0;
};

}  // namespace jigsaw::inline train
