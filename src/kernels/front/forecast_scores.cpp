#include "kernels/forecast_scores.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/forecast_scores_kernels.h"

namespace jigsaw::inline kernels {

namespace {

// Operations per element.
constexpr double kStateFlops = 4, kHideFlops = 1, kSumFlops = 20;
/// Numbers in float64 of which there are many: by the host's fast loops.
constexpr DType kFast = DType::kFloat32;

void require_wide(const Array& array) {
  require(array.dtype() == DType::kFloat64, "scores: states and weights are f64");
}

std::int64_t points_of(const Array& field) {
  return field.shape().count(1, field.rank() - 1);
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
  require_wide(weights);
  require(!states.climatology.defined() || states.climatology.dtype() == DType::kFloat32,
          "score_sums: the climatology is f32");
  if (shape.rank() < 2 || weights.rank() != 2 || weights.shape()[1] != points_of(states.truth)) {
    throw ShapeError(
        concat("score_sums: weights ", weights.shape(), " should be [regions, points] of states ", shape));
  }
  Array sums(context, {kScoreSums, shape[0], weights.shape()[0], shape.back()}, DType::kFloat64,
             Purpose::kWorkspace);
  count_work(context, kSumFlops * static_cast<double>(states.truth.count() * weights.shape()[0]),
             {&states.forecast, &states.truth, &states.reference, &states.climatology, &weights});
  launch(context, kFast, &ForecastScoresKernels::sums, states, weights, sums);
  return sums;
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

}  // namespace jigsaw::inline kernels
