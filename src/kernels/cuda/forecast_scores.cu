#include <vector>

#include "array/raw_memory.h"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/constants.h"
#include "kernels/front/forecast_scores_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

__device__ double at_least_0(double x) {
  return x < 0 ? 0.0 : x;
}

/// A StateChannel without bytes that nobody set, for constants are found again by their bytes; and its
/// functions, for kernels.
struct Channel {
  std::int64_t increment, function;
  double mean, deviation, epsilon, lambda, low, high;

  __device__ bool has(ValueFunction which) const { return function == static_cast<std::int64_t>(which); }
  __device__ double forward(double x) const {
    if (has(ValueFunction::kNone)) return x;
    const double from = at_least_0(x);
    if (has(ValueFunction::kLog)) return log(from + epsilon);
    if (has(ValueFunction::kSqrt)) return sqrt(from);
    return (pow(from + epsilon, lambda) - 1) / lambda;
  }
  __device__ double inverse(double value) const {
    if (has(ValueFunction::kNone)) return value;
    if (has(ValueFunction::kLog)) return at_least_0(exp(value) - epsilon);
    if (has(ValueFunction::kSqrt)) return at_least_0(value) * at_least_0(value);
    return at_least_0(pow(at_least_0(lambda * value + 1), 1 / lambda) - epsilon);
  }
  __device__ double state(double y, double start) const {
    const double state = inverse((increment != 0 ? forward(start) : mean) + deviation * y);
    return state < low ? low : state > high ? high : state;
  }
};

struct States {
  const Channel* channel;
  std::int64_t channels;
  AnyElements values;
  const double* origin;
  double* states;
  __device__ void operator()(std::int64_t i) const {
    states[i] = channel[i % channels].state(values.get<double>(i), origin[i]);
  }
};

/// Writes each state once, and counts.
struct HideMissing {
  std::int64_t channels;
  const double* origin;
  double* states;

  struct Part {
    double start, state;
    std::int64_t i;
  };
  __device__ Part read(std::int64_t, std::int64_t point, std::int64_t channel) const {
    const std::int64_t i = point * channels + channel;
    return {origin[i], states[i], i};
  }
  __device__ void add(const Part& part, double (&sums)[1]) const {
    if (part.start != part.start) {
      states[part.i] = part.start;
    } else if (!(part.state - part.state == 0)) {
      sums[0] += 1;
    }
  }
};

struct StoreCount {
  double* to;
  __device__ void operator()(std::int64_t channel, const double (&sums)[1]) const { to[channel] = sums[0]; }
};

/// Of sample i / regions and region i % regions.
struct ScoreTerms {
  std::int64_t points, channels, regions;
  const double *forecast, *truth, *reference, *weights;
  const float* climate;

  struct Part {
    double weight, wanted, forecast, reference, climate;  ///< NaN: there is none
  };
  __device__ Part read(std::int64_t i, std::int64_t point, std::int64_t channel) const {
    const std::int64_t at = (i / regions * points + point) * channels + channel;
    const double weight = weights[i % regions * points + point];
    if (weight == 0) return {};
    return {weight, truth[at], forecast[at], reference != nullptr ? reference[at] : NAN,
            climate != nullptr ? static_cast<double>(climate[at]) : NAN};
  }
  __device__ void add(const Part& part, double (&sums)[kScoreSums]) const {
    const double weight = part.weight, wanted = part.wanted, mean = part.climate;
    if (weight == 0 || wanted != wanted) return;
    const auto to = [&](ScoreSum kind, double term) { sums[static_cast<int>(kind)] += term; };
    const double error = part.forecast - wanted, off = part.reference - wanted;
    to(ScoreSum::kWeight, weight);
    to(ScoreSum::kSquares, weight * error * error);
    to(ScoreSum::kAbsolute, weight * fabs(error));
    to(ScoreSum::kErrors, weight * error);
    to(ScoreSum::kTruthValues, weight * wanted);
    if (off == off) {
      to(ScoreSum::kReferenceWeight, weight);
      to(ScoreSum::kReferenceSquares, weight * off * off);
      to(ScoreSum::kReferenceAbsolute, weight * fabs(off));
    }
    if (mean != mean) return;
    const double f = part.forecast - mean, o = wanted - mean;
    to(ScoreSum::kClimateWeight, weight);
    to(ScoreSum::kProduct, weight * f * o);
    to(ScoreSum::kForecast, weight * f * f);
    to(ScoreSum::kTruth, weight * o * o);
  }
};

