#include "evaluate/climate_trend.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace jigsaw::inline evaluate {

double slope_of(std::span<const double> values) {
  double count = 0, middle = 0, mean = 0;
  const auto each = [&](const auto& use) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (std::isfinite(values[i])) use(static_cast<double>(i), values[i]);
  };
  each([&](double x, double y) {
    ++count;
    middle += x;
    mean += y;
  });
  if (count < 2) return std::numeric_limits<double>::quiet_NaN();
  middle /= count;
  mean /= count;
  double products = 0, squares = 0;
  each([&](double x, double y) {
    products += (x - middle) * (y - mean);
    squares += (x - middle) * (x - middle);
  });
  return products / squares;
}

ClimateTrend trend_of(const ScoreReport& report, std::size_t variable, std::size_t region) {
  const ForecastScores& scores = *report.scores;
  std::vector<double> forecast, truth, drift;
  for (int lead = scores.climate()->options().spin_up; lead < scores.leads(); ++lead) {
    const ForecastScore score = scores.score(lead, variable, region);
    forecast.push_back(score.forecast_mean);
    truth.push_back(score.truth_mean);
    drift.push_back(score.bias);
  }
  const double leads = static_cast<double>(report.decade) / static_cast<double>(report.lead_time);
  return {leads * slope_of(forecast), leads * slope_of(truth), leads * slope_of(drift)};
}

std::span<const TrendMeasure> trend_measures() {
  static constexpr std::array kTrends = {
      TrendMeasure{"forecast_trend", "trend in ten years of the spatial mean of forecasts",
                   &ClimateTrend::forecast, "forecast"},
      TrendMeasure{"truth_trend", "trend in ten years of the spatial mean of the truth", &ClimateTrend::truth,
                   "truth"},
      TrendMeasure{"drift", "trend in ten years of the spatial mean of errors", &ClimateTrend::drift,
                   "drift"}};
  return kTrends;
}

}  // namespace jigsaw::inline evaluate
