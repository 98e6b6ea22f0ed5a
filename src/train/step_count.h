#pragma once
#include "optim/optimizer.h"
#include "task/opened_run.h"
#include "train/described_objective.h"

namespace jigsaw::inline train {

/// What one rank holds and computes in a training step of the longest rollout, found by making the step on
/// arrays without memory. Bytes are those that summary.json says of a run.
struct StepCount {
  std::int64_t parameter_bytes = 0, optimizer_bytes = 0;
  std::int64_t gradient_bytes = 0, activation_bytes = 0, workspace_bytes = 0, input_bytes = 0;  ///< peaks
  std::int64_t memory_bytes = 0;  ///< the most at one moment; workspaces inside kernels are not in it
  double flops = 0;
};

/// What a GPU holds besides: the next batch, which goes up while it computes, and the copy of a batch that
/// recorded steps read; the copy of parameters in bf16, where they are taken so; and an operation's
/// workspace: the most there is (kernels/cuda_workspace.h), or of small models as much as all else together.
void hold_on_gpu(const TrainOptions& train, StepCount& count);

/// Makes a step of a run whose ranks record and have no memory.
StepCount count_step(OpenedRun& run, Optimizer& optimizer);

/// Plans, by these costs, and makes a step as a rank of a job of so many. Not collective; takes as long as
/// planning does. @throws ConfigError
StepCount count_step(const Configuration& configuration, const DataDescription& data, int rank, int ranks,
                     const CostModel& costs);

}  // namespace jigsaw::inline train