struct StoreScores {
  std::int64_t each;
  double* to;
  __device__ void operator()(std::int64_t i, const double (&sums)[kScoreSums]) const {
    for (int kind = 0; kind < kScoreSums; ++kind) to[kind * each + i] = sums[kind];
  }
};

/// Of element i of the truth how many members lie below it, NaN where one is NaN, and how many are equal to
/// it; none at all where it is NaN.
struct PlaceTruth {
  std::int64_t field, members;
  const double *forecasts, *truth;
  double* places;  ///< [elements, 2]
  __device__ void operator()(std::int64_t i) const {
    const double wanted = truth[i];
    const double* forecast = forecasts + i / field * members * field + i % field;
    double below = 0, equal = 0;
    for (std::int64_t j = 0; j < members; ++j, forecast += field) {
      const double state = *forecast;
      below += state == state ? (state < wanted ? 1.0 : 0.0) : state;
      equal += state == wanted ? 1.0 : 0.0;
    }
    const bool there = wanted == wanted;
    places[2 * i] = there ? below : -1.0;
    places[2 * i + 1] = there ? equal : -1.0;
  }
};

/// Of sample i / regions and region i % regions; columns are the channels of each rank.
struct RankTerms {
  std::int64_t points, channels, regions;
  const double *places, *weights;

  struct Part {
    double weight, below, equal, rank;
  };
  __device__ Part read(std::int64_t i, std::int64_t point, std::int64_t column) const {
    const std::int64_t at = (i / regions * points + point) * channels + column % channels;
    return {weights[i % regions * points + point], places[2 * at], places[2 * at + 1],
            static_cast<double>(column / channels)};
  }
  __device__ void add(const Part& part, double (&sums)[1]) const {
    if (part.weight == 0) return;
    if (part.below != part.below) {
      sums[0] = part.below;
    } else if (part.rank >= part.below && part.rank <= part.below + part.equal) {
      sums[0] += part.weight / (part.equal + 1);
    }
  }
};

/// Ranks, or other kinds.
struct StoreRanks {
  std::int64_t channels, ranks, rows;  ///< rows: samples · regions
  double* to;
  __device__ void operator()(std::int64_t i, const double (&sums)[1]) const {
    const std::int64_t rank = i / channels % ranks, row = i / channels / ranks;
    to[(rank * rows + row) * channels + i % channels] = sums[0];
  }
};

/// Of element i of the truth what members and truth are with regard to a threshold, as RowKinds of the host
/// has it: one of 2 · (members + 1) kinds, NaN where a member is NaN, below 0 where nothing counts.
struct FindKind {
  std::int64_t field, channels, members;
  const double *forecasts, *truth, *thresholds;
  double* kinds;
  __device__ void operator()(std::int64_t i) const {
    const double wanted = truth[i], threshold = thresholds[i % channels];
    const double* forecast = forecasts + i / field * members * field + i % field;
    double kind = wanted >= threshold ? 0.0 : static_cast<double>(members + 1);
    for (std::int64_t j = 0; j < members; ++j, forecast += field) {
      const double state = *forecast;
      kind += state == state ? (state >= threshold ? 1.0 : 0.0) : state;
    }
    kinds[i] = wanted == wanted && threshold == threshold ? kind : -1.0;
  }
};

/// Of sample i / regions and region i % regions; columns are the channels of each kind.
struct KindTerms {
  std::int64_t points, channels, regions;
  const double *kinds, *weights;

  struct Part {
    double weight, found, kind;
  };
  __device__ Part read(std::int64_t i, std::int64_t point, std::int64_t column) const {
    return {weights[i % regions * points + point],
            kinds[(i / regions * points + point) * channels + column % channels],
            static_cast<double>(column / channels)};
  }
  __device__ void add(const Part& part, double (&sums)[1]) const {
    if (part.weight == 0) return;
    if (part.found != part.found) {
      sums[0] = part.found;
    } else if (part.found == part.kind) {
      sums[0] += part.weight;
    }
  }
};

/// Joins to moments of element i those of one time.
struct AddMoments {
  std::int64_t field, members;
  const double *forecasts, *truth;
  double *counts, *forecast_means, *forecast_squares, *truth_means, *truth_squares;
  __device__ void operator()(std::int64_t i) const {
    const double wanted = truth[i];
    if (wanted != wanted) return;
    const double m = static_cast<double>(members);
    double mean = 0, squares = 0;
    for (std::int64_t j = 0; j < members; ++j) mean += forecasts[j * field + i] / m;
    for (std::int64_t j = 0; j < members; ++j) {
      const double apart = forecasts[j * field + i] - mean;
      squares += apart * apart / m;
    }
    const double count = counts[i] + 1, off = mean - forecast_means[i], apart = wanted - truth_means[i];
    counts[i] = count;
    forecast_means[i] += off / count;
    forecast_squares[i] += squares + off * off * (count - 1) / count;
    truth_means[i] += apart / count;
    truth_squares[i] += apart * apart * (count - 1) / count;
  }
};

