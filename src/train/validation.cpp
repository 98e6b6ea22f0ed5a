#include "train/validation.h"

#include <cmath>

#include "comm/agreement.h"
#include "kernels/pointwise.h"

namespace jigsaw {

std::vector<std::string> channel_names(const std::vector<Channel>& channels) {
  std::vector<std::string> names;
  for (const Channel& channel : channels) names.push_back(channel.name);
  return names;
}

double target_scale(const Channel& target, const Statistics& statistics, Predict predict) {
  const FieldStatistics& field = statistics.of(target.field);
  const bool increment = predict == Predict::kIncrement && target.role == Role::kPrognostic;
  return increment ? field.increment_deviation : field.deviation;
}

Json ValidationResult::metrics(std::size_t lead) const {
  Json json = Json::object();
  for (const auto& [name, score] : scores[lead]) {
    json[name] = {{"rmse", score.rmse}, {"bias", score.bias}, {"persistence_rmse", score.persistence_rmse}};
  }
  return json;
}

/// Per variable: sums over windows of the spatial means, in the target's normalisation.
struct Validation::Sums {
  struct Mean {
    double sum = 0, count = 0;
    double value() const { return sum / count; }
  };
  std::vector<Mean> squares, errors, persistence;
  double loss = 0, windows = 0;

  void add(std::vector<Mean>& means, const GlobalSums& global) {
    means.resize(static_cast<std::size_t>(global.variables));
    for (std::int64_t b = 0; b < global.samples; ++b) {
      for (std::int64_t c = 0; c < global.variables; ++c) {
        if (!global.has_points(b, c)) continue;
        means[static_cast<std::size_t>(c)].sum += global.mean(b, c);
        means[static_cast<std::size_t>(c)].count += 1;
      }
    }
  }
};

Validation::Validation(const Rank& rank, PlanBook& plans, Forecaster& forecaster, Dataset& data,
                       const FieldLoss& loss, std::int64_t batch_size, int rollout, DType dtype,
                       DType input_type)
    : rank_(rank),
      plans_(plans),
      forecaster_(forecaster),
      data_(data),
      reader_(data.make_reader()),
      loss_(loss),
      score_({}, data.grid().row_weights(), channel_names(data.channels().targets)),
      batch_size_(batch_size),
      rollout_(rollout),
      dtype_(dtype),
      input_type_(input_type) {}

BatchRequest Validation::request(std::int64_t batch) const {
  const std::vector<Time>& windows = data_.valid_windows();
  const auto first = static_cast<std::size_t>(batch * batch_size_);
  const std::size_t last = std::min(first + static_cast<std::size_t>(batch_size_), windows.size());
  BatchRequest request;
  request.times.assign(windows.begin() + static_cast<std::ptrdiff_t>(first),
                       windows.begin() + static_cast<std::ptrdiff_t>(last));
  const auto samples = static_cast<std::int64_t>(last - first);
  request.input = rank_.box(forecaster_.model().input_layout(rank_.mesh, samples));
  request.target = rank_.box(forecaster_.model().output_layout(rank_.mesh, samples));
  request.rollout = rollout_;
  request.baseline = true;
  request.dtype = input_type_;
  return request;
}

void Validation::add(const Batch& batch, std::int64_t samples, std::vector<Sums>& sums) const {
  Tape tape(rank_, plans_, Tape::Mode::kForward, dtype_);
  const Layout layout = forecaster_.model().output_layout(rank_.mesh, samples);
  forecaster_.run(tape, batch, samples, [&](int r, const Variable& prediction) {
    Sums& lead = sums[static_cast<std::size_t>(r)];
    const Array& target = batch.targets[static_cast<std::size_t>(r)];
    const Array piece = prediction.value().piece;
    lead.loss +=
        loss_.value(loss_.sums(rank_, loss_.norm(), piece, target, layout)) * static_cast<double>(samples);
    lead.windows += static_cast<double>(samples);
    lead.add(lead.squares, score_.sums(rank_, ErrorNorm::kSquared, piece, target, layout));
    lead.add(lead.errors, score_.sums(rank_, ErrorNorm::kSigned, piece, target, layout));
    lead.add(lead.persistence, score_.sums(rank_, ErrorNorm::kSquared, batch.baseline, target, layout));
  });
}

std::map<std::string, VariableScore> Validation::scores(const Sums& sums) const {
  std::map<std::string, VariableScore> result;
  const std::vector<Channel>& targets = data_.channels().targets;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const double scale = target_scale(targets[c], data_.statistics(), data_.options().predict);
    result[targets[c].name] = {std::sqrt(sums.squares[c].value()) * scale, sums.errors[c].value() * scale,
                               std::sqrt(sums.persistence[c].value()) * scale};
  }
  return result;
}

ValidationResult Validation::run() {
  const auto windows = static_cast<std::int64_t>(data_.valid_windows().size());
  const std::int64_t batches = (windows + batch_size_ - 1) / batch_size_;
  std::vector<Sums> sums(static_cast<std::size_t>(rollout_));
  Prefetch prefetch([this](std::int64_t batch) { return reader_.read(request(batch), rank_.context); }, 0,
                    batches);
  for (std::int64_t i = 0; i < batches; ++i) {
    Batch batch;
    together(rank_.mesh.world(), [&] { batch = prefetch.next(); });
    add(batch, std::min(batch_size_, windows - i * batch_size_), sums);
  }
  ValidationResult result;
  for (const Sums& lead : sums) {
    result.loss += lead.loss / lead.windows / static_cast<double>(rollout_);
    result.scores.push_back(scores(lead));
  }
  return result;
}

}  // namespace jigsaw
