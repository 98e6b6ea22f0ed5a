#include "times/calendar.h"

#include <array>

#include "base/error.h"

namespace jigsaw::inline times {

namespace {

constexpr std::array<std::int64_t, 12> kMonthDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

bool is_gregorian(Calendar calendar) {
  return calendar == Calendar::kStandard || calendar == Calendar::kNone;
}

bool is_leap(std::int64_t year, Calendar calendar) {
  if (is_gregorian(calendar)) return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  if (calendar == Calendar::kJulian) return year % 4 == 0;
  return calendar == Calendar::kAllLeap;
}

/// Days from 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
std::int64_t days_from_civil(const Date& date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const std::int64_t era = floor_div(year, 400);
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * ((date.month + 9) % 12) + 2) / 5 + date.day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

Date civil_from_days(std::int64_t days) {
  days += 719468;
  const std::int64_t era = floor_div(days, 146097);
  const std::int64_t day = days - era * 146097;
  const std::int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
  const std::int64_t of_year = day - (365 * year + year / 4 - year / 100);
  const std::int64_t shifted = (5 * of_year + 2) / 153;
  const std::int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {year + era * 400 + (month <= 2 ? 1 : 0), month, of_year - (153 * shifted + 2) / 5 + 1};
}

/// Days of the Julian calendar from its 1970-01-01: years begin in March here, so that a leap day ends one.
std::int64_t days_from_julian(const Date& date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const std::int64_t day_of_year = (153 * ((date.month + 9) % 12) + 2) / 5 + date.day - 1;
  return 365 * year + floor_div(year, 4) + day_of_year - 719483;
}

Date julian_from_days(std::int64_t days) {
  constexpr std::int64_t kFourYears = 4 * 365 + 1;
  days += 719483;
  const std::int64_t era = floor_div(days, kFourYears);
  const std::int64_t day = days - era * kFourYears;
  const std::int64_t year = (day - day / 1460) / 365;
  const std::int64_t shifted = (5 * (day - 365 * year) + 2) / 153;
  const std::int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {4 * era + year + (month <= 2 ? 1 : 0), month, day - 365 * year - (153 * shifted + 2) / 5 + 1};
}

/// Of calendars whose years are all alike.
std::int64_t days_in_year(Calendar calendar) {
  std::int64_t days = 0;
  for (std::int64_t month = 1; month <= 12; ++month) days += days_in_month(1, month, calendar);
  return days;
}

}  // namespace

const char* name(Calendar calendar) {
  switch (calendar) {
    case Calendar::kStandard:
      return "standard";
    case Calendar::kNoLeap:
      return "noleap";
    case Calendar::kAllLeap:
      return "all_leap";
    case Calendar::k360Day:
      return "360_day";
    case Calendar::kJulian:
      return "julian";
    case Calendar::kNone:
      return "none";
  }
  fail("unknown calendar");
}

std::int64_t days_in_month(std::int64_t year, std::int64_t month, Calendar calendar) {
  if (calendar == Calendar::k360Day) return 30;
  return kMonthDays[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap(year, calendar) ? 1 : 0);
}

bool exists(const Date& date, Calendar calendar) {
  return date.month >= 1 && date.month <= 12 && date.day >= 1 &&
         date.day <= days_in_month(date.year, date.month, calendar);
}

std::int64_t days_from_date(const Date& date, Calendar calendar) {
  if (is_gregorian(calendar)) return days_from_civil(date);
  if (calendar == Calendar::kJulian) return days_from_julian(date);
  std::int64_t days = (date.year - 1970) * days_in_year(calendar) + date.day - 1;
  for (std::int64_t month = 1; month < date.month; ++month) days += days_in_month(date.year, month, calendar);
  return days;
}

Date date_from_days(std::int64_t days, Calendar calendar) {
  if (is_gregorian(calendar)) return civil_from_days(days);
  if (calendar == Calendar::kJulian) return julian_from_days(days);
  const std::int64_t length = days_in_year(calendar), years = floor_div(days, length);
  Date date{1970 + years, 1, days - years * length + 1};
  while (date.day > days_in_month(date.year, date.month, calendar)) {
    date.day -= days_in_month(date.year, date.month, calendar);
    ++date.month;
  }
  return date;
}

}  // namespace jigsaw::inline times
