#include "train/validation.h"

#include <algorithm>
#include <numeric>

#include "base/trace.h"

namespace jigsaw::inline train {

namespace {

/// Scores in physical units of transformed variables go from the state at time 0.
bool needs_origin(OpenedRun& run) {
  const std::vector<Channel>& targets = run.data().channels().targets;
  return std::any_of(targets.begin(), targets.end(),
                     [](const Channel& target) { return !target.transform.linear(); });
}

}  // namespace

Validation::Validation(OpenedRun& run, bool physical)
    : run_(run),
      reader_(run.data().open_reader()),
      samples_(run.data().count(Split::kValid)),
      batch_size_(run.placed().samples()),
      clamped_(physical ? Clamped::kFarBeyond : Clamped::kAtEnd),
      origin_(physical || needs_origin(run)) {}

std::int64_t Validation::samples_of(std::int64_t batch) const {
  return std::min(batch_size_, samples_ - batch * batch_size_);
}

Batch Validation::read(std::int64_t batch, int lead, const Context& host) {
  const PlacedModel& placed = run_.placed();
  const std::int64_t samples = samples_of(batch);
  SampleRequest request;
  request.split = Split::kValid;
  request.samples.resize(static_cast<std::size_t>(samples));
  std::iota(request.samples.begin(), request.samples.end(), batch * batch_size_);
  request.input = placed.input_box(samples);
  request.target = placed.target_box(run_.loss(), samples);
  request.rollout = leads();
  request.lead = lead;
  request.baseline = true;
  request.origin = origin_ || (first_origin_ && batch == 0);
  request.dtype = placed.types().master;
  return reader_->read(request, host);
}

void Validation::run_next(Rollouts& rollouts, std::int64_t number, const BatchUse& use) {
  rollouts.run_next(samples_of(number), [&](int lead, const ShardedTensor& prediction, const Batch& batch) {
    use(number, lead, prediction, batch);
  });
}

bool Validation::run(const BatchUse& use, const std::function<bool()>& stop) {
  const Context& host = run_.placed().rank().context.host();
  const auto load = [&](std::int64_t batch, int lead) { return read(batch, lead, host); };
  Rollouts rollouts(run_, load, batches(), leads(), clamped_);
  for (std::int64_t i = 0; i < batches(); ++i) {
    if (stop()) return false;
    run_next(rollouts, i, use);
  }
  return true;
}

void Validation::run(const Use& use, const std::function<void(double)>& done) {
  std::int64_t begun = 0;
  run([&](std::int64_t, int lead, const ShardedTensor& prediction,
          const Batch& batch) { use(lead, prediction, batch); },
      [&] {
        if (done) done(static_cast<double>(begun++) / static_cast<double>(batches()));
        return false;
      });
}

Validation::BatchUse Validation::adding_to(Scores& scores) {
  return [this, &scores](std::int64_t, int lead, const ShardedTensor& prediction, const Batch& batch) {
    scores.add(run_.placed().rank(), lead, prediction, batch);
  };
}

std::optional<ValidationResult> Validation::run(const std::function<bool()>& stop, const BatchUse& also) {
  const std::unique_ptr<Scores> scores = run_.objective().make_scores();
  const BatchUse add = adding_to(*scores);
  const BatchUse both = [&](std::int64_t number, int lead, const ShardedTensor& prediction,
                            const Batch& batch) {
    add(number, lead, prediction, batch);
    if (also) also(number, lead, prediction, batch);
  };
  if (!run(both, stop)) return std::nullopt;
  return scores->result();
}

void Validation::rehearse() {
  Context& context = run_.placed().rank().context;
  const TracePause untraced;
  const Traffic traffic = run_.world().traffic();
  const Tally tally = context.tally();
  {
    const std::unique_ptr<Scores> scores = run_.objective().make_scores();
    const std::int64_t last = batches() - 1;
    const auto load = [&](std::int64_t batch, int lead) {
      return read(batch == 0 ? 0 : last, lead, context.host());
    };
    Rollouts rollouts(run_, load, last > 0 ? 2 : 1, leads());
    run_next(rollouts, 0, adding_to(*scores));
    if (last > 0) run_next(rollouts, last, adding_to(*scores));
  }
  run_.world().traffic() = traffic;
  context.tally() = tally;
  context.arena().reset_peaks();
}

}  // namespace jigsaw::inline train
