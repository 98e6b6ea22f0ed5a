#include "train/step_count.h"

#include <algorithm>

#include "comm/record/record.h"
#include "kernels/cuda_workspace.h"
#include "train/training_batches.h"
#include "train/training_step.h"

namespace jigsaw::inline train {

void hold_on_gpu(StepCount& count) {
  const std::int64_t workspace = std::min(kMostCudaWorkspaceBytes, count.memory_bytes);
  count.memory_bytes += count.input_bytes + workspace;
  count.input_bytes *= 2;
  count.workspace_bytes += workspace;
}

StepCount count_step(OpenedRun& run, Optimizer& optimizer) {
  const Configuration& configuration = run.configuration();
  Context& context = run.placed().rank().context;
  const int leads = configuration.train.rollout.most();
  const double before = context.tally().flops;
  TrainingStep step(run, optimizer, 1);
  const StepResult result = step.run(1, [&] { return batch_of_shapes(run.placed(), run.loss(), leads); });
  // On shapes alone nothing calls for the update.
  if (!result.finite) optimizer.step(1.0, 1.0, 0.0, leads * configuration.train.accumulate);
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
