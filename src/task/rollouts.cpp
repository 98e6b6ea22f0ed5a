#include "task/rollouts.h"

#include <utility>

#include "comm/agreement.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline task {

namespace {

/// Leads that are read beside those that run: lead 0, where that is not one of them.
int leads_before(int first) {
  return first > 1 ? 2 : first;
}

}  // namespace

Rollouts::Rollouts(OpenedRun& run, Load load, std::int64_t batches, int leads, Clamped clamped, int first)
    : run_(run),
      clamped_(clamped),
      first_(first),
      prefetch_(
          [load = std::move(load), first, reads = leads - first + leads_before(first)](std::int64_t step) {
            const int read = static_cast<int>(step % reads);
            return load(step / reads, read == 0 ? 0 : read + first - leads_before(first));
          },
          0, batches * (leads - first + leads_before(first))) {}

Batch Rollouts::next_lead() {
  Batch part;
  together(run_.world(), [&] { part = upload(run_.placed().rank().context, prefetch_.next()); });
  return part;
}

void Rollouts::run_next(std::int64_t samples, const Use& use) {
  run_next(samples, {},
           [&](int lead, const ShardedTensor& prediction, const Batch& batch, const RolloutState& /*state*/) {
             use(lead, prediction, batch);
             return true;
           });
}

void Rollouts::run_next(std::int64_t samples, RolloutState state, const UseState& use) {
  PlacedModel& placed = run_.placed();
  Batch batch = next_lead();
  if (first_ > 1) batch.go_on(next_lead());
  Tape tape(placed.rank(), placed.plans(), Tape::Mode::kForward, placed.types().compute);
  const auto next = [&](int lead, const Variable& predicted, const RolloutState& reached) {
    if (lead > 0) batch.go_on(next_lead());
    return use(lead, redistribute(placed.rank(), predicted.value(), placed.compared_layout(samples)), batch,
               reached);
  };
  placed.forecaster().run(tape, batch, samples, first_, std::move(state), next, nullptr, clamped_);
}

}  // namespace jigsaw::inline task
