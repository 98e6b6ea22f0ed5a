#include "train/rollouts.h"

#include "comm/agreement.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline train {

Rollouts::Rollouts(OpenedRun& run, Load load, std::int64_t batches, int leads, Clamped clamped)
    : run_(run),
      clamped_(clamped),
      prefetch_([load = std::move(load),
                 leads](std::int64_t step) { return load(step / leads, static_cast<int>(step % leads)); },
                0, batches * leads) {}

Batch Rollouts::next_lead() {
  Batch part;
  together(run_.world(), [&] { part = upload(run_.placed().rank().context, prefetch_.next()); });
  return part;
}

void Rollouts::run_next(std::int64_t samples, const Use& use) {
  PlacedModel& placed = run_.placed();
  Batch batch = next_lead();
  Tape tape(placed.rank(), placed.plans(), Tape::Mode::kForward, placed.types().compute);
  const auto next = [&](int lead, const Variable& prediction) {
    if (lead > 0) batch.go_on(next_lead());
    use(lead, redistribute(placed.rank(), prediction.value(), placed.compared_layout(samples)), batch);
  };
  placed.forecaster().run(tape, batch, samples, next, nullptr, clamped_);
}

}  // namespace jigsaw::inline train
