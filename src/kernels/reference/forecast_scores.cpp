#include <algorithm>
#include <cmath>

#include "array/raw_memory.h"
#include "kernels/front/forecast_scores_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// One point's part in the sums of a region.
struct PointScore {
  double weight, forecast, truth, reference, climate;

  template <typename Add>
  void add_to(const Add& add) const {
    if (weight == 0 || std::isnan(truth)) return;
    const double error = forecast - truth;
    add(ScoreSum::kWeight, weight);
    add(ScoreSum::kSquares, weight * error * error);
    add(ScoreSum::kAbsolute, weight * std::abs(error));
    add(ScoreSum::kErrors, weight * error);
    add(ScoreSum::kTruthValues, weight * truth);
    if (const double off = reference - truth; !std::isnan(off)) {
      add(ScoreSum::kReferenceWeight, weight);
      add(ScoreSum::kReferenceSquares, weight * off * off);
      add(ScoreSum::kReferenceAbsolute, weight * std::abs(off));
    }
    if (std::isnan(climate)) return;
    add(ScoreSum::kClimateWeight, weight);
    add(ScoreSum::kProduct, weight * (forecast - climate) * (truth - climate));
    add(ScoreSum::kForecast, weight * (forecast - climate) * (forecast - climate));
    add(ScoreSum::kTruth, weight * (truth - climate) * (truth - climate));
  }
};

/// Joins a part of one time to mean and squares that are of `count` times with it.
void join(double part_mean, double part_squares, double count, double& mean, double& squares) {
  const double apart = part_mean - mean;
  mean += apart / count;
  squares += part_squares + apart * apart * (count - 1) / count;
}

class ForecastScores : public ForecastScoresKernels {
 public:
  void states(Context&, const Array& values, const Array& origin, std::span<const StateChannel> channels,
              Array& states) const override {
    visit(values.dtype(), [&](auto zero) {
      for (std::int64_t i = 0; i < values.count(); ++i) {
        const StateChannel& channel = channels[static_cast<std::size_t>(i) % channels.size()];
        states.data<double>()[i] =
            channel.state(static_cast<double>(values.data<decltype(zero)>()[i]), origin.data<double>()[i]);
      }
    });
  }

  void hide_missing(Context&, const Array& origin, Array& states, Array& not_finite) const override {
    std::ranges::fill(not_finite.span<double>(), 0.0);
    for (std::int64_t i = 0; i < states.count(); ++i) {
      double& state = states.data<double>()[i];
      if (std::isnan(origin.data<double>()[i])) {
        state = origin.data<double>()[i];
      } else if (!std::isfinite(state)) {
        not_finite.data<double>()[i % not_finite.count()] += 1;
      }
    }
  }

  void sums(Context&, const ScoredStates& states, const Array& weights, Array& sums) const override {
    const std::int64_t samples = sums.shape()[1], regions = sums.shape()[2], channels = sums.shape()[3],
                       points = weights.shape()[1];
    const auto at = [](const Array& field, std::int64_t i) {
      return field.defined() ? field.data<double>()[i] : std::nan("");
    };
    const auto climate = [&](std::int64_t i) {
      const Array& field = states.climatology;
      return field.defined() ? static_cast<double>(field.data<float>()[i]) : std::nan("");
    };
    std::ranges::fill(sums.span<double>(), 0.0);
    for (std::int64_t i = 0; i < samples * points * channels; ++i) {
      const std::int64_t sample = i / channels / points, point = i / channels % points;
      for (std::int64_t r = 0; r < regions; ++r) {
        const PointScore score{weights.data<double>()[r * points + point], at(states.forecast, i),
                               at(states.truth, i), at(states.reference, i), climate(i)};
        score.add_to([&](ScoreSum kind, double part) {
          const std::int64_t row = (static_cast<std::int64_t>(kind) * samples + sample) * regions + r;
          sums.data<double>()[row * channels + i % channels] += part;
        });
      }
    }
  }

