#include "train/scores.h"

#include <cmath>
#include <span>
#include <utility>

#include "kernels/pointwise.h"
#include "train/physical_states.h"
#include "train/score_sums.h"

namespace jigsaw::inline train {

std::vector<std::string> score_measures(const DataOptions& data) {
  if (!data.of_images()) return {"rmse", "bias"};
  if (data.classes > 0) return {"accuracy", "mean_dice"};
  return {"rmse", "bias", "psnr"};
}

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

namespace {

class ForecastScores : public Scores {
 public:
  ForecastScores(const Dataset& data, const FieldLoss& loss, int rollout)
      : data_(data),
        loss_(loss),
        rows_(data.grid().row_weights()),
        score_({}, rows_, channel_names(data.channels().targets)),
        physical_(data.channels(), data.statistics(), data.options().predict),
        leads_(static_cast<std::size_t>(rollout)) {}

  void add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch) override {
    Lead& sums = leads_[static_cast<std::size_t>(lead)];
    const Array& target = batch.target(lead);
    const FieldSums losses = loss_.sums(rank, prediction.piece, target, prediction.layout);
    const WeightedMean loss = loss_.mean(rank.context, losses.parts()).read(rank.context);
    std::vector<double> all = {loss.sum, loss.weight};
    if (physical_.transformed()) {
      append_physical_means(all, rank, prediction, target, batch);
    } else {
      append_normalised_means(all, rank, prediction, target, batch);
    }
    sum_over(rank, losses.group.other_samples, all);
    sums.loss.add({all[0], all[1]});
    const std::span<const double> means = std::span(all).subspan(2);
    const auto each = means.size() / 3;
    add_means(sums.squares, means.first(each));
    add_means(sums.errors, means.subspan(each, each));
    add_means(sums.persistence, means.last(each));
  }

  ValidationResult result() const override {
    ValidationResult result;
    WeightedMean loss;
    for (const Lead& lead : leads_) loss.add(lead.loss);
    result.loss = loss.value();
    const std::vector<Channel>& targets = data_.channels().targets;
    for (const Lead& lead : leads_) {
      Json& metrics = result.leads.emplace_back(Json::object());
      for (std::size_t c = 0; c < targets.size(); ++c) {
        const double scale = physical_.transformed()
                                 ? 1.0
                                 : target_scale(targets[c], data_.statistics(), data_.options().predict);
        const double rmse = std::sqrt(lead.squares[c].value()) * scale, bias = lead.errors[c].value() * scale,
                     persistence = std::sqrt(lead.persistence[c].value()) * scale;
        metrics[targets[c].name] = {{"rmse", rmse}, {"bias", bias}, {"persistence_rmse", persistence}};
      }
    }
    return result;
  }

 private:
  /// Over windows, of the spatial means, in the target's normalisation.
  struct Mean {
    double sum = 0, count = 0;
    double value() const { return sum / count; }
  };
  struct Lead {
    std::vector<Mean> squares, errors, persistence;
    WeightedMean loss;
  };

  /// Of squares, errors and squares of persistence.
  void append_normalised_means(std::vector<double>& all, const Rank& rank, const ShardedTensor& prediction,
                               const Array& target, const Batch& batch) const {
    const auto append = [&](const ErrorMeasure& measure, const Array& piece, const Array& wanted) {
      const SampleSums sums = score_.sums(rank, measure, piece, wanted, prediction.layout).read(rank.context);
      append_means(all, sums.samples, sums.variables, [&](std::int64_t b, std::int64_t c) {
        const std::size_t at = sums.index(b, c);
        return std::pair(sums.numerator[at], sums.denominator[at]);
      });
    };
    append(ErrorNorm::kSquared, prediction.piece, target);
    append(ErrorNorm::kSigned, prediction.piece, target);
    append(ErrorNorm::kSquared, batch.baseline, where_both(rank.context, target, batch.baseline));
  }

  /// The same of states in physical units, in float64 whatever holds the values.
  void append_physical_means(std::vector<double>& all, const Rank& rank, const ShardedTensor& prediction,
                             const Array& target, const Batch& batch) const {
    const Layout& layout = prediction.layout;
    const auto states = [&](const Array& values) { return physical_.of(rank, layout, values, batch.origin); };
    const ScoredStates scored{physical_.predicted(rank, layout, prediction.piece, batch.origin),
                              states(target),
                              states(batch.baseline),
                              {}};
    const Array weights = point_weights(rank, rank.box(layout), rows_);
    const ScoreSums sums = sum_scores(rank, layout, scored, weights.reshaped({1, weights.count()}));
    const auto append = [&](ScoreSum kind, ScoreSum weight) {
      append_means(all, sums.group.samples, sums.channels, [&](std::int64_t b, std::int64_t c) {
        return std::pair(sums.of(kind, b, 0, c), sums.of(weight, b, 0, c));
      });
    };
    append(ScoreSum::kSquares, ScoreSum::kWeight);
    append(ScoreSum::kErrors, ScoreSum::kWeight);
    append(ScoreSum::kReferenceSquares, ScoreSum::kReferenceWeight);
  }

  /// The target where the baseline is there, too; NaN elsewhere, as times zero keeps it.
  static Array where_both(Context& context, const Array& target, const Array& baseline) {
    Array nothing = jigsaw::add(context, baseline, baseline);
    scale(context, nothing, 0.0);
    return jigsaw::add(context, target, nothing);
  }

  /// Of each variable the sum of the means of these samples, and how many have one.
  /// @param sum_and_weight  of a sample and a variable.
  template <typename F>
  static void append_means(std::vector<double>& all, std::int64_t samples, std::int64_t variables,
                           const F& sum_and_weight) {
    const std::size_t first = all.size();
    all.resize(first + 2 * static_cast<std::size_t>(variables));
    for (std::int64_t b = 0; b < samples; ++b) {
      for (std::int64_t c = 0; c < variables; ++c) {
        const auto [sum, weight] = sum_and_weight(b, c);
        if (!(weight > 0)) continue;
        const std::size_t at = first + 2 * static_cast<std::size_t>(c);
        all[at] += sum / weight;
        all[at + 1] += 1;
      }
    }
  }
  static void add_means(std::vector<Mean>& means, std::span<const double> batch) {
    means.resize(batch.size() / 2);
    for (std::size_t c = 0; c < means.size(); ++c) {
      means[c].sum += batch[2 * c];
      means[c].count += batch[2 * c + 1];
    }
  }

  const Dataset& data_;
  const FieldLoss& loss_;
  std::vector<double> rows_;
  FieldLoss score_;  // area-weighted, every variable alike
  PhysicalStates physical_;
  std::vector<Lead> leads_;
};

}  // namespace

std::unique_ptr<Scores> make_forecast_scores(const Dataset& data, const FieldLoss& loss, int rollout) {
  return std::make_unique<ForecastScores>(data, loss, rollout);
}

}  // namespace jigsaw::inline train
