#include "task/scores.h"

#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"
#include "task/ensemble.h"
#include "task/metric.h"
#include "task/physical_states.h"
#include "task/score_sums.h"

namespace jigsaw::inline task {

Json ValidationResult::numbers(const DataOptions& data) const {
  Json numbers = {{"loss", loss}, {"metrics", metrics(0)}};
  for (std::size_t lead = 1; lead < leads.size(); ++lead)
    numbers["leads"][lead_name(data, lead)] = metrics(lead);
  return numbers;
}

std::vector<std::string> score_measures(const DataOptions& data, std::int64_t members) {
  if (!data.of_images() && members > 1) return {"rmse", "bias", "crps"};
  if (!data.of_images()) return {"rmse", "bias"};
  if (data.classes > 0) {
    std::vector<std::string> measures = {"accuracy", "mean_dice"};
    if (data.regions.empty()) measures.emplace_back("foreground_dice");
    for (std::int64_t k = 0; k < data.label_outputs(); ++k) measures.push_back(concat("dice.", k));
    return measures;
  }
  return {"rmse", "bias", "psnr"};
}

double spread_skill(double spread, double rmse, std::int64_t members) {
  const auto m = static_cast<double>(members);
  return std::sqrt((m + 1) / m) * spread / rmse;
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
  ForecastScores(const SampleSource& data, Predict predict, const CellWeights& cells, const FieldLoss& loss,
                 int rollout, std::int64_t members)
      : data_(data),
        predict_(predict),
        loss_(loss),
        members_(members),
        cells_(cells),
        score_({}, cells_, channel_names(data.channels().targets)),
        of_members_(options_of(members), cells_, channel_names(data.channels().targets)),
        physical_(data.channels(), data.statistics(), predict),
        leads_(static_cast<std::size_t>(rollout)) {}

  void add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch) override {
    Lead& sums = leads_[static_cast<std::size_t>(lead)];
    const Array& target = batch.target(lead);
    const FieldSums losses = loss_.sums(rank, prediction.piece, target, prediction.layout);
    const WeightedMean loss = loss_.mean(rank.context, losses.parts()).read(rank.context);
    std::vector<double> all = {loss.sum, loss.weight};
    if (physical_.transformed()) {
      append_physical_means(all, rank, lead, prediction, batch);
    } else {
      append_normalised_means(all, rank, prediction, target, batch);
    }
    sum_over(rank, losses.group.other_samples, all);
    sums.loss.add({all[0], all[1]});
    const std::span<const double> means = std::span(all).subspan(2);
    const auto each = means.size() / (members_ > 1 ? 5 : 3);
    add_means(sums.squares, means.first(each));
    add_means(sums.errors, means.subspan(each, each));
    add_means(sums.persistence, means.subspan(2 * each, each));
    if (members_ == 1) return;
    add_means(sums.crps, means.subspan(3 * each, each));
    add_means(sums.variance, means.last(each));
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
        const double scale =
            physical_.transformed() ? 1.0 : target_scale(targets[c], data_.statistics(), predict_);
        const double rmse = std::sqrt(lead.squares[c].value()) * scale, bias = lead.errors[c].value() * scale,
                     persistence = std::sqrt(lead.persistence[c].value()) * scale;
        metrics[targets[c].name] = {{"rmse", rmse}, {"bias", bias}, {"persistence_rmse", persistence}};
        if (members_ > 1) add_ensemble(lead, c, scale, metrics[targets[c].name]);
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
    std::vector<Mean> crps, variance;  ///< of several members
    WeightedMean loss;
  };

  static FieldLossOptions options_of(std::int64_t members) {
    FieldLossOptions options;
    options.members.count = members;
    return options;
  }
  void add_ensemble(const Lead& lead, std::size_t channel, double scale, Json& metrics) const {
    const double spread = std::sqrt(lead.variance[channel].value()) * scale;
    metrics["crps"] = lead.crps[channel].value() * scale;
    metrics["spread"] = spread;
    metrics["spread_skill"] = spread_skill(spread, metrics["rmse"].get<double>(), members_);
  }

