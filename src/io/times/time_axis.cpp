#include "times/time_axis.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/printable.h"
#include "base/text.h"
#include "times/calendar.h"

namespace jigsaw::inline times {

namespace {

/// By so many days the Julian 1970-01-01 is after the Gregorian one.
constexpr std::int64_t kJulianDelay = 13;

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
  if (!day) return std::nullopt;
  const Date date{*year, *month, *day};
  const bool known = exists(date, Calendar::kAllLeap) || exists(date, Calendar::k360Day);
  return known ? std::optional(date) : std::nullopt;
}

/// What stands behind the point of a number, to nine digits.
double scan_fraction(Scanner& scan) {
  const std::size_t before = scan.rest().size();
  const auto value = static_cast<double>(scan.number(9).value_or(0));
  const auto digits = static_cast<double>(before - scan.rest().size());
  while (scan.number(9)) continue;
  return value / std::pow(10.0, digits);
}

/// Seconds of "06", "06:00", "06:00:30" or "06:00:30.0".
/// @param fraction  gets the part of a second that goes beyond; null: there must be none.
std::optional<Time> scan_time_of_day(Scanner& scan, double* fraction = nullptr) {
  const auto hours = scan.number(2);
  if (!hours || *hours > 23) return std::nullopt;
  std::int64_t seconds = *hours * kHour;
  if (!scan.take(':')) return seconds;
  const auto minutes = scan.number(2);
  if (!minutes || *minutes > 59) return std::nullopt;
  seconds += *minutes * 60;
  if (scan.take(':')) {
    const auto second = scan.number(2);
    if (!second || *second > 59) return std::nullopt;
    seconds += *second;
    if (scan.take('.')) {
      if (fraction != nullptr) {
        *fraction = scan_fraction(scan);
      } else if (scan.number(9).value_or(0) != 0) {
        return std::nullopt;
      }
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
  if (!hours || *hours >= 24) return std::nullopt;
  std::int64_t seconds = *hours * kHour;
  if (scan.take(':') || !scan.rest().empty()) {
    const auto minutes = scan.number(2);
    if (!minutes || *minutes >= 60 || !scan.rest().empty()) return std::nullopt;
    seconds += *minutes * 60;
  }
  return west ? -seconds : seconds;
}

/// A date, and the seconds of the day where they are given.
struct Parsed {
  Date date;
  std::optional<Time> seconds;
};

std::optional<Parsed> parse(std::string_view text) {
  Scanner scan(text);
  const auto date = scan_date(scan);
  if (!date) return std::nullopt;
  Parsed parsed{*date, std::nullopt};
  if (scan.take('T') || scan.take(' ')) {
    parsed.seconds = scan_time_of_day(scan);
    if (!parsed.seconds) return std::nullopt;
    scan.take('Z');
  }
  if (!scan.rest().empty()) return std::nullopt;
  return parsed;
}

/// So many seconds, over `parts`.
struct TimeUnit {
  std::int64_t seconds = 1, parts = 1;

  double in_seconds(double value) const {
    return value * static_cast<double>(seconds) / static_cast<double>(parts);
  }
};

/// @param name  in lower case.
std::optional<TimeUnit> unit_of(const std::string& name) {
  static const std::vector<std::pair<std::vector<std::string>, TimeUnit>> kUnits = {
      {{"days", "day", "d"}, {kDay}},
      {{"hours", "hour", "hrs", "hr", "h"}, {kHour}},
      {{"minutes", "minute", "mins", "min"}, {60}},
      {{"seconds", "second", "secs", "sec", "s"}, {1}},
      {{"milliseconds", "millisecond", "millisecs", "millisec", "msecs", "msec", "ms"}, {1, 1'000}},
      {{"microseconds", "microsecond", "microsecs", "microsec", "us"}, {1, 1'000'000}},
      {{"nanoseconds", "nanosecond", "nanosecs", "nanosec", "ns"}, {1, 1'000'000'000}}};
  for (const auto& [names, unit] : kUnits) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return unit;
  }
  return std::nullopt;
}

/// Months and years where all of a calendar are equally long.
std::optional<TimeUnit> long_unit_of(const std::string& name, Calendar calendar) {
  const bool months = name == "months" || name == "month" || name == "mon";
  if (calendar == Calendar::k360Day) return TimeUnit{(months ? 30 : 360) * kDay};
  if (!months && calendar == Calendar::kNoLeap) return TimeUnit{365 * kDay};
  if (!months && calendar == Calendar::kAllLeap) return TimeUnit{366 * kDay};
  return std::nullopt;
}

bool names_long_unit(const std::string& name) {
  constexpr std::array kNames = {"months", "month", "mon", "years", "year", "yr"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// A calendar, and whether its dates before 1582-10-15 are Julian.
struct OriginCalendar {
  Calendar calendar;
  bool mixed;
  std::string name;  ///< as the file has it

  bool is_julian(const Date& date) const { return mixed && date < Date{1582, 10, 15}; }
  /// The day after 4 October 1582 was the 15th.
  bool has(const Date& date) const {
    if (!is_julian(date)) return exists(date, calendar);
    return exists(date, Calendar::kJulian) && date <= Date{1582, 10, 4};
  }
  std::int64_t days_from(const Date& date) const {
    return is_julian(date) ? days_from_date(date, Calendar::kJulian) + kJulianDelay
                           : days_from_date(date, calendar);
  }
};

/// The moment that a unit counts from.
struct Origin {
  Time seconds = 0;
  double fraction = 0;  ///< of a second, beyond them
};

/// @throws DataError  that begins with `what`, for a day that the calendar lacks.
std::optional<Origin> parse_origin(std::string_view text, const OriginCalendar& calendar,
                                   const std::string& what) {
  Scanner scan(text);
  scan.skip_blanks();
  const auto date = scan_date(scan);
  if (!date) return std::nullopt;
  if (!calendar.has(*date)) {
    throw DataError(concat(
        what, " counts from ", format_date(*date), ", a day that the calendar ", calendar.name,
        calendar.mixed ? " (Julian until 1582-10-04, Gregorian from 1582-10-15 on)" : "", " does not have"));
  }
  Origin origin{calendar.days_from(*date) * kDay};
  if (!scan.take('T')) scan.skip_blanks();
  if (!scan.rest().empty() && scan.rest()[0] >= '0' && scan.rest()[0] <= '9') {
    const auto seconds = scan_time_of_day(scan, &origin.fraction);
    if (!seconds) return std::nullopt;
    origin.seconds += *seconds;
  }
  const auto zone = scan_zone(scan);
  if (!zone) return std::nullopt;
  origin.seconds -= *zone;
  return origin;
}

}  // namespace

std::optional<Time> parse_time(std::string_view text) {
  const auto parsed = parse(text);
  if (!parsed || !exists(parsed->date, Calendar::kStandard)) return std::nullopt;
  return days_from_date(parsed->date, Calendar::kStandard) * kDay + parsed->seconds.value_or(0);
}

std::optional<DatePeriod> parse_dates(std::string_view first, std::string_view last) {
  const auto begin = parse(first), end = parse(last);
  if (!begin || !end) return std::nullopt;
  return DatePeriod{{begin->date, begin->seconds.value_or(0)}, {end->date, end->seconds.value_or(kDay - 1)}};
}

DatePeriod::DatePeriod(const Period& period) : first(date_time(period.first)), last(date_time(period.last)) {}

DateTime DatePeriod::date_time(Time time) {
  const std::int64_t days = floor_div(time, kDay);
  return {date_from_days(days, Calendar::kStandard), time - days * kDay};
}

Period DatePeriod::in(Calendar calendar, const std::string& key) const {
  for (const DateTime& end : {first, last}) {
    if (exists(end.date, calendar) || exists(end.date, Calendar::kStandard)) continue;
    throw ConfigError(concat(key, " names ", format_date(end.date),
                             ", a day that neither the calendar of the files (", name(calendar),
                             ") nor the Gregorian one has"));
  }
  Period period;
  const auto time_of = [&](const Date& date, Time seconds) {
    return days_from_date(date, calendar) * kDay + seconds;
  };
  // Days that this calendar lacks lie between the last one of their month and the next month.
  const auto cut = [&](Date date) {
    date.day = std::min(date.day, days_in_month(date.year, date.month, calendar));
    return date;
  };
  period.first =
      exists(first.date, calendar) ? time_of(first.date, first.seconds) : time_of(cut(first.date), 0) + kDay;
  period.last =
      exists(last.date, calendar) ? time_of(last.date, last.seconds) : time_of(cut(last.date), kDay - 1);
  return period;
}

namespace {

/// "06:00", "06:00:30".
std::string format_time_of_day(Time seconds) {
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%02d:%02d", number(seconds / kHour), number(seconds / 60 % 60));
  std::string text = buffer;
  if (seconds % 60 != 0) {
    std::snprintf(buffer, sizeof buffer, ":%02d", number(seconds % 60));
    text += buffer;
  }
  return text;
}

}  // namespace

std::string format_date(const Date& date) {
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02d", number(date.year), number(date.month),
                number(date.day));
  return buffer;
}

std::string format_time(Time time, Calendar calendar) {
  const std::int64_t days = floor_div(time, kDay);
  return concat(format_date(date_from_days(days, calendar)), "T", format_time_of_day(time - days * kDay));
}

std::pair<std::string, std::string> format_ends(const DatePeriod& period) {
  std::string first = format_date(period.first.date), last = format_date(period.last.date);
  if (period.first.seconds != 0) first += concat("T", format_time_of_day(period.first.seconds));
  if (period.last.seconds != kDay - 1) last += concat("T", format_time_of_day(period.last.seconds));
  return {first, last};
}

std::string format_period(const Period& period, Calendar calendar) {
  const auto date_time = [&](Time time) {
    const std::int64_t days = floor_div(time, kDay);
    return DateTime{date_from_days(days, calendar), time - days * kDay};
  };
  const auto [first, last] = format_ends(DatePeriod{date_time(period.first), date_time(period.last)});
  return concat(first, " to ", last);
}

Time month_of(Time time, Calendar calendar) {
  const Date date = date_from_days(floor_div(time, kDay), calendar);
  return days_from_date({date.year, date.month, 16}, Calendar::k360Day) * kDay;
}

std::string duration_text(Time seconds) {
  if (seconds % kHour == 0) return concat(seconds / kHour, " h");
  return seconds % kMinute == 0 ? concat(seconds / kMinute, " min") : concat(seconds, " s");
}

std::string lead_text(Time lead, bool of_months) {
  return of_months ? concat(lead / kMonth, " mo") : duration_text(lead);
}

double in_hours(Time seconds) {
  return static_cast<double>(seconds) / static_cast<double>(kHour);
}

Time from_hours(double hours) {
  return std::llround(hours * static_cast<double>(kHour));
}

Time middle_of_month(Time month, Calendar calendar) {
  const Date date = date_from_days(floor_div(month, kDay), Calendar::k360Day);
  return begin_of_month(month, calendar) + days_in_month(date.year, date.month, calendar) * kDay / 2;
}

Time begin_of_month(Time month, Calendar calendar) {
  const Date date = date_from_days(floor_div(month, kDay), Calendar::k360Day);
  return days_from_date({date.year, date.month, 1}, calendar) * kDay;
}

double year_fraction(Time time, Calendar calendar) {
  const std::int64_t year = date_from_days(floor_div(time, kDay), calendar).year;
  const Time begin = days_from_date({year, 1, 1}, calendar) * kDay;
  const Time end = days_from_date({year + 1, 1, 1}, calendar) * kDay;
  return static_cast<double>(time - begin) / static_cast<double>(end - begin);
}

int day_of_year(Time time, Calendar calendar) {
  const std::int64_t days = floor_div(time, kDay);
  return static_cast<int>(days - days_from_date({date_from_days(days, calendar).year, 1, 1}, calendar)) + 1;
}

int days_in_year(Time time, Calendar calendar) {
  const std::int64_t year = date_from_days(floor_div(time, kDay), calendar).year;
  return static_cast<int>(days_from_date({year + 1, 1, 1}, calendar) -
                          days_from_date({year, 1, 1}, calendar));
}

Calendar parse_calendar(const std::string& calendar, const std::string& what) {
  static const std::vector<std::pair<std::vector<std::string>, Calendar>> kNames = {
      {{"", "standard", "gregorian", "proleptic_gregorian"}, Calendar::kStandard},
      {{"noleap", "365_day"}, Calendar::kNoLeap},
      {{"all_leap", "366_day"}, Calendar::kAllLeap},
      {{"360_day", "360"}, Calendar::k360Day},
      {{"julian"}, Calendar::kJulian}};
  const std::string lower = to_lower(calendar);
  for (const auto& [names, known] : kNames) {
    if (std::find(names.begin(), names.end(), lower) != names.end()) return known;
  }
  throw DataError(
      concat(what, " has the calendar \"", calendar,
             "\"; standard, gregorian, proleptic_gregorian, noleap (365_day), all_leap (366_day), "
             "360_day and julian are understood"));
}

Calendar calendar_of_times(const std::string& units, const std::string& calendar, const std::string& what) {
  return unit_of(to_lower(units)) ? Calendar::kNone : parse_calendar(calendar, what);
}

namespace {

/// Dates as numbers, 20200131.25 for 6 o'clock on that day, as ICON and CDO write absolute times.
constexpr std::string_view kDatesAsNumbers = "day as %Y%m%d.%f";

std::vector<Time> decode_numbered_dates(std::span<const double> values, const OriginCalendar& calendar,
                                        const std::string& what) {
  constexpr double kMost = 99999999;  // of years of four digits
  std::vector<Time> times;
  times.reserve(values.size());
  for (const double value : values) {
    const double whole = std::floor(value);
    const auto number = value >= 0 && whole <= kMost ? static_cast<std::int64_t>(whole) : 0;
    const Date date{number / 10000, number / 100 % 100, number % 100};
    if (!calendar.has(date)) {
      char text[64];
      std::snprintf(text, sizeof text, "%.15g", value);
      throw DataError(concat(what, " holds ", text, ", which is no date of the calendar ", calendar.name,
                             " by its units \"", kDatesAsNumbers, "\""));
    }
    times.push_back(calendar.days_from(date) * kDay + std::llround((value - whole) * kDay));
  }
  return times;
}

}  // namespace

std::vector<Time> decode_times(std::span<const double> values, const std::string& units,
                               const std::string& calendar, const std::string& what) {
  if (unit_of(to_lower(units))) return decode_times(values, units + " since 1970-01-01", "", what);
  const std::string lower = to_lower(units), named = to_lower(calendar);
  const OriginCalendar counted_in{parse_calendar(calendar, what),
                                  named.empty() || named == "standard" || named == "gregorian",
                                  named.empty() ? std::string("standard") : printable(calendar)};
  if (units == kDatesAsNumbers) return decode_numbered_dates(values, counted_in, what);
  const std::size_t since = lower.find(" since ");
  const std::string counted = since == std::string::npos ? "" : lower.substr(0, lower.find(' '));
  auto unit = unit_of(counted);
  if (!unit && names_long_unit(counted)) {
    unit = long_unit_of(counted, counted_in.calendar);
    if (!unit)
      throw DataError(concat(
          what, " has the units \"", units, "\" and the calendar ", counted_in.name, ", in which ", counted,
          " are not equally long; write the times in days (CDO: setreftime,1900-01-01,00:00:00,1day)"));
  }
  const auto origin =
      unit ? parse_origin(std::string_view(units).substr(since + 7), counted_in, what) : std::nullopt;
  if (!origin) {
    throw DataError(
        concat(what, " has the units \"", units,
               "\"; they must be like \"hours since 1900-01-01 00:00:00\", or of times without "
               "dates like \"seconds\"",
               units.find(" as %") == std::string::npos
                   ? ""
                   : concat("; \"", kDatesAsNumbers,
                            "\" is read, too, and cdo -r copy IN OUT writes others as times since "
                            "a date")));
  }
  constexpr double kNoise = 0.01;  // of seconds, in what is written as days
  std::vector<Time> times;
  times.reserve(values.size());
  for (const double value : values) {
    const double since_origin = unit->in_seconds(value) + origin->fraction;
    if (!(std::abs(since_origin + static_cast<double>(origin->seconds)) < 3e11))
      throw DataError(concat(what, " holds ", value, ", which is no time"));
    const Time time = static_cast<Time>(std::floor(since_origin + 0.5)) + origin->seconds;
    if (!times.empty()) {
      const double before = values[times.size() - 1],
                   apart = std::abs(unit->in_seconds(value) - unit->in_seconds(before));
      if (apart > kNoise && apart < 1 - kNoise)
        throw DataError(concat(what, " holds ", before, " and ", value, ", \"", units,
                               "\": less than a second apart, and times are counted in whole seconds; "
                               "write them in larger steps, as if a step were a minute"));
    }
    times.push_back(time);
  }
  return times;
}

std::vector<Time> decode_dates(const std::vector<std::string>& dates, const std::string& what) {
  constexpr std::size_t kBehindDay = 10;  // of "2019-03-01"
  std::vector<Time> times;
  times.reserve(dates.size());
  for (const std::string& date : dates) {
    std::string text = date;
    if (text.size() > kBehindDay && text[kBehindDay] == '_') text[kBehindDay] = 'T';
    const std::optional<Time> time = parse_time(text);
    if (!time) {
      throw DataError(concat(what, " holds \"", printable(date.substr(0, 60)),
                             "\", which is no date like 2019-03-01_06:00:00"));
    }
    times.push_back(*time);
  }
  return times;
}

}  // namespace jigsaw::inline times
