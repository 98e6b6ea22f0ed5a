#include "train/validation.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "comm/agreement.h"

namespace jigsaw::inline train {

Validation::Validation(OpenedRun& run)
    : run_(run),
      reader_(run.data().open_reader()),
      samples_(run.data().count(Split::kValid)),
      batch_size_(run.placed().samples()) {}

std::int64_t Validation::samples_of(std::int64_t batch) const {
  return std::min(batch_size_, samples_ - batch * batch_size_);
}

Batch Validation::read(std::int64_t batch, const Context& host) {
  const PlacedModel& placed = run_.placed();
  const std::int64_t samples = samples_of(batch);
  SampleRequest request;
  request.split = Split::kValid;
  request.samples.resize(static_cast<std::size_t>(samples));
  std::iota(request.samples.begin(), request.samples.end(), batch * batch_size_);
  request.input = placed.input_box(samples);
  request.target = placed.target_box(run_.loss(), samples);
  request.rollout = run_.configuration().train.rollout.max;
  request.baseline = true;
  request.dtype = placed.types().master;
  return reader_->read(request, host);
}

void Validation::add(std::int64_t batch, const Batch& values, Scores& scores) {
  PlacedModel& placed = run_.placed();
  Tape tape(placed.rank(), placed.plans(), Tape::Mode::kForward, placed.types().compute);
  placed.forecaster().run(tape, values, samples_of(batch), [&](int lead, const Variable& prediction) {
    scores.add(placed.rank(), lead, prediction.value(), values);
  });
}

std::optional<ValidationResult> Validation::run(const std::function<bool()>& stop) {
  const Context& context = run_.placed().rank().context;
  const std::unique_ptr<Scores> scores = run_.objective().make_scores();
  Prefetch prefetch([&](std::int64_t batch) { return read(batch, context.host()); }, 0, batches());
  for (std::int64_t i = 0; i < batches(); ++i) {
    if (stop()) return std::nullopt;
    Batch batch;
    together(run_.world(), [&] { batch = upload(context, prefetch.next()); });
    add(i, batch, *scores);
  }
  return scores->result();
}

void Validation::rehearse() {
  Context& context = run_.placed().rank().context;
  const Traffic traffic = run_.world().traffic();
  const Tally tally = context.tally();
  const std::unique_ptr<Scores> scores = run_.objective().make_scores();
  for (const std::int64_t i : std::set<std::int64_t>{0, batches() - 1}) {
    Batch batch;
    together(run_.world(), [&] { batch = upload(context, read(i, context.host())); });
    add(i, batch, *scores);
  }
  run_.world().traffic() = traffic;
  context.tally() = tally;
  context.arena().reset_peaks();
}

}  // namespace jigsaw::inline train
