#include "train/step_count.h"

#include <algorithm>

#include "comm/record/record.h"
#include "kernels/cuda_workspace.h"
#include "train/training_batches.h"
#include "train/training_step.h"

namespace jigsaw::inline train {

void hold_on_gpu(const TrainOptions& train, StepCount& count) {
  const std::int64_t workspace = std::min(kMostCudaWorkspaceBytes, count.memory_bytes);
  const std::int64_t batches = train.graphs ? 3 : 2;
  count.memory_bytes += (batches - 1) * count.input_bytes + workspace;
  count.input_bytes *= batches;
  if (train.precision == Precision::kBfloat16) count.memory_bytes += count.parameter_bytes / 2;
  count.workspace_bytes += workspace;
}

StepCount count_step(OpenedRun& run, Optimizer& optimizer) {
  Context& context = run.placed().rank().context;
  const int leads = run.configuration().train.rollout.most();
  const double before = context.tally().flops;
  TrainingStep step(run, optimizer, 1);
  step.run(1, [&] { return batch_of_shapes(run.placed(), run.loss(), leads); });
  const Arena& arena = context.arena();
  return {optimizer.parameter_bytes(),
          optimizer.optimizer_bytes(),
          arena.peak_bytes(Purpose::kGradients),
          arena.peak_bytes(Purpose::kActivations),
          arena.peak_bytes(Purpose::kWorkspace),
          arena.peak_bytes(Purpose::kInput),
          arena.peak_bytes(),
          context.tally().flops - before};
}

StepCount count_step(const Configuration& configuration, const DataDescription& data, int rank, int ranks,
                     const CostModel& costs) {
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, rank, ranks);
  OpenedRun run(configuration, described_objective(configuration, data), *world, costs);
  Optimizer optimizer(run.placed().rank(), run.placed().model().parameters(), configuration.optimizer);
  return count_step(run, optimizer);
}

}  // namespace jigsaw::inline train