  void truth_ranks(Context&, const Array& forecasts, const Array& truth, const Array& weights,
                   Array& sums) const override {
    const std::int64_t members = sums.shape()[0] - 1, samples = sums.shape()[1], regions = sums.shape()[2],
                       channels = sums.shape()[3], points = weights.shape()[1], each = points * channels;
    std::ranges::fill(sums.span<double>(), 0.0);
    for (std::int64_t i = 0; i < samples * each; ++i) {
      const double wanted = truth.data<double>()[i];
      if (std::isnan(wanted)) continue;
      const std::int64_t sample = i / each, point = i / channels % points;
      std::int64_t below = 0, equal = 0;
      bool known = true;
      for (std::int64_t j = 0; j < members; ++j) {
        const double state = forecasts.data<double>()[(sample * members + j) * each + i % each];
        below += state < wanted ? 1 : 0;
        equal += state == wanted ? 1 : 0;
        known = known && !std::isnan(state);
      }
      const std::int64_t first = known ? below : 0, last = known ? below + equal : members;
      for (std::int64_t r = 0; r < regions; ++r) {
        const double weight = weights.data<double>()[r * points + point];
        if (weight == 0) continue;
        const double part = known ? weight / static_cast<double>(equal + 1) : std::nan("");
        for (std::int64_t k = first; k <= last; ++k)
          sums.data<double>()[((k * samples + sample) * regions + r) * channels + i % channels] += part;
      }
    }
  }

  void exceedances(Context&, const Array& forecasts, const Array& truth, std::span<const double> thresholds,
                   const Array& weights, Array& sums) const override {
    const std::int64_t samples = sums.shape()[1], regions = sums.shape()[2], channels = sums.shape()[3],
                       points = weights.shape()[1], each = points * channels,
                       members = samples * each > 0 ? forecasts.count() / (samples * each) : 0,
                       kinds = 2 * (members + 1);
    std::ranges::fill(sums.span<double>(), 0.0);
    for (std::int64_t i = 0; i < samples * each * (std::ssize(thresholds) / channels); ++i) {
      const std::int64_t t = i / each / samples, sample = i / each % samples, element = i % each;
      const double threshold = thresholds[static_cast<std::size_t>(t * channels + element % channels)],
                   wanted = truth.data<double>()[sample * each + element];
      if (std::isnan(wanted) || std::isnan(threshold)) continue;
      std::int64_t reached = 0;
      bool known = true;
      for (std::int64_t j = 0; j < members; ++j) {
        const double state = forecasts.data<double>()[(sample * members + j) * each + element];
        reached += state >= threshold ? 1 : 0;
        known = known && !std::isnan(state);
      }
      const std::int64_t kind = (wanted >= threshold ? 0 : members + 1) + reached;
      for (std::int64_t r = 0; r < regions; ++r) {
        const double weight = weights.data<double>()[r * points + element / channels];
        if (weight == 0) continue;
        for (std::int64_t k = known ? kind : 0; k <= (known ? kind : kinds - 1); ++k)
          sums.data<double>()[(((t * kinds + k) * samples + sample) * regions + r) * channels +
                              element % channels] += known ? weight : std::nan("");
      }
    }
  }

  void moments(Context&, const Array& forecasts, const Array& truth, TimeMoments& moments) const override {
    const std::int64_t each = truth.count(), members = forecasts.shape()[0];
    const auto m = static_cast<double>(members);
    for (std::int64_t i = 0; i < each; ++i) {
      const double wanted = truth.data<double>()[i];
      if (std::isnan(wanted)) continue;
      double mean = 0, squares = 0;
      for (std::int64_t j = 0; j < members; ++j) mean += forecasts.data<double>()[j * each + i] / m;
      for (std::int64_t j = 0; j < members; ++j) {
        const double apart = forecasts.data<double>()[j * each + i] - mean;
        squares += apart * apart / m;
      }
      const double count = moments.count.data<double>()[i] += 1;
      join(mean, squares, count, moments.forecast_mean.data<double>()[i],
           moments.forecast_squares.data<double>()[i]);
      join(wanted, 0, count, moments.truth_mean.data<double>()[i], moments.truth_squares.data<double>()[i]);
    }
  }
};

}  // namespace

template <>
const ForecastScoresKernels& kernels() {
  static const ForecastScores instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
