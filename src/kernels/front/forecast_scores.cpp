#include "kernels/forecast_scores.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/forecast_scores_kernels.h"

namespace jigsaw::inline kernels {

namespace {

// Operations per element.
constexpr double kStateFlops = 4, kHideFlops = 1, kSumFlops = 22, kCompareFlops = 2, kMomentFlops = 14,
                 kMemberFlops = 5;
/// Numbers in float64 of which there are many: by the host's fast loops.
constexpr DType kFast = DType::kFloat32;

void require_wide(const Array& array) {
  require(array.dtype() == DType::kFloat64, "scores: states and weights are f64");
}

void require_region_weights(const char* kernel, const Array& weights, const Shape& states) {
  require_wide(weights);
  if (states.rank() >= 2 && weights.rank() == 2 && weights.shape()[1] == states.count(1, states.rank() - 1))
    return;
  throw ShapeError(
      concat(kernel, ": weights ", weights.shape(), " should be [regions, points] of states ", states));
}

}  // namespace

Array physical_states(Context& context, const Array& values, const Array& origin,
                      std::span<const StateChannel> channels) {
  require_same_shape("physical_states", origin.shape(), values.shape());
  require_wide(origin);
  if (values.rank() < 2 || values.shape().back() != std::ssize(channels)) {
    throw ShapeError(
        concat("physical_states: values ", values.shape(), " should have ", channels.size(), " channels"));
  }
  Array states(context, values.shape(), DType::kFloat64, Purpose::kWorkspace);
  count_work(context, kStateFlops * static_cast<double>(values.count()), {&values, &origin, &states});
  if (values.count() > 0)
    launch(context, values.dtype(), &ForecastScoresKernels::states, values, origin, channels, states);
  return states;
}

Array hide_missing(Context& context, const Array& origin, Array& states) {
  require_same_shape("hide_missing", origin.shape(), states.shape());
  require_wide(origin);
  require_wide(states);
  Array not_finite(context, {states.shape().back()}, DType::kFloat64, Purpose::kWorkspace);
  count_work(context, kHideFlops * static_cast<double>(states.count()), {&origin, &states, &states});
  launch(context, kFast, &ForecastScoresKernels::hide_missing, origin, states, not_finite);
  return not_finite;
}

Array score_sums(Context& context, const ScoredStates& states, const Array& weights) {
  const Shape& shape = states.truth.shape();
  for (const Array* array : {&states.forecast, &states.truth, &states.reference, &states.climatology}) {
    if (!array->defined() && array != &states.forecast) continue;
    require_same_shape("score_sums", array->shape(), shape);
    if (array != &states.climatology) require_wide(*array);
  }
  require(!states.climatology.defined() || states.climatology.dtype() == DType::kFloat32,
          "score_sums: the climatology is f32");
  require_region_weights("score_sums", weights, shape);
  Array sums(context, {kScoreSums, shape[0], weights.shape()[0], shape.back()}, DType::kFloat64,
             Purpose::kWorkspace);
  count_work(context, kSumFlops * static_cast<double>(states.truth.count() * weights.shape()[0]),
             {&states.forecast, &states.truth, &states.reference, &states.climatology, &weights});
  launch(context, kFast, &ForecastScoresKernels::sums, states, weights, sums);
  return sums;
}

Array truth_ranks(Context& context, const Array& forecasts, const Array& truth, std::int64_t members,
                  const Array& weights) {
  require_region_weights("truth_ranks", weights, truth.shape());
  Shape wanted = truth.shape();
  wanted[0] *= members;
  require_same_shape("truth_ranks", forecasts.shape(), wanted);
  require_wide(forecasts);
  require_wide(truth);
  Array sums(context, {members + 1, truth.shape()[0], weights.shape()[0], truth.shape().back()},
             DType::kFloat64, Purpose::kWorkspace);
  count_work(context, kCompareFlops * static_cast<double>(forecasts.count()), {&forecasts, &truth, &weights});
  launch(context, kFast, &ForecastScoresKernels::truth_ranks, forecasts, truth, weights, sums);
  return sums;
}

Array exceedance_sums(Context& context, const Array& forecasts, const Array& truth, std::int64_t members,
                      std::span<const double> thresholds, const Array& weights) {
  const Shape& shape = truth.shape();
  require_region_weights("exceedance_sums", weights, shape);
  Shape wanted = shape;
  wanted[0] *= members;
  require_same_shape("exceedance_sums", forecasts.shape(), wanted);
  require_wide(forecasts);
  require_wide(truth);
  const std::int64_t channels = shape.back(), count = channels > 0 ? std::ssize(thresholds) / channels : 0;
  if (count * channels != std::ssize(thresholds)) {
    throw ShapeError(concat("exceedance_sums: ", thresholds.size(),
                            " thresholds should be as many of each of ", channels, " channels"));
  }
  Array sums(context, {count * 2 * (members + 1), shape[0], weights.shape()[0], channels}, DType::kFloat64,
             Purpose::kWorkspace);
  count_work(context, kCompareFlops * static_cast<double>(count * forecasts.count()),
             {&forecasts, &truth, &weights});
  if (sums.count() > 0)
    launch(context, kFast, &ForecastScoresKernels::exceedances, forecasts, truth, thresholds, weights, sums);
  return sums;
}

void add_moments(Context& context, const Array& forecasts, const Array& truth, TimeMoments& moments) {
  require_wide(forecasts);
  require_wide(truth);
  if (truth.rank() < 2 || truth.shape()[0] != 1)
    throw ShapeError(concat("add_moments: the truth ", truth.shape(), " should be of one time"));
  Shape wanted = truth.shape();
  wanted[0] = forecasts.rank() > 0 ? forecasts.shape()[0] : 0;
  require_same_shape("add_moments", forecasts.shape(), wanted);
  if (wanted[0] == 0) throw ShapeError("add_moments: there are no forecasts");
  for_each_array(moments, [&](const Array& array) {
    require_wide(array);
    require_same_shape("add_moments", array.shape(), truth.shape());
  });
  // Moments are read and written.
  count_work(context,
             kMomentFlops * static_cast<double>(truth.count()) +
                 kMemberFlops * static_cast<double>(forecasts.count()),
             {&forecasts, &truth, &moments.count, &moments.forecast_mean, &moments.forecast_squares,
              &moments.truth_mean, &moments.truth_squares, &moments.count, &moments.forecast_mean,
              &moments.forecast_squares, &moments.truth_mean, &moments.truth_squares});
  if (truth.count() > 0) launch(context, kFast, &ForecastScoresKernels::moments, forecasts, truth, moments);
}

// What a backend lacks.
void ForecastScoresKernels::states(Context&, const Array&, const Array&, std::span<const StateChannel>,
                                   Array&) const {
  missing_kernel("physical_states");
}
void ForecastScoresKernels::hide_missing(Context&, const Array&, Array&, Array&) const {
  missing_kernel("hide_missing");
}
void ForecastScoresKernels::sums(Context&, const ScoredStates&, const Array&, Array&) const {
  missing_kernel("score_sums");
}
void ForecastScoresKernels::truth_ranks(Context&, const Array&, const Array&, const Array&, Array&) const {
  missing_kernel("truth_ranks");
}
void ForecastScoresKernels::exceedances(Context&, const Array&, const Array&, std::span<const double>,
                                        const Array&, Array&) const {
  missing_kernel("exceedance_sums");
}
void ForecastScoresKernels::moments(Context&, const Array&, const Array&, TimeMoments&) const {
  missing_kernel("add_moments");
}

}  // namespace jigsaw::inline kernels
