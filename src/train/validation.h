#pragma once
#include <functional>
#include <optional>

#include "samples/prefetch.h"
#include "train/opened_run.h"

namespace jigsaw::inline train {

/// Runs the forecaster over all validation samples and scores its predictions.
class Validation {
 public:
  explicit Validation(OpenedRun& run);

  std::int64_t batches() const { return (samples_ + batch_size_ - 1) / batch_size_; }
  /// This rank's piece of a batch, 0 … batches() − 1. @throws DataError
  Batch read(std::int64_t batch, const Context& host);
  /// Nothing when it was cut short. Collective.
  ///
  /// @param stop  asked before each batch, on all ranks alike; true ends it there. Collective.
  std::optional<ValidationResult> run(const std::function<bool()>& stop);
  /// Reads the first and the last batch and runs the model on them: what would stop a validation stops it
  /// now, and nothing of it counts as the run's work or traffic. Collective. @throws DataError
  void rehearse();

 private:
  void add(std::int64_t batch, const Batch& values, Scores& scores);
  std::int64_t samples_of(std::int64_t batch) const;

  OpenedRun& run_;
  std::unique_ptr<SampleReader> reader_;
  std::int64_t samples_, batch_size_;
};

}  // namespace jigsaw::inline train
