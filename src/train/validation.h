#pragma once
#include <functional>
#include <optional>

#include "task/rollouts.h"

namespace jigsaw::inline train {

/// Runs the forecaster over all validation samples and scores its predictions.
class Validation {
 public:
  using Use = Rollouts::Use;
  /// The same with the number of the batch.
  using BatchUse =
      std::function<void(std::int64_t number, int lead, const ShardedTensor& prediction, const Batch& batch)>;

  /// @param physical  whether states in physical units are all that is made of the predictions: batches hold
  /// Batch::origin, and predictions lie as Clamped::kFarBeyond says.
  explicit Validation(OpenedRun& run, bool physical = false);

  /// From now on the first batch holds Batch::origin.
  void read_first_origin() { first_origin_ = true; }
  std::int64_t batches() const { return (samples_ + batch_size_ - 1) / batch_size_; }
  int leads() const { return run_.configuration().validation_rollout(); }
  /// This rank's piece of a batch, 0 … batches() − 1, at one lead, 0 … leads() − 1. @throws DataError
  Batch read(std::int64_t batch, int lead, const Context& host);
  /// Nothing when it was cut short. Collective.
  ///
  /// @param stop  asked before each batch, on all ranks alike; true ends it there. Collective.
  /// @param also  called for each lead of each batch, too; may be empty. Collective.
  std::optional<ValidationResult> run(const std::function<bool()>& stop, const BatchUse& also = {});
  /// Calls `use(lead, prediction, batch)` for each lead of each batch. Collective, as `use` may be.
  /// @param done  told the part that is done behind each batch; may be empty.
  void run(const Use& use, const std::function<void(double)>& done = {});
  /// Reads the first and the last batch and runs the model on them: what would stop a validation stops it
  /// now, and nothing of it counts as the run's work or traffic. Collective. @throws DataError
  void rehearse();

 private:
  /// Whether it came to the end.
  bool run(const BatchUse& use, const std::function<bool()>& stop);
  BatchUse adding_to(Scores& scores);
  void run_next(Rollouts& rollouts, std::int64_t number, const BatchUse& use);
  std::int64_t samples_of(std::int64_t batch) const;

  OpenedRun& run_;
  std::unique_ptr<SampleReader> reader_;
  std::int64_t samples_, batch_size_;
  Clamped clamped_;
  bool origin_, first_origin_ = false;
};

}  // namespace jigsaw::inline train
