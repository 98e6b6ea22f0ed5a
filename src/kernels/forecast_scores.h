#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "array/array.h"

namespace jigsaw::inline kernels {

// What forecasts are scored by: states in physical units, in float64 whatever predictions are, and sums over
// the points held here. Fields are [b, points…, c].

/// What is done to values before they are normalised, and undone in states: nothing, log(max(x, 0) + ε),
/// √max(x, 0), or Box and Cox's ((max(x, 0) + ε)^λ − 1)/λ. Inverses are not below 0.
enum class ValueFunction : std::uint8_t { kNone, kLog, kSqrt, kBoxCox };

/// How numbers y of a channel become states: inverse(base + deviation · y), kept in [low, high] to the last
/// bit, where the base is the mean or, of increments, function(x(0)). NaN stays.
struct StateChannel {
  bool increment = false;
  double mean = 0, deviation = 1;
  ValueFunction function = ValueFunction::kNone;
  double epsilon = 0, lambda = 1;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();

  double forward(double x) const {
    if (function == ValueFunction::kNone) return x;
    const double from = at_least_0(x);
    if (function == ValueFunction::kLog) return std::log(from + epsilon);
    if (function == ValueFunction::kSqrt) return std::sqrt(from);
    return (std::pow(from + epsilon, lambda) - 1) / lambda;
  }
  double inverse(double value) const {
    if (function == ValueFunction::kNone) return value;
    if (function == ValueFunction::kLog) return at_least_0(std::exp(value) - epsilon);
    if (function == ValueFunction::kSqrt) return at_least_0(value) * at_least_0(value);
    return at_least_0(std::pow(at_least_0(lambda * value + 1), 1 / lambda) - epsilon);
  }
  double kept(double state) const { return state < low ? low : state > high ? high : state; }
  double state(double y, double start) const {
    return kept(inverse((increment ? forward(start) : mean) + deviation * y));
  }

 private:
  static double at_least_0(double x) { return x < 0 ? 0.0 : x; }
};

/// f64, of the shape of the values.
/// @param values    [b, points…, c] of any float type.
/// @param origin    x(0), f64, of the same shape.
/// @param channels  of each channel.
Array physical_states(Context& context, const Array& values, const Array& origin,
                      std::span<const StateChannel> channels);

/// States, f64, become NaN in place where `origin`, f64 of the same shape, is.
/// @return  of each channel how many of the others are not finite, f64 [c].
Array hide_missing(Context& context, const Array& origin, Array& states);

/// What is compared at each point, [b, points…, c]. Points whose truth is NaN do not count.
struct ScoredStates {
  Array forecast, truth;  ///< f64
  Array reference;        ///< another forecast, f64, NaN where it says nothing; or undefined
  Array climatology;      ///< f32, NaN where nothing is known; or undefined
};
template <typename F>
void for_each_array(ScoredStates& states, const F& f) {
  for (Array* array : {&states.forecast, &states.truth, &states.reference, &states.climatology}) f(*array);
}

/// Kinds of sums over points with a truth and a weight w, of errors e of the forecast.
enum class ScoreSum : std::uint8_t {
  kWeight,             ///< Σ w
  kSquares,            ///< Σ w e²
  kAbsolute,           ///< Σ w |e|
  kErrors,             ///< Σ w e
  kReferenceWeight,    ///< Σ w where the reference says something
  kReferenceSquares,   ///< Σ w e² of the reference, there
  kReferenceAbsolute,  ///< Σ w |e| of the reference, there
  kProduct,            ///< Σ w f o of anomalies, f of the forecast and o of the truth, where both are known
  kForecast,           ///< Σ w f²
  kTruth,              ///< Σ w o²
  kTruthValues,        ///< Σ w o of the truth as it is
  kClimateWeight       ///< Σ w where the climatology says something, as of the three sums of anomalies
};
constexpr int kScoreSums = 12;

/// f64 [kScoreSums, b, regions, c]; 0 where nothing counts.
/// @param weights  f64 [regions, points]; 0 outside of a region.
Array score_sums(Context& context, const ScoredStates& states, const Array& weights);

/// How often the truth has which rank among members of an ensemble, in sums of weights: f64
/// [members + 1, b, regions, c], rank k where k members lie below it. Where e members are equal to the truth,
/// each of the e + 1 ranks that it may have gets the same part. A member that is NaN makes every rank NaN.
/// @param forecasts  f64 [b·members, points…, c]: all members of the first sample, then of the second.
/// @param truth      f64 [b, points…, c]; NaN marks a point that does not count.
/// @param weights    as score_sums() takes them.
Array truth_ranks(Context& context, const Array& forecasts, const Array& truth, std::int64_t members,
                  const Array& weights);

/// How often so many members of an ensemble reach a threshold and the truth does or does not, in sums of
/// weights: f64 [thresholds · 2 · (members + 1), b, regions, c]; kind (t · 2 + o) · (members + 1) + k where k
/// members are not below threshold t, and the truth is (o = 0) or is not (o = 1). Of one member that is the
/// contingency table. A member that is NaN makes every kind of every threshold NaN.
/// @param forecasts, truth, weights  as truth_ranks() takes them.
/// @param thresholds  [thresholds][c]; where one is NaN its kinds are 0.
Array exceedance_sums(Context& context, const Array& forecasts, const Array& truth, std::int64_t members,
                      std::span<const double> thresholds, const Array& weights);

/// Moments in time at each point, f64 of one shape: over how many times, and of forecast and truth the mean
/// and Σ (x − mean)² over these. All are 0 before anything is added.
struct TimeMoments {
  Array count, forecast_mean, forecast_squares, truth_mean, truth_squares;
};
template <typename F>
void for_each_array(TimeMoments& moments, const F& f) {
  for (Array* array : {&moments.count, &moments.forecast_mean, &moments.forecast_squares, &moments.truth_mean,
                       &moments.truth_squares})
    f(*array);
}

/// Adds one time to moments, by the update of Chan, Golub and LeVeque (1983), of one member that of Welford
/// (1962). Of M members each weighs 1/M. Points whose truth is NaN stay as they are; a member that is NaN
/// makes the forecast's moments NaN.
/// @param forecasts  f64 [members, points…, c].
/// @param truth      f64 [1, points…, c], as the moments are.
void add_moments(Context& context, const Array& forecasts, const Array& truth, TimeMoments& moments);

}  // namespace jigsaw::inline kernels
