#include "samples/time_axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline samples {

namespace {

struct Date {
  std::int64_t year = 1970, month = 1, day = 1;
};

/// Days from 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
std::int64_t days_from_civil(Date date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * ((date.month + 9) % 12) + 2) / 5 + date.day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

Date civil_from_days(std::int64_t days) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const std::int64_t day = days - era * 146097;
  const std::int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
  const std::int64_t of_year = day - (365 * year + year / 4 - year / 100);
  const std::int64_t shifted = (5 * of_year + 2) / 153;
  const std::int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {year + era * 400 + (month <= 2 ? 1 : 0), month, of_year - (153 * shifted + 2) / 5 + 1};
}

/// The same day count from a date of the Julian calendar (leap years every four years).
std::int64_t days_from_julian(Date date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0) + 4800;
  return (153 * ((date.month + 9) % 12) + 2) / 5 + date.day + 365 * year + year / 4 - 32083 - 2440588;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

/// Reads numbers and marks off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<std::int64_t> number(std::size_t most_digits) {
    std::size_t digits = 0;
    while (digits < text_.size() && digits < most_digits && text_[digits] >= '0' && text_[digits] <= '9')
      ++digits;
    if (digits == 0) return std::nullopt;
    std::int64_t value = 0;
    std::from_chars(text_.data(), text_.data() + digits, value);
    text_.remove_prefix(digits);
    return value;
  }
  bool take(char mark) {
    if (text_.empty() || text_[0] != mark) return false;
    text_.remove_prefix(1);
    return true;
  }
  void skip_blanks() {
    while (take(' ')) continue;
  }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

std::optional<Date> scan_date(Scanner& scan) {
  const auto year = scan.number(4);
  if (!year || !scan.take('-')) return std::nullopt;
  const auto month = scan.number(2);
  if (!month || !scan.take('-')) return std::nullopt;
  const auto day = scan.number(2);
  static constexpr int kDays[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (!day || *month < 1 || *month > 12 || *day < 1 || *day > kDays[*month - 1]) return std::nullopt;
  return Date{*year, *month, *day};
}

/// Seconds of "06:00", "06:00:30" or "06:00:30.0".
std::optional<Time> scan_time_of_day(Scanner& scan) {
  const auto hours = scan.number(2);
  if (!hours || *hours > 23) return std::nullopt;
  std::int64_t seconds = *hours * kHour;
  if (!scan.take(':')) return std::nullopt;
  const auto minutes = scan.number(2);
  if (!minutes || *minutes > 59) return std::nullopt;
  seconds += *minutes * 60;
  if (scan.take(':')) {
    const auto second = scan.number(2);
    if (!second || *second > 59) return std::nullopt;
    seconds += *second;
    if (scan.take('.')) {
      const auto fraction = scan.number(9);
      if (fraction.value_or(0) != 0) return std::nullopt;
    }
  }
  return seconds;
}

/// Seconds east of UTC of "", "Z", "UTC", "+01:00", "-6", or nothing.
std::optional<Time> scan_zone(Scanner& scan) {
  scan.skip_blanks();
  const std::string_view rest = scan.rest();
  if (rest.empty() || rest == "Z" || rest == "UTC" || rest == "GMT") return 0;
  const bool west = scan.take('-');
  if (!west && !scan.take('+')) return std::nullopt;
  const auto hours = scan.number(2);
  if (!hours) return std::nullopt;
  std::int64_t seconds = *hours * kHour;
  if (scan.take(':') || !scan.rest().empty()) {
    const auto minutes = scan.number(2);
    if (!minutes || !scan.rest().empty()) return std::nullopt;
    seconds += *minutes * 60;
  }
  return west ? -seconds : seconds;
}

struct Parsed {
  Time time;
  bool whole_day;
};

std::optional<Parsed> parse(std::string_view text) {
  Scanner scan(text);
  const auto date = scan_date(scan);
  if (!date) return std::nullopt;
  const std::int64_t days = days_from_civil(*date);
  if (civil_from_days(days).day != date->day) return std::nullopt;  // 2019-02-29
  Parsed parsed{days * kDay, true};
  if (scan.take('T') || scan.take(' ')) {
    const auto seconds = scan_time_of_day(scan);
    if (!seconds) return std::nullopt;
    parsed = {parsed.time + *seconds, false};
    scan.take('Z');
  }
  if (!scan.rest().empty()) return std::nullopt;
  return parsed;
}

std::optional<std::int64_t> seconds_of_unit(const std::string& unit) {
  static const std::vector<std::pair<std::vector<std::string>, std::int64_t>> kUnits = {
      {{"days", "day", "d"}, kDay},
      {{"hours", "hour", "hrs", "hr", "h"}, kHour},
      {{"minutes", "minute", "mins", "min"}, 60},
      {{"seconds", "second", "secs", "sec", "s"}, 1}};
  for (const auto& [names, seconds] : kUnits) {
    if (std::find(names.begin(), names.end(), unit) != names.end()) return seconds;
  }
  return std::nullopt;
}

/// The moment that a unit counts from.
std::optional<Time> parse_origin(std::string_view text, bool mixed_calendar) {
  Scanner scan(text);
  scan.skip_blanks();
  const auto date = scan_date(scan);
  if (!date) return std::nullopt;
  std::int64_t days = days_from_civil(*date);
  if (mixed_calendar && days < days_from_civil({1582, 10, 15})) days = days_from_julian(*date);
  Time time = days * kDay;
  if (!scan.take('T')) scan.skip_blanks();
  if (!scan.rest().empty() && scan.rest()[0] >= '0' && scan.rest()[0] <= '9') {
    const auto seconds = scan_time_of_day(scan);
    if (!seconds) return std::nullopt;
    time += *seconds;
  }
  const auto zone = scan_zone(scan);
  if (!zone) return std::nullopt;
  return time - *zone;
}

}  // namespace

