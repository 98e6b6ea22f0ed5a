#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "evaluate/forecast_scores.h"

namespace jigsaw::inline evaluate {

/// A score of forecasts as files and tables have it.
struct Measure {
  const char* name;
  const char* long_name;
  double ForecastScore::*value;
  bool has_units;
  const char* title = "";  ///< of its column; "": there is none
};
inline constexpr std::array kMeasures = {
    Measure{"rmse", "root mean square error", &ForecastScore::rmse, true, "RMSE"},
    Measure{"mae", "mean absolute error", &ForecastScore::mae, true, "MAE"},
    Measure{"bias", "mean error", &ForecastScore::bias, true, "bias"},
    Measure{"acc", "anomaly correlation coefficient", &ForecastScore::acc, false, "ACC"},
    Measure{"acc_forecasts", "number of forecasts that the anomaly correlation is over",
            &ForecastScore::acc_forecasts, false},
    Measure{"persistence_rmse", "root mean square error of persistence", &ForecastScore::persistence_rmse,
            true, "persist."},
    Measure{"climatology_rmse", "root mean square error of the climatology", &ForecastScore::climatology_rmse,
            true, "climat."},
    Measure{"scored", "share of the area with a truth that counts", &ForecastScore::scored, false},
    Measure{"forecast_mean", "spatial mean of forecasts", &ForecastScore::forecast_mean, true},
    Measure{"truth_mean", "spatial mean of the truth", &ForecastScore::truth_mean, true},
    Measure{"crps", "fair continuous ranked probability score", &ForecastScore::crps, true, "CRPS"},
    Measure{"spread", "ensemble spread", &ForecastScore::spread, true, "spread"},
    Measure{"spread_skill", "ratio of ensemble spread to root mean square error",
            &ForecastScore::spread_skill, false, "ratio"},
    Measure{"crps_skill", "skill of the continuous ranked probability score over persistence",
            &ForecastScore::crps_skill, false, "CRPSS"},
};

/// Those of forecasts of so many members.
inline std::span<const Measure> measures_of(std::int64_t members) {
  constexpr std::size_t kOfOne = 10;
  return std::span(kMeasures).first(members > 1 ? kMeasures.size() : kOfOne);
}

}  // namespace jigsaw::inline evaluate
