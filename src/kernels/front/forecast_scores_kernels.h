#pragma once
#include "kernels/backend.h"
#include "kernels/forecast_scores.h"

namespace jigsaw::inline kernels {

/// The family of states and scores as a backend implements it; see forecast_scores.h.
class ForecastScoresKernels {
 public:
  virtual ~ForecastScoresKernels() = default;
  virtual void states(Context& context, const Array& values, const Array& origin,
                      std::span<const StateChannel> channels, Array& states) const;
  virtual void hide_missing(Context& context, const Array& origin, Array& states, Array& not_finite) const;
  virtual void sums(Context& context, const ScoredStates& states, const Array& weights, Array& sums) const;
  virtual void truth_ranks(Context& context, const Array& forecasts, const Array& truth, const Array& weights,
                           Array& sums) const;
  virtual void exceedances(Context& context, const Array& forecasts, const Array& truth,
                           std::span<const double> thresholds, const Array& weights, Array& sums) const;
  virtual void moments(Context& context, const Array& forecasts, const Array& truth,
                       TimeMoments& moments) const;
};

template <>
const ForecastScoresKernels& reference::kernels();
template <>
const ForecastScoresKernels& cpu::kernels();
template <>
const ForecastScoresKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
