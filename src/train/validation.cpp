#include "train/validation.h"

#include <algorithm>
#include <numeric>

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

ValidationResult Validation::run() {
  PlacedModel& placed = run_.placed();
  const Rank& rank = placed.rank();
  const std::unique_ptr<Scores> scores = run_.objective().make_scores();
  Prefetch prefetch([&](std::int64_t batch) { return read(batch, rank.context.host()); }, 0, batches());
  for (std::int64_t i = 0; i < batches(); ++i) {
    Batch batch;
    together(run_.world(), [&] { batch = upload(rank.context, prefetch.next()); });
    Tape tape(rank, placed.plans(), Tape::Mode::kForward, placed.types().compute);
    placed.forecaster().run(tape, batch, samples_of(i), [&](int lead, const Variable& prediction) {
      scores->add(rank, lead, prediction.value(), batch);
    });
  }
  return scores->result();
}

}  // namespace jigsaw::inline train
