#include "train/memory_estimate.h"

#include "comm/record/record.h"
#include "optim/optimizer.h"
#include "train/training_batches.h"

namespace jigsaw::inline train {

MemoryEstimate estimate_memory(const Configuration& configuration, Objective& objective, int rank,
                               int ranks) {
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, rank, ranks);
  PlacedModel placed(configuration, objective, *world);
  const Optimizer optimizer(placed.rank(), placed.model().parameters(), configuration.optimizer);
  const Rank& here = placed.rank();
  Tape tape(here, placed.plans(), Tape::Mode::kRecord, placed.types().compute);
  tape.set_training(true);
  const Batch batch = batch_of_shapes(placed, objective.loss(), configuration.train.rollout.most());
  Tape earlier(here, placed.plans(), Tape::Mode::kForward, placed.types().compute);
  earlier.set_training(true);
  const auto add_gradient = [&](int, const Variable& prediction) {
    if (prediction.slot() == nullptr) return;
    const ShardedTensor value = prediction.value();
    prediction.slot()->add(
        here, {Array(context, here.box(value.layout).extent, value.piece.dtype()), value.layout});
  };
  const bool last_only = configuration.train.rollout_gradient == RolloutGradient::kLast;
  placed.forecaster().run(tape, batch, placed.samples(), add_gradient, last_only ? &earlier : nullptr);
  tape.backward();
  return {context.arena().peak_bytes(Purpose::kParameters) + context.arena().peak_bytes(Purpose::kGradients),
          optimizer.optimizer_bytes(), context.arena().peak_bytes(Purpose::kActivations),
          context.tally().flops * static_cast<double>(configuration.train.accumulate)};
}

}  // namespace jigsaw::inline train
