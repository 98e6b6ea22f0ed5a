#pragma once
#include <string>
#include <vector>

#include "config/json.h"
#include "evaluate/forecast_scores.h"
#include "evaluate/station_scores.h"
#include "evaluate/window_coverage.h"

namespace jigsaw::inline evaluate {

/// Scores of forecasts with what they are of, for people and programs.
struct ScoreReport {
  std::string title, source;
  Time lead_time = 6 * kHour;  ///< from each lead to the next
  bool of_months = false;      ///< whether people are told months
  Time decade = 0;             ///< ten years of the calendar, for trends of a climate
  std::int64_t forecasts = 0;
  std::vector<std::string> periods;           ///< that were asked for
  WindowCoverage coverage;                    ///< what of them was there
  std::vector<std::string> variables, units;  ///< per target channel
  const ForecastScores* scores = nullptr;
  const StationScores* stations = nullptr;  ///< null where none were asked for
};

/// A table: for each variable and region its scores at each lead; then the same of each of its thresholds;
/// then those of its climate by group, and its trends; then those at stations.
std::vector<std::string> table_of(const ScoreReport& report);
/// {"lead_hours": [6, 12], "scores": {"t2m": {"all": {"rmse": [1.2, 1.9], …}}}, "spectra": …}, of months
/// "lead_months": [1, 2] beside the hours, of which a month has 720; of several
/// members "rank_histograms": {"t2m": {"all": …}}, too; null where there is no number. Of
/// thresholds "thresholds": {"tp": {"0.1": {"all": {"csi": […], …}}}}; of a climate "climate", as
/// climate_of() gives it; with stations "stations", as stations_of() gives it.
Json json_of(const ScoreReport& report);
/// CF-1.10: "t2m_rmse" [region, lead_time], …, "t2m_power" [lead_time, wave_number] and "t2m_power_truth", of
/// several members "t2m_rank_histogram" [region, lead_time, rank]; of thresholds
/// "tp_csi" [tp_threshold, region, lead_time], …, "tp_fss" [tp_threshold, region, lead_time, fss_scale]; of a
/// climate "t2m_climate_rmse" [region, climate_group], …, and "t2m_climate_drift" [region], …; NaN where
/// there is no number. @throws DataError
void write_netcdf(const ScoreReport& report, const std::string& path);

}  // namespace jigsaw::inline evaluate
