#include "train/validation.h"

#include <algorithm>
#include <numeric>

#include "comm/agreement.h"

namespace jigsaw {

Validation::Validation(const Rank& rank, PlanBook& plans, Forecaster& forecaster, Objective& objective,
                       std::int64_t batch_size, int rollout, DType dtype, DType input_type)
    : rank_(rank),
      plans_(plans),
      forecaster_(forecaster),
      objective_(objective),
      reader_(objective.data().open_reader()),
      samples_(objective.data().count(Split::kValid)),
      batch_size_(batch_size),
      rollout_(rollout),
      dtype_(dtype),
      input_type_(input_type) {}

SampleRequest Validation::request(std::int64_t batch) const {
  SampleRequest request;
  request.split = Split::kValid;
  request.samples.resize(static_cast<std::size_t>(std::min(batch_size_, samples_ - batch * batch_size_)));
  std::iota(request.samples.begin(), request.samples.end(), batch * batch_size_);
  const auto samples = std::ssize(request.samples);
  const Model& model = forecaster_.model();
  request.input = rank_.box(model.input_layout(rank_.mesh, samples));
  request.target =
      rank_.box(objective_.loss().target_layout(rank_.mesh, model.output_layout(rank_.mesh, samples)));
  request.rollout = rollout_;
  request.baseline = true;
  request.dtype = input_type_;
  return request;
}

ValidationResult Validation::run() {
  const std::int64_t batches = (samples_ + batch_size_ - 1) / batch_size_;
  const std::unique_ptr<Scores> scores = objective_.make_scores();
  Prefetch prefetch([this](std::int64_t batch) { return reader_->read(request(batch), rank_.context); }, 0,
                    batches);
  for (std::int64_t i = 0; i < batches; ++i) {
    Batch batch;
    together(rank_.mesh.world(), [&] { batch = prefetch.next(); });
    Tape tape(rank_, plans_, Tape::Mode::kForward, dtype_);
    forecaster_.run(
        tape, batch, std::min(batch_size_, samples_ - i * batch_size_),
        [&](int lead, const Variable& prediction) { scores->add(rank_, lead, prediction.value(), batch); });
  }
  return scores->result();
}

}  // namespace jigsaw
