#pragma once
#include <functional>
#include <optional>

#include "samples/prefetch.h"
#include "train/opened_run.h"

namespace jigsaw::inline train {

/// Runs the forecaster over all validation samples and scores its predictions.
class Validation {
 public:
  using Use = std::function<void(int lead, const ShardedTensor& prediction, const Batch& batch)>;

  /// @param origin  whether batches hold Batch::origin.
  explicit Validation(OpenedRun& run, bool origin = false);

  std::int64_t batches() const { return (samples_ + batch_size_ - 1) / batch_size_; }
  /// This rank's piece of a batch, 0 … batches() − 1. @throws DataError
  Batch read(std::int64_t batch, const Context& host);
  /// Nothing when it was cut short. Collective.
  ///
  /// @param stop  asked before each batch, on all ranks alike; true ends it there. Collective.
  std::optional<ValidationResult> run(const std::function<bool()>& stop);
  /// Calls `use(lead, prediction, batch)` for each lead of each batch. Collective, as `use` may be.
  void run(const Use& use);
  /// Reads the first and the last batch and runs the model on them: what would stop a validation stops it
  /// now, and nothing of it counts as the run's work or traffic. Collective. @throws DataError
  void rehearse();

 private:
  /// Whether it came to the end.
  bool run(const Use& use, const std::function<bool()>& stop);
  Use adding_to(Scores& scores);
  void run_batch(std::int64_t number, const Batch& batch, const Use& use);
  std::int64_t samples_of(std::int64_t batch) const;

  OpenedRun& run_;
  std::unique_ptr<SampleReader> reader_;
  std::int64_t samples_, batch_size_;
  bool origin_;
};

}  // namespace jigsaw::inline train
