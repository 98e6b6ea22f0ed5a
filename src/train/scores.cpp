#include "train/scores.h"

#include <cmath>
#include <limits>
#include <span>

#include "array/transfer.h"
#include "base/text.h"
#include "kernels/pointwise.h"
#include "train/physical_states.h"

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
        score_({}, data.grid().row_weights(), channel_names(data.channels().targets)),
        physical_(data.channels(), data.statistics(), data.options().predict),
        leads_(static_cast<std::size_t>(rollout)) {}

  void add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch) override {
    Lead& sums = leads_[static_cast<std::size_t>(lead)];
    const Array& target = batch.target(lead);
    const auto sums_of = [&](const ErrorMeasure& measure, const Array& piece, const Array& wanted) {
      return score_.sums(rank, measure, piece, wanted, prediction.layout).read(rank.context);
    };
    const FieldSums losses = loss_.sums(rank, prediction.piece, target, prediction.layout);
    const WeightedMean loss = loss_.mean(rank.context, losses.parts()).read(rank.context);
    std::vector<double> all = {loss.sum, loss.weight};
    const Errors errors = physical_.transformed() ? physical_errors(rank, prediction, target, batch)
                                                  : Errors{prediction.piece, target, batch.baseline,
                                                           where_both(rank.context, target, batch.baseline)};
    append_means(all, sums_of(ErrorNorm::kSquared, errors.prediction, errors.target));
    append_means(all, sums_of(ErrorNorm::kSigned, errors.prediction, errors.target));
    append_means(all, sums_of(ErrorNorm::kSquared, errors.baseline, errors.baseline_target));
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

  /// What is compared with what.
  struct Errors {
    Array prediction, target, baseline, baseline_target;
  };

  /// Errors in physical units, formed in float64 whatever holds them, beside targets of 0; NaN where nothing
  /// is compared.
  Errors physical_errors(const Rank& rank, const ShardedTensor& prediction, const Array& target,
                         const Batch& batch) const {
    const Layout& layout = prediction.layout;
    const std::vector<double> truth = physical_.of(rank, layout, target, batch.origin);
    const Shape extent = rank.box(layout).extent;
    const auto compare = [&](const std::vector<double>& states, bool where_both_are, Array& errors,
                             Array& targets) {
      std::vector<double> error(truth.size()), wanted(truth.size());
      for (std::size_t i = 0; i < truth.size(); ++i) {
        error[i] = states[i] - truth[i];
        wanted[i] =
            std::isnan(where_both_are ? error[i] : truth[i]) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
        if (std::isnan(wanted[i])) error[i] = 0;
      }
      errors = constant(rank.context, extent, target.dtype(), error);
      targets = constant(rank.context, extent, target.dtype(), wanted);
    };
    Errors result;
    compare(physical_.predicted(rank, layout, prediction.piece, batch.origin), false, result.prediction,
            result.target);
    compare(physical_.of(rank, layout, batch.baseline, batch.origin), true, result.baseline,
            result.baseline_target);
    return result;
  }

  /// The target where the baseline is there, too; NaN elsewhere, as times zero keeps it.
  static Array where_both(Context& context, const Array& target, const Array& baseline) {
    Array nothing = jigsaw::add(context, baseline, baseline);
    scale(context, nothing, 0.0);
    return jigsaw::add(context, target, nothing);
  }

  /// Of each variable the sum of the means of these samples, and how many have one.
  static void append_means(std::vector<double>& all, const SampleSums& sums) {
    const std::size_t first = all.size();
    all.resize(first + 2 * static_cast<std::size_t>(sums.variables));
    for (std::int64_t b = 0; b < sums.samples; ++b) {
      for (std::int64_t c = 0; c < sums.variables; ++c) {
        if (!sums.has_points(b, c)) continue;
        const std::size_t at = first + 2 * static_cast<std::size_t>(c);
        all[at] += sums.mean(b, c);
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
  FieldLoss score_;  // area-weighted, every variable alike
  PhysicalStates physical_;
  std::vector<Lead> leads_;
};

}  // namespace

std::unique_ptr<Scores> make_forecast_scores(const Dataset& data, const FieldLoss& loss, int rollout) {
  return std::make_unique<ForecastScores>(data, loss, rollout);
}

}  // namespace jigsaw::inline train
