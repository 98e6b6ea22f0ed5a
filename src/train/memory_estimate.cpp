#include "train/memory_estimate.h"

#include "comm/record/record.h"
#include "optim/optimizer.h"
#include "train/placed_model.h"

namespace jigsaw::inline train {

namespace {

/// A batch of the longest rollout, of shapes alone.
Batch shapes_of_batch(const PlacedModel& placed, const Loss& loss, const Context& context, int rollout) {
  const Shape input = placed.input_box(placed.samples()).extent,
              target = placed.target_box(loss, placed.samples()).extent;
  const DType dtype = placed.types().master;
  Batch batch;
  batch.input = Array(context, input, dtype, Purpose::kInput);
  for (int r = 0; r < rollout; ++r) {
    batch.targets.emplace_back(context, target, dtype, Purpose::kInput);
    if (r > 0) batch.forcings.emplace_back(context, input, dtype, Purpose::kInput);
  }
  if (batch.targets.size() > 1) batch.present = Array(context, input, dtype, Purpose::kInput);
  return batch;
}

}  // namespace

MemoryEstimate estimate_memory(const Configuration& configuration, Objective& objective, int rank,
                               int ranks) {
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, rank, ranks);
  PlacedModel placed(configuration, objective, *world);
  const Optimizer optimizer(placed.rank(), placed.model().parameters(), configuration.optimizer);
  const Rank& here = placed.rank();
  Tape tape(here, placed.plans(), Tape::Mode::kRecord, placed.types().compute);
  tape.set_training(true);
  const Batch batch = shapes_of_batch(placed, objective.loss(), context, configuration.train.rollout.max);
  placed.forecaster().run(tape, batch, placed.samples(), [&](int, const Variable& prediction) {
    const ShardedTensor value = prediction.value();
    prediction.slot()->add(
        here, {Array(context, here.box(value.layout).extent, value.piece.dtype()), value.layout});
  });
  tape.backward();
  return {context.arena().peak_bytes(Purpose::kParameters) + context.arena().peak_bytes(Purpose::kGradients),
          optimizer.optimizer_bytes(), context.arena().peak_bytes(Purpose::kActivations),
          context.tally().flops * static_cast<double>(configuration.train.accumulate)};
}

}  // namespace jigsaw::inline train