  /// Of squares, errors and squares of persistence; of several members of their CRPS and variance, too.
  void append_normalised_means(std::vector<double>& all, const Rank& rank, const ShardedTensor& prediction,
                               const Array& target, const Batch& batch) const {
    const Layout layout = of_samples(prediction.layout, members_);
    const Array mean = member_mean(rank.context, prediction.piece, members_);
    append(all, rank, score_, ErrorNorm::kSquared, mean, target, layout);
    append(all, rank, score_, ErrorNorm::kSigned, mean, target, layout);
    append(all, rank, score_, ErrorNorm::kSquared, batch.baseline,
           where_both(rank.context, target, batch.baseline), layout);
    append_ensemble(all, rank, prediction, mean, target);
  }

  /// The same of states in physical units, in float64 whatever holds the values, and of the truth and the
  /// state at time 0 as the files hold them.
  void append_physical_means(std::vector<double>& all, const Rank& rank, int lead,
                             const ShardedTensor& prediction, const Batch& batch) const {
    const Layout layout = of_samples(prediction.layout, members_);
    const ShardedTensor members{physical_.of_members(rank, layout, prediction.piece, batch.origin, members_),
                                prediction.layout};
    const ScoredStates scored{member_mean(rank.context, members.piece, members_),
                              batch.state(lead),
                              where_both(rank.context, batch.origin, batch.baseline),
                              {}};
    const Array weights = point_weights(rank, rank.box(layout), cells_);
    const ScoreSums sums = sum_scores(rank, layout, scored, weights.reshaped({1, weights.count()}));
    const auto append_sums = [&](ScoreSum kind, ScoreSum weight) {
      append_means(all, sums.group.samples, sums.channels, [&](std::int64_t b, std::int64_t c) {
        return std::pair(sums.of(kind, b, 0, c), sums.of(weight, b, 0, c));
      });
    };
    append_sums(ScoreSum::kSquares, ScoreSum::kWeight);
    append_sums(ScoreSum::kErrors, ScoreSum::kWeight);
    append_sums(ScoreSum::kReferenceSquares, ScoreSum::kReferenceWeight);
    append_ensemble(all, rank, members, scored.forecast, scored.truth);
  }

  void append_ensemble(std::vector<double>& all, const Rank& rank, const ShardedTensor& members,
                       const Array& mean, const Array& target) const {
    if (members_ == 1) return;
    append(all, rank, of_members_, ErrorMeasure::crps(1), members.piece, target, members.layout);
    // Squares of what members differ from their mean by, meant over M of them.
    const auto m = static_cast<double>(members_);
    append(all, rank, of_members_, ErrorNorm::kSquared, members.piece, where_both(rank.context, mean, target),
           members.layout, m / (m - 1));
  }

  /// Of the mean over points of each sample. @param layout  as FieldLoss::sums() takes it.
  static void append(std::vector<double>& all, const Rank& rank, const FieldLoss& score,
                     const ErrorMeasure& measure, const Array& piece, const Array& wanted,
                     const Layout& layout, double factor = 1) {
    const SampleSums sums = score.sums(rank, measure, piece, wanted, layout).read(rank.context);
    append_means(all, sums.samples, sums.variables, [&](std::int64_t b, std::int64_t c) {
      const std::size_t at = sums.index(b, c);
      return std::pair(factor * sums.numerator[at], sums.denominator[at]);
    });
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

  const SampleSource& data_;
  Predict predict_;
  const FieldLoss& loss_;
  std::int64_t members_;
  CellWeights cells_;
  FieldLoss score_, of_members_;  // area-weighted, every variable alike
  PhysicalStates physical_;
  std::vector<Lead> leads_;
};

}  // namespace

std::unique_ptr<Scores> make_forecast_scores(const SampleSource& data, Predict predict,
                                             const CellWeights& cells, const FieldLoss& loss, int rollout,
                                             std::int64_t members) {
  return std::make_unique<ForecastScores>(data, predict, cells, loss, rollout, members);
}

}  // namespace jigsaw::inline task
