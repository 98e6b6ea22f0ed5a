#include "times/windows.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline times {

namespace {

bool holds(const std::vector<Time>& times, Time time) {
  return std::binary_search(times.begin(), times.end(), time);
}

/// "; these are 6 h apart, so data.lead_hours must be a multiple of 6", or "" where that is not the reason.
std::string why_none(const std::vector<Time>& times, const WindowRule& rule, Calendar calendar) {
  Time step = 0;
  for (std::size_t i = 1; i < times.size(); ++i) step = std::gcd(step, times[i] - times[i - 1]);
  if (step == 0) return "";
  const auto of_minutes = [](Time time) { return time % kMinute == 0; };
  const auto uneven = std::ranges::find_if_not(times, of_minutes);
  if (step % kMinute != 0 && uneven != times.end() && of_minutes(rule.lead_time) &&
      std::ranges::all_of(rule.input_times, of_minutes)) {
    return concat("; some of these are not of whole minutes, as ", format_time(*uneven, calendar),
                  ", and times that are a lead apart must be so to the second; round them (in xarray: "
                  "dataset[\"time\"] = dataset.time.dt.round(\"min\"))");
  }
  const auto fits = [&](Time time) { return time % step == 0; };
  const bool inputs_fit = std::all_of(rule.input_times.begin(), rule.input_times.end(), fits);
  if (inputs_fit && fits(rule.lead_time)) return "";
  return concat("; these are ", duration_text(step), " apart, so ",
                inputs_fit ? "data.lead_hours" : "data.input_hours", " must be ",
                inputs_fit ? "a multiple of " : "multiples of ",
                step % kHour == 0 ? concat(step / kHour) : duration_text(step));
}

/// "-6, 0 h", "-5 min, 0 h".
std::string offsets_text(const std::vector<Time>& offsets) {
  const bool hours = std::ranges::all_of(offsets, [](Time offset) { return offset % kHour == 0; });
  std::vector<std::string> texts;
  for (const Time offset : offsets) texts.push_back(hours ? concat(offset / kHour) : duration_text(offset));
  return concat(join(texts, ", "), hours ? " h" : "");
}

}  // namespace

std::vector<Time> find_windows(const std::vector<Time>& input_times, const std::vector<Time>& target_times,
                               const WindowRule& rule, const std::vector<Period>& periods,
                               const std::string& key, Calendar calendar) {
  const Time lead = rule.lead_time;
  const auto in_a_period = [&](Time time) {
    return std::any_of(periods.begin(), periods.end(), [&](const Period& period) {
      return period.contains(time) && period.contains(time + rule.rollout * lead);
    });
  };
  const auto has_states = [&](Time time) {
    for (const Time offset : rule.input_times) {
      if (!holds(input_times, time + offset)) return false;
    }
    for (int k = 1; k <= rule.rollout; ++k) {
      if (!holds(target_times, time + k * lead)) return false;
    }
    return true;
  };
  const auto lacks_prescribed = [&](Time time) -> std::optional<Time> {
    for (int k = 0; rule.prescribed && k <= rule.prescribed_leads; ++k) {
      if (!rule.prescribed(time + k * lead)) return time + k * lead;
    }
    return std::nullopt;
  };
  std::vector<Time> windows;
  std::copy_if(input_times.begin(), input_times.end(), std::back_inserter(windows),
               [&](Time time) { return in_a_period(time) && has_states(time) && !lacks_prescribed(time); });
  if (!windows.empty()) return windows;
  std::vector<std::string> names;
  std::transform(periods.begin(), periods.end(), std::back_inserter(names),
                 [&](const Period& period) { return format_period(period, calendar); });
  const auto otherwise =
      std::ranges::find_if(input_times, [&](Time time) { return in_a_period(time) && has_states(time); });
  if (otherwise != input_times.end() && rule.why_not_prescribed) {
    throw DataError(concat(key, " (", join(names, ", "), ") holds no window with all that is prescribed: ",
                           rule.why_not_prescribed(*lacks_prescribed(*otherwise))));
  }
  std::vector<Time> common = common_times(input_times, target_times);
  if (rule.prescribed) std::erase_if(common, [&](Time time) { return !rule.prescribed(time); });
  throw DataError(concat(
      key, " (", join(names, ", "), ") holds no window with inputs at ", offsets_text(rule.input_times),
      rule.rollout > 0 ? concat(" and targets up to ", duration_text(rule.rollout * rule.lead_time)) : "",
      "; the files hold ", common.empty() ? "no time that all variables share" : times_text(common, calendar),
      why_none(common, rule, calendar), rule.fewest_times.empty() ? "" : "; ", rule.fewest_times));
}

std::string times_text(const std::vector<Time>& times, Calendar calendar) {
  if (times.empty()) return "no time";
  const std::string first = format_time(times.front(), calendar);
  if (times.size() == 1) return concat("1 time, ", first);
  return concat(times.size(), " times from ", first, " to ", format_time(times.back(), calendar));
}

Time usual_step(const std::vector<Time>& times) {
  std::map<Time, std::int64_t> counts;
  for (std::size_t i = 1; i < times.size(); ++i) ++counts[times[i] - times[i - 1]];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? 0 : most->first;
}

std::vector<Time> evenly_spread(const std::vector<Time>& times, int most) {
  const auto wanted = static_cast<std::size_t>(most);
  if (times.size() <= wanted) return times;
  std::vector<Time> some;
  for (std::size_t i = 0; i < wanted; ++i) some.push_back(times[i * times.size() / wanted]);
  return some;
}

std::optional<Time> nearest_time(const std::vector<Time>& times, Time time) {
  if (times.empty()) return std::nullopt;
  const auto after = std::ranges::lower_bound(times, time);
  if (after == times.end()) return times.back();
  if (after == times.begin()) return *after;
  return time - *(after - 1) <= *after - time ? *(after - 1) : *after;
}

std::vector<Time> common_times(const std::vector<Time>& a, const std::vector<Time>& b) {
  std::vector<Time> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common;
}

}  // namespace jigsaw::inline times
