#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config/json.h"
#include "samples/dataset.h"

namespace jigsaw::inline evaluate {

/// How much of the periods that are asked for was scored. Windows are counted by their time 0, of an ensemble
/// once for all members.
struct WindowCoverage {
  /// Windows that are left out, for some of the times that they need are not in the files of these variables.
  struct LeftOut {
    std::vector<std::string> variables;
    std::int64_t windows = 0;
  };

  std::string first_start, last_start;  ///< of those that are scored
  std::int64_t scored = 0, of_period = 0;
  std::int64_t lacking = 0;           ///< that cannot be scored; the rest was not asked for
  std::vector<LeftOut> left_out;      ///< a window may count in several; most windows first
  std::int64_t without_forecast = 0;  ///< that could be scored, had they a forecast in files

  /// Of these alone there are forecasts. @param starts  ascending; one or more
  void take(const std::vector<Time>& starts, const FileSet& files);

  /// "of the 120 windows in --period, 64 are left out, for the files lack …: 64 for tas and 2 more
  /// variables", or "".
  std::string sentence(const std::string& key) const;
  /// {"first_start": …, "last_start": …, "windows": 120, "scored": 56, "left_out": [{"variables": ["tas"],
  /// "windows": 64}]}.
  Json to_json() const;
};

/// A variable that windows need at these times from their time 0.
struct NeededVariable {
  std::string name;
  std::vector<Time> offsets;
  std::function<bool(Time)> has;
};

/// The times in a period, and those that lack among them, before and behind them, where all were `step`
/// apart: what is to be expected of it.
/// @param there  ascending.
std::vector<Time> expected_times(const std::vector<Time>& there, const Period& period, Time step);

/// Without the texts of its times.
/// @param windows  that are scored, ascending. @param there  times at which any variable is, ascending.
/// @param reach    from time 0 to the last target.
WindowCoverage window_coverage(const std::vector<Time>& windows, const std::vector<Time>& there,
                               const std::vector<Period>& periods, Time reach,
                               const std::vector<NeededVariable>& needed);
/// Of the validation windows of this data, each with so many leads.
WindowCoverage window_coverage(const Dataset& data, int leads);

}  // namespace jigsaw::inline evaluate
