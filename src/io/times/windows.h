#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "times/time_axis.h"

namespace jigsaw::inline times {

/// Which times a window needs, relative to its time 0.
struct WindowRule {
  std::vector<Time> input_times = {0};  ///< from time 0
  Time lead_time = 6 * kHour;
  int rollout = 1;  ///< targets at lead, 2 · lead, …, rollout · lead; 0: none
  /// Where it is set: whether all that is prescribed is in the files at a time. It is needed at time 0 and at
  /// each lead up to prescribed_leads.
  std::function<bool(Time)> prescribed = {};
  int prescribed_leads = 0;
  /// Of a time at which it is not: what lacks, and which key decides, for errors.
  std::function<std::string(Time)> why_not_prescribed = {};
  /// Where fields have different times: of the one that has fewest, beside another, for errors.
  std::string fewest_times = {};
};

/// The times 0 of all windows in the periods, ascending. A window belongs to a period when its time 0 and all
/// its targets lie in it, both in the same one; inputs may precede it. Windows of which an input or target
/// time is missing are left out.
///
/// @param input_times   ascending: the times at which every input is in the files.
/// @param target_times  ascending: the times at which every target is.
/// @param key           the periods' place in the configuration, for errors: "data.train".
/// @param calendar      that of the times.
/// @throws DataError    when there is no window; it says the periods and what the files hold, and where the
///                      leads or input hours are no multiple of the hours between their times, or what is
///                      prescribed is what lacks; and which field has the fewest times.
std::vector<Time> find_windows(const std::vector<Time>& input_times, const std::vector<Time>& target_times,
                               const WindowRule& rule, const std::vector<Period>& periods,
                               const std::string& key, Calendar calendar = Calendar::kStandard);

/// "no time", "1 time, 2020-01-01T00:00", "9 times from 2020-01-01T00:00 to 2020-01-03T00:00".
std::string times_text(const std::vector<Time>& times, Calendar calendar);

/// That many of the times at most, from the first on: of n times numbers 0, n/most, 2·n/most, …, rounded
/// down.
/// @param most  above 0.
std::vector<Time> evenly_spread(const std::vector<Time>& times, int most);
/// Of ascending times the one nearest to a time, of two the earlier one; nothing where there is none.
std::optional<Time> nearest_time(const std::vector<Time>& times, Time time);

/// The step between ascending times that is there most often, the shortest of those; 0 for less than two
/// times.
Time usual_step(const std::vector<Time>& times);

/// The times in both, ascending.
std::vector<Time> common_times(const std::vector<Time>& a, const std::vector<Time>& b);

}  // namespace jigsaw::inline times
