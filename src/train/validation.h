#pragma once
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
  /// Collective.
  ValidationResult run();

 private:
  std::int64_t samples_of(std::int64_t batch) const;

  OpenedRun& run_;
  std::unique_ptr<SampleReader> reader_;
  std::int64_t samples_, batch_size_;
};

}  // namespace jigsaw::inline train
