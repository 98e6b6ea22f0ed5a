#include "train/training_batches.h"

namespace jigsaw::inline train {

TrainingBatches::TrainingBatches(const Configuration& configuration, Objective& objective,
                                 const PlacedModel& placed)
    : options_(configuration.train),
      workers_(configuration.data.workers),
      seed_(static_cast<std::uint64_t>(configuration.seed)),
      objective_(objective),
      placed_(placed),
      sampler_(objective.data().count(Split::kTrain), configuration.train.batch_size,
               Sampler::Order::kShuffled, seed_) {}

int TrainingBatches::leads_of(std::int64_t step) const {
  const RandomStream random(seed_, RandomPurpose::kRollout, "length");
  const double draw = random.uniform({static_cast<std::uint64_t>(step + 1), 0, 0}, 0);
  return options_.rollout.at(step + 1, draw);
}

Batch TrainingBatches::read(std::int64_t number, const Context& host) {
  const std::int64_t step = number / options_.accumulate, part = number % options_.accumulate;
  const std::int64_t samples = placed_.samples();
  std::vector<std::int64_t> all;
  std::unique_ptr<SampleReader> reader;
  {
    const std::lock_guard lock(mutex_);
    all = sampler_.batch(step);
    if (!readers_.empty()) {
      reader = std::move(readers_.back());
      readers_.pop_back();
    }
  }
  if (!reader) reader = objective_.data().open_reader();
  const auto first = all.begin() + part * samples;
  SampleRequest request;
  request.samples.assign(first, first + samples);
  request.position = {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(part * samples), 0};
  request.input = placed_.input_box(samples);
  request.target = placed_.target_box(objective_.loss(), samples);
  request.rollout = leads_of(step);
  request.dtype = placed_.types().master;
  Batch batch = reader->read(request, host);
  const std::lock_guard lock(mutex_);
  readers_.push_back(std::move(reader));
  return batch;
}

void TrainingBatches::go_on_behind(const SamplesSeen& seen) {
  const std::lock_guard lock(mutex_);
  sampler_.go_on_behind(seen);
}

ReadAhead TrainingBatches::ahead() const {
  const std::int64_t samples = placed_.samples(), leads = options_.rollout.most();
  // The input, forcings of each lead behind the first, and where a rollout goes on.
  const std::int64_t forcings = placed_.forecaster().forced() ? leads - 1 : 0;
  const std::int64_t inputs = 1 + forcings + (leads > 1 ? 1 : 0);
  const std::int64_t elements = inputs * placed_.input_box(samples).extent.count() +
                                leads * placed_.target_box(objective_.loss(), samples).extent.count();
  return ReadAhead::within_budget(elements * size_of(placed_.types().master), workers_);
}

Batch batch_of_shapes(const PlacedModel& placed, const Loss& loss, int leads) {
  BatchRequest request;
  request.input = placed.input_box(placed.samples());
  request.target = placed.target_box(loss, placed.samples());
  request.rollout = leads;
  request.dtype = placed.types().master;
  return allocate_batch(request, placed.forecaster().forced(), placed.rank().context);
}

}  // namespace jigsaw::inline train