template <typename T>
const T* numbers_of(const Array& field) {
  return field.defined() ? field.data<T>() : nullptr;
}

class ForecastScores : public ForecastScoresKernels {
 public:
  void states(Context& context, const Array& values, const Array& origin,
              std::span<const StateChannel> channels, Array& states) const override {
    std::vector<Channel> table;
    for (const StateChannel& channel : channels) {
      table.push_back({channel.increment ? 1 : 0, static_cast<std::int64_t>(channel.function), channel.mean,
                       channel.deviation, channel.epsilon, channel.lambda, channel.low, channel.high});
    }
    for_elements(context, states.count(),
                 States{constants(context, std::span<const Channel>(table)), std::ssize(table),
                        any_elements(values), origin.data<double>(), states.data<double>()});
  }

  void hide_missing(Context& context, const Array& origin, Array& states, Array& not_finite) const override {
    const std::int64_t channels = not_finite.count();
    if (channels == 0) return;
    column_sums<1>(context, 1, states.count() / channels, channels,
                   HideMissing{channels, origin.data<double>(), states.data<double>()},
                   StoreCount{not_finite.data<double>()});
  }

  void sums(Context& context, const ScoredStates& states, const Array& weights, Array& sums) const override {
    const std::int64_t samples = sums.shape()[1], regions = sums.shape()[2], channels = sums.shape()[3];
    const std::int64_t points = weights.shape()[1];
    column_sums<kScoreSums>(context, samples * regions, points, channels,
                            ScoreTerms{points, channels, regions, states.forecast.data<double>(),
                                       states.truth.data<double>(), numbers_of<double>(states.reference),
                                       weights.data<double>(), numbers_of<float>(states.climatology)},
                            StoreScores{samples * regions * channels, sums.data<double>()});
  }

  void truth_ranks(Context& context, const Array& forecasts, const Array& truth, const Array& weights,
                   Array& sums) const override {
    const std::int64_t ranks = sums.shape()[0], rows = sums.shape()[1] * sums.shape()[2],
                       channels = sums.shape()[3], points = weights.shape()[1];
    Array places(context, {truth.count(), 2}, DType::kFloat64, Purpose::kWorkspace);
    for_elements(context, truth.count(),
                 PlaceTruth{points * channels, ranks - 1, forecasts.data<double>(), truth.data<double>(),
                            places.data<double>()});
    column_sums<1>(
        context, rows, points, ranks * channels,
        RankTerms{points, channels, sums.shape()[2], places.data<double>(), weights.data<double>()},
        StoreRanks{channels, ranks, rows, sums.data<double>()});
  }

  /// One threshold after the other, so that no more than a field of kinds is held.
  void exceedances(Context& context, const Array& forecasts, const Array& truth,
                   std::span<const double> thresholds, const Array& weights, Array& sums) const override {
    const std::int64_t rows = sums.shape()[1] * sums.shape()[2], channels = sums.shape()[3],
                       points = weights.shape()[1], count = std::ssize(thresholds) / channels,
                       kinds = sums.shape()[0] / count;
    const double* const known = constants(context, thresholds);
    Array found(context, truth.shape(), DType::kFloat64, Purpose::kWorkspace);
    for (std::int64_t t = 0; t < count; ++t) {
      for_elements(context, truth.count(),
                   FindKind{points * channels, channels, kinds / 2 - 1, forecasts.data<double>(),
                            truth.data<double>(), known + t * channels, found.data<double>()});
      column_sums<1>(
          context, rows, points, kinds * channels,
          KindTerms{points, channels, sums.shape()[2], found.data<double>(), weights.data<double>()},
          StoreRanks{channels, kinds, rows, sums.data<double>() + t * kinds * rows * channels});
    }
  }

  void moments(Context& context, const Array& forecasts, const Array& truth,
               TimeMoments& moments) const override {
    for_elements(context, truth.count(),
                 AddMoments{truth.count(), forecasts.shape()[0], forecasts.data<double>(),
                            truth.data<double>(), moments.count.data<double>(),
                            moments.forecast_mean.data<double>(), moments.forecast_squares.data<double>(),
                            moments.truth_mean.data<double>(), moments.truth_squares.data<double>()});
  }
};

}  // namespace

template <>
const ForecastScoresKernels& kernels() {
  static const ForecastScores instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
