#pragma once
#include "train/objective.h"

namespace jigsaw::inline train {

/// What one rank holds in a training step, in bytes.
struct MemoryEstimate {
  std::int64_t parameters = 0;   ///< as stored, with gradients
  std::int64_t optimizer = 0;    ///< its state, averages included
  std::int64_t activations = 0;  ///< at their peak in forward and backward
  double flops = 0;              ///< of a step
};

/// Plans and runs a step on arrays without memory, as a rank of a job of so many. Not collective; takes as
/// long as planning does.
/// @throws ConfigError
MemoryEstimate estimate_memory(const Configuration& configuration, Objective& objective, int rank, int ranks);

}  // namespace jigsaw::inline train
