#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fields/data_file.h"

namespace jigsaw::inline fields {

/// Along which dimensions of a variable forecasts stand, and what stands there. A dimension is "" where there
/// is none: of its lists then a scalar coordinate is the one entry, or the file's name for a member.
struct ForecastAxes {
  std::string start, lead, member;  ///< dimensions, without groups
  std::string times;                ///< what DataFile::calendar() is asked for
  std::vector<Time> starts;
  std::vector<Time> leads;  ///< in seconds behind the start
  std::int64_t members = 1;
  Calendar calendar = Calendar::kStandard;
  std::unordered_map<Time, std::int64_t> place_of_start, place_of_lead;  ///< in these lists

  /// Whether there is a forecast, of any member.
  bool holds(Time from, Time ahead) const;
  /// Where a forecast stands; nothing where it is not there.
  std::optional<std::map<std::string, std::int64_t>> positions(Time from, Time ahead,
                                                               std::int64_t number) const;
};

/// Those of a variable of a file of forecasts, as predict, WeatherBench 2, cfgrib and others write them:
/// starts along a dimension of times and leads along one of durations (`lead_time`, `prediction_timedelta`,
/// `step`, or what has the standard_name forecast_period), or one of both, or none, as a scalar coordinate;
/// or times that a single forecast is of, beside its start as a scalar coordinate
/// (forecast_reference_time). States without a start are of no lead: what a model says of the same time.
/// @throws DataError  when the file does not say what starts or leads are, or other dimensions have several
/// entries.
ForecastAxes forecast_axes(DataFile& file, const FileVariable& variable);

}  // namespace jigsaw::inline fields
