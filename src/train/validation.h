#pragma once
#include "samples/prefetch.h"
#include "train/forecaster.h"
#include "train/objective.h"

namespace jigsaw {

/// Runs the forecaster over all validation samples and scores its predictions.
class Validation {
 public:
  Validation(const Rank& rank, PlanBook& plans, Forecaster& forecaster, Objective& objective,
             std::int64_t batch_size, int rollout, DType dtype, DType input_type);

  /// Collective.
  ValidationResult run();

 private:
  SampleRequest request(std::int64_t batch) const;

  Rank rank_;
  PlanBook& plans_;
  Forecaster& forecaster_;
  Objective& objective_;
  std::unique_ptr<SampleReader> reader_;
  std::int64_t samples_, batch_size_;
  int rollout_;
  DType dtype_, input_type_;
};

}  // namespace jigsaw
