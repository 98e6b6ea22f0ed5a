#include "fields/prescribed_times.h"

#include <algorithm>
#include <functional>

namespace jigsaw::inline fields {

namespace {

/// Steps that are usual steps times more than this are gaps.
constexpr Time kWide = 3;

/// In the year of this number; of a day that it lacks its month's last.
Time in_year(std::int64_t year, Date date, Time seconds, Calendar calendar) {
  date.year = year;
  date.day = std::min(date.day, days_in_month(date.year, date.month, calendar));
  return days_from_date(date, calendar) * kDay + seconds;
}

DateTime date_and_time(Time time, Calendar calendar) {
  const std::int64_t days = floor_div(time, kDay);
  return {date_from_days(days, calendar), time - days * kDay};
}

double part_between(Time first, Time last, Time time) {
  return static_cast<double>(time - first) / static_cast<double>(last - first);
}

TimePlace place_in_cycle(const std::vector<Time>& times, Time time, Calendar calendar, Calendar of_times) {
  const Time there = in_year_from(times.front(), of_times, time, calendar);
  const auto behind = std::ranges::upper_bound(times, there);
  const auto before = static_cast<std::size_t>(behind - times.begin()) - 1;
  if (times[before] == there || times.size() == 1) return {before, before, 0};
  if (behind != times.end()) return {before, before + 1, part_between(times[before], *behind, there)};
  return {before, 0, part_between(times[before], year_after(times.front(), of_times), there)};
}

}  // namespace

Time year_after(Time time, Calendar calendar) {
  const DateTime then = date_and_time(time, calendar);
  return in_year(then.date.year + 1, then.date, then.seconds, calendar);
}

Time in_year_from(Time first, Calendar of_first, Time time, Calendar calendar) {
  const DateTime then = date_and_time(time, calendar);
  const std::int64_t year = date_and_time(first, of_first).date.year;
  const Time found = in_year(year, then.date, then.seconds, of_first);
  return found >= first ? found : in_year(year + 1, then.date, then.seconds, of_first);
}

Time in_calendar(Time time, Calendar calendar, Calendar other) {
  const DateTime then = date_and_time(time, calendar);
  return in_year(then.date.year, then.date, then.seconds, other);
}

Time at_part_of_month(Time time, Calendar calendar, Calendar other) {
  const DateTime then = date_and_time(time, calendar);
  const Time within = (then.date.day - 1) * kDay + then.seconds;
  const Date first{then.date.year, then.date.month, 1};
  return days_from_date(first, other) * kDay + within * days_in_month(first.year, first.month, other) /
                                                   days_in_month(first.year, first.month, calendar);
}

std::optional<TimePlace> place_among(const std::vector<Time>& times, Between between, Time time,
                                     Calendar calendar, Calendar of_times) {
  if (times.empty()) return std::nullopt;
  if (between == Between::kCycle) return place_in_cycle(times, time, calendar, of_times);
  const auto found = std::ranges::lower_bound(times, time);
  const auto number = static_cast<std::size_t>(found - times.begin());
  if (found != times.end() && *found == time) return TimePlace{number, number, 0};
  if (between == Between::kNothing || number == 0) return std::nullopt;
  if (between == Between::kHold) return TimePlace{number - 1, number - 1, 0};
  if (found == times.end()) return std::nullopt;
  if (between == Between::kLatest) return TimePlace{number - 1, number - 1, 0};
  return TimePlace{number - 1, number, part_between(times[number - 1], *found, time)};
}

Time median_step(const std::vector<Time>& times) {
  if (times.size() < 2) return 0;
  std::vector<Time> steps;
  for (std::size_t i = 1; i < times.size(); ++i) steps.push_back(times[i] - times[i - 1]);
  const auto middle = steps.begin() + (std::ssize(steps) - 1) / 2;
  std::ranges::nth_element(steps, middle);
  return *middle;
}

std::vector<Period> wide_gaps(const std::vector<Time>& times, Between between, Calendar calendar) {
  std::vector<Period> gaps;
  if (between == Between::kNothing) return gaps;
  const Time usual = median_step(times);
  const auto look = [&](Time first, Time last) {
    if (usual > 0 && last - first > kWide * usual) gaps.push_back({first, last});
  };
  for (std::size_t i = 1; i < times.size(); ++i) look(times[i - 1], times[i]);
  if (between == Between::kCycle && !times.empty()) look(times.back(), year_after(times.front(), calendar));
  std::ranges::stable_sort(gaps, std::greater<>(), [](const Period& gap) { return gap.last - gap.first; });
  return gaps;
}

}  // namespace jigsaw::inline fields
