#include "init/first_periods.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "fields/data_forms.h"
#include "times/windows.h"

namespace jigsaw::inline init {

namespace {

/// The steps between times.
struct TimeSteps {
  Time least = 0, most = 0;
  std::set<Time> all;

  bool even() const { return least == most; }
  /// "6 h", "28 to 31 days".
  std::string text() const {
    if (least % kHour != 0 || most % kHour != 0)
      return even() ? duration_text(least) : concat(duration_text(least), " to ", duration_text(most));
    const bool days = least > kDay && least % kDay == 0 && most % kDay == 0;
    const auto number = [&](Time seconds) {
      return static_cast<double>(seconds) / static_cast<double>(days ? kDay : kHour);
    };
    return concat(number(least), even() ? "" : concat(" to ", number(most)), days ? " days" : " h");
  }
};

TimeSteps steps_of(const std::vector<Time>& times) {
  TimeSteps steps;
  for (std::size_t i = 1; i < times.size(); ++i) steps.all.insert(times[i] - times[i - 1]);
  if (steps.all.empty()) return steps;
  steps.least = *steps.all.begin();
  steps.most = *steps.all.rbegin();
  return steps;
}

/// The likeliest first: 6 h where the usual step is some hours and allows that, that step, other steps.
std::vector<Time> likely_leads(const TimeSteps& steps, Time usual) {
  constexpr std::size_t kMost = 16;
  std::vector<Time> leads;
  if (usual >= kHour && 6 * kHour % usual == 0) leads.push_back(6 * kHour);
  const auto add = [&](Time step) {
    if (leads.size() < kMost && std::ranges::find(leads, step) == leads.end()) leads.push_back(step);
  };
  add(usual);
  for (const Time step : steps.all) add(step);
  return leads;
}

/// Training and validation: four fifths of the times and the rest, or less where the rest would hold no
/// window, further apart than a window reaches. Nothing where one of them would hold none.
/// @param windows  times 0 of all, not empty.
/// @param reach    from the first input to the target.
std::optional<std::pair<Period, Period>> split_periods(const std::vector<Time>& times,
                                                       const std::vector<Time>& windows, Time lead,
                                                       Time reach) {
  for (std::size_t cut = times.size() * 4 / 5; cut > 0; --cut) {
    const Time last = times[cut - 1];
    if (windows.front() + lead > last) break;
    const auto next = std::upper_bound(times.begin(), times.end(), last + reach);
    if (next == times.end() || *next > windows.back()) continue;
    return std::pair{Period{times.front(), last}, Period{*next, times.back()}};
  }
  return std::nullopt;
}

/// As training finds them.
std::vector<Time> windows_of(const std::vector<Time>& times, const std::vector<Time>& input_times,
                             Time lead_time, Calendar calendar) {
  WindowRule rule;
  rule.input_times = input_times;
  rule.lead_time = lead_time;
  try {
    return find_windows(times, times, rule, {{times.front(), times.back()}}, "data.train", calendar);
  } catch (const DataError&) {
    return {};  // there are none
  }
}

[[noreturn]] void refuse_times(const std::vector<Time>& times, const TimeSteps& steps,
                               const std::string& what, Calendar calendar) {
  if (steps.even()) {
    throw DataError(concat("the files hold ", counted(std::ssize(times), "time"),
                           times.empty() ? std::string()
                                         : concat(", from ", format_time(times.front(), calendar), " to ",
                                                  format_time(times.back(), calendar)),
                           ": too few to train and to validate on"));
  }
  throw DataError(concat(what, " has ", times.size(), " times that are ", steps.text(),
                         " apart, and too few of them are followed by another after one and the same number "
                         "of hours: none are left to train or to validate on; give files whose times are "
                         "evenly spaced"));
}

/// What makes even times of such that are nearly so, as those of scans: "; "time_step": "10 min", … take them
/// for even ones"; "" where nothing does.
std::string evening_text(const std::vector<Time>& times, const TimeSteps& steps, Time usual) {
  for (const auto& [months, least, most] : {std::tuple{3, 89, 93}, std::tuple{12, 360, 366}}) {
    if (steps.least < least * kDay || steps.most > most * kDay) continue;
    return concat("; \"time_step\": \"month\", \"input_hours\": [0] and \"lead_hours\": ",
                  months * kMonth / kHour, " in data take them for even ones, of ", months, " months");
  }
  constexpr std::array kMinutes = {1440, 720, 360, 180, 60, 30, 20, 15, 12, 10, 6, 5, 4, 3, 2, 1};
  constexpr Time kTenth = 10;
  Time whole = 0;  // the step that they nearly have
  for (const Time minutes : kMinutes) {
    const Time step = minutes * kMinute;
    if (whole == 0 && std::abs(usual - step) * kTenth <= step) whole = step;
    if (whole == 0 || whole % step != 0) continue;
    if (std::ranges::all_of(steps.all, [&](Time each) { return each % step == 0; })) return "";
    // Of a part of it the multiples may be nearer: scans begin at 00:05:06, 00:15:05, …
    Time furthest = 0;
    for (const Time time : times)
      furthest = std::max(furthest, std::abs(time - floor_div(time + step / 2, step) * step));
    if (4 * furthest > step) continue;
    const Time unit = furthest > kMinute ? kMinute : kTenth, tolerance = (furthest + unit - 1) / unit * unit;
    return concat("; \"time_step\": ", duration_json(step).dump(),
                  ", \"time_tolerance\": ", duration_json(tolerance).dump(),
                  " in data take them for even ones");
  }
  return "";
}

}  // namespace

std::string durations_text(const std::vector<Time>& times) {
  std::vector<std::string> texts;
  for (const Time time : times) texts.push_back(duration_json(time).dump());
  return concat("[", join(texts, ", "), "]");
}

FirstPeriods first_periods(const std::vector<Time>& times, const std::string& what, Calendar calendar,
                           std::vector<std::string>& notices) {
  const TimeSteps steps = steps_of(times);
  if (steps.all.empty()) refuse_times(times, steps, what, calendar);
  const Time usual = usual_step(times);
  std::optional<FirstPeriods> best;
  std::size_t most = 0;
  // Two states are the input where at least half of the times then begin a sample, else one.
  for (const bool two : {true, false}) {
    for (const Time lead : likely_leads(steps, usual)) {
      const std::vector<Time> input_times = two ? std::vector<Time>{-lead, 0} : std::vector<Time>{0};
      const std::vector<Time> windows = windows_of(times, input_times, lead, calendar);
      if (windows.size() <= most || 2 * most >= times.size()) continue;
      const auto periods = split_periods(times, windows, lead, lead - input_times.front());
      if (!periods) continue;
      most = windows.size();
      best = FirstPeriods{input_times, lead, usual, steps.even(), periods->first, periods->second};
    }
  }
  if (!best) refuse_times(times, steps, what, calendar);
  if (!steps.even()) {
    notices.push_back(concat(
        "the times of ", what, " are ", steps.text(), " apart, not evenly spaced: ", most, " of ",
        times.size(), " begin a sample with data.input_hours ", durations_text(best->input_times),
        " and data.lead_hours ", duration_json(best->lead_time).dump(), evening_text(times, steps, usual)));
  }
  return *best;
}

}  // namespace jigsaw::inline init
