#include "predict/calendar_means.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace jigsaw::inline predict {

namespace {

constexpr std::array kCalendarUnits = {
    std::pair{CalendarUnit::kDay, "day"}, std::pair{CalendarUnit::kMonth, "month"},
    std::pair{CalendarUnit::kSeason, "season"}, std::pair{CalendarUnit::kYear, "year"}};

std::int64_t months_in(CalendarUnit unit) {
  if (unit == CalendarUnit::kMonth) return 1;
  return unit == CalendarUnit::kSeason ? 3 : 12;
}

}  // namespace

std::optional<CalendarUnit> parse_calendar_unit(const std::string& word) {
  for (const auto& [unit, name] : kCalendarUnits)
    if (word == name) return unit;
  return std::nullopt;
}

const char* name(CalendarUnit unit) {
  for (const auto& [known, name] : kCalendarUnits)
    if (known == unit) return name;
  fail("unknown unit of the calendar");
}

Period unit_around(Time time, CalendarUnit unit, Calendar calendar) {
  const std::int64_t day = floor_div(time, kDay);
  if (unit == CalendarUnit::kDay) return {day * kDay, (day + 1) * kDay};
  const Date date = date_from_days(day, calendar);
  // Months since year 0; a season begins with one whose number is a multiple of three.
  const std::int64_t length = months_in(unit), month = 12 * date.year + date.month - 1,
                     shift = unit == CalendarUnit::kSeason ? 1 : 0,
                     first = floor_div(month + shift, length) * length - shift;
  const auto begin_of = [&](std::int64_t number) {
    const std::int64_t year = floor_div(number, 12);
    return days_from_date({year, number - 12 * year + 1, 1}, calendar) * kDay;
  };
  return {begin_of(first), begin_of(first + length)};
}

namespace {

/// In which the state of a step counts.
Period unit_of(const ForecastSteps& steps, int step, CalendarUnit unit) {
  const Time middle = steps.limits ? (steps.limits->first + steps.limits->last) / 2 : 0;
  return unit_around(steps.start + step * steps.step + middle, unit, steps.calendar);
}

}  // namespace

bool lacks_start(const ForecastSteps& steps, CalendarUnit unit) {
  return steps.first == 0 && unit_of(steps, 0, unit) == unit_of(steps, 1, unit) &&
         unit_of(steps, -1, unit) != unit_of(steps, 0, unit);
}

std::vector<CalendarMean> calendar_means(const ForecastSteps& steps, CalendarUnit unit) {
  const auto around = [&](int step) { return unit_of(steps, step, unit); };
  std::vector<CalendarMean> means;
  // The start is a state of the unit that its forecast begins in, too.
  Period open = around(steps.first > 0 ? steps.first : -1);
  std::optional<int> begun;
  for (int step = steps.first + 1; step <= steps.last + 1; ++step) {
    const Period own = around(step);
    if (own == open) continue;
    if (begun) {
      CalendarMean mean{*begun, step - 1, {open.first - steps.start, open.last - steps.start}};
      if (steps.limits)
        mean.span = {mean.first * steps.step + steps.limits->first,
                     mean.last * steps.step + steps.limits->last};
      means.push_back(mean);
    }
    begun = step;
    open = own;
  }
  return means;
}

bool divides(Time step, CalendarUnit unit, Calendar calendar) {
  if (unit == CalendarUnit::kDay) return step <= kDay;
  const Time month = days_in_month(1970, 2, calendar) * kDay;
  return step <= months_in(unit) * month;
}

}  // namespace jigsaw::inline predict