std::optional<Time> parse_time(std::string_view text) {
  const auto parsed = parse(text);
  return parsed ? std::optional(parsed->time) : std::nullopt;
}

std::optional<Period> parse_period(std::string_view first, std::string_view last) {
  const auto begin = parse(first), end = parse(last);
  if (!begin || !end) return std::nullopt;
  return Period{begin->time, end->whole_day ? end->time + kDay - 1 : end->time};
}

std::string format_time(Time time) {
  const std::int64_t days = floor_div(time, kDay), seconds = time - days * kDay;
  const Date date = civil_from_days(days);
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02dT%02d:%02d", number(date.year), number(date.month),
                number(date.day), number(seconds / kHour), number(seconds / 60 % 60));
  std::string text = buffer;
  if (seconds % 60 != 0) {
    std::snprintf(buffer, sizeof buffer, ":%02d", number(seconds % 60));
    text += buffer;
  }
  return text;
}

std::pair<std::string, std::string> format_ends(const Period& period) {
  std::string first = format_time(period.first), last = format_time(period.last);
  if (floor_div(period.first, kDay) * kDay == period.first) first = first.substr(0, first.find('T'));
  if (floor_div(period.last + 1, kDay) * kDay == period.last + 1) last = last.substr(0, last.find('T'));
  return {first, last};
}

std::string format_period(const Period& period) {
  const auto [first, last] = format_ends(period);
  return concat(first, " to ", last);
}

double year_fraction(Time time) {
  const std::int64_t year = civil_from_days(floor_div(time, kDay)).year;
  const Time begin = days_from_civil({year, 1, 1}) * kDay, end = days_from_civil({year + 1, 1, 1}) * kDay;
  return static_cast<double>(time - begin) / static_cast<double>(end - begin);
}

std::vector<Time> decode_times(std::span<const double> values, const std::string& units,
                               const std::string& calendar, const std::string& what) {
  const bool mixed = calendar.empty() || calendar == "standard" || calendar == "gregorian";
  if (!mixed && calendar != "proleptic_gregorian") {
    throw DataError(concat(what, " has the calendar \"", calendar,
                           "\"; standard, gregorian and proleptic_gregorian are understood"));
  }
  const std::size_t since = units.find(" since ");
  const auto unit =
      since == std::string::npos ? std::nullopt : seconds_of_unit(units.substr(0, units.find(' ')));
  const auto origin = unit ? parse_origin(std::string_view(units).substr(since + 7), mixed) : std::nullopt;
  if (!origin) {
    throw DataError(concat(what, " has the units \"", units,
                           "\"; they must be like \"hours since 1900-01-01 00:00:00\""));
  }
  std::vector<Time> times;
  times.reserve(values.size());
  for (const double value : values) {
    const double seconds = value * static_cast<double>(*unit) + static_cast<double>(*origin);
    if (!(std::abs(seconds) < 3e11)) throw DataError(concat(what, " holds ", value, ", which is no time"));
    times.push_back(std::llround(value * static_cast<double>(*unit)) + *origin);
  }
  return times;
}

}  // namespace jigsaw::inline samples
