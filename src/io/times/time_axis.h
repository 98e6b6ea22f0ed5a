#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "times/calendar.h"

namespace jigsaw::inline times {

/// Times are whole seconds since 1970-01-01 00:00 UTC in the calendar of the files, without leap seconds: of
/// the standard one in the proleptic Gregorian calendar, of others counted in their own days.
using Time = std::int64_t;

inline constexpr Time kMinute = 60;
inline constexpr Time kHour = 3600;
inline constexpr Time kDay = 24 * kHour;

/// Times of one calendar: both ends are included.
struct Period {
  Time first = 0, last = 0;

  bool contains(Time time) const { return first <= time && time <= last; }
  bool operator==(const Period&) const = default;
};

/// A moment as it is written, which only a calendar makes a Time.
struct DateTime {
  Date date;
  Time seconds = 0;  ///< of the day

  auto operator<=>(const DateTime&) const = default;
};

/// The days of a configuration, before it is known in which calendar the files count: all times whose date
/// and time of day lie between two, both included.
struct DatePeriod {
  DateTime first, last;

  DatePeriod() = default;
  DatePeriod(const DateTime& begin, const DateTime& end) : first(begin), last(end) {}
  /// From times of the standard calendar.
  DatePeriod(const Period& period);

  /// @throws ConfigError  that begins with `key`, when an end is a day that neither this calendar nor the
  ///                      Gregorian one has.
  Period in(Calendar calendar, const std::string& key) const;
  bool operator==(const DatePeriod&) const = default;

 private:
  static DateTime date_time(Time time);
};

/// "2019-03-01" (midnight), "2019-03-01T06", "2019-03-01T06:00", "2019-03-01T06:00:30", a blank in place of
/// the T and a Z at the end allowed; nothing when it is no such time of the standard calendar.
std::optional<Time> parse_time(std::string_view text);
/// A period from its two ends, days that some calendar has ("2019-02-30" too); an end without time of day
/// counts whole. Nothing when one of them is no such day.
std::optional<DatePeriod> parse_dates(std::string_view first, std::string_view last);

/// "2019-03-01".
std::string format_date(const Date& date);
/// "2019-03-01T06:00", with seconds only where there are some.
std::string format_time(Time time, Calendar calendar = Calendar::kStandard);
/// The ends of a period as parse_dates() reads them.
std::pair<std::string, std::string> format_ends(const DatePeriod& period);
/// "2019-03-01 to 2019-03-24".
std::string format_period(const Period& period, Calendar calendar = Calendar::kStandard);

/// Months as times of the calendar 360_day: the month that a time lies in, at 00:00 of its 16th day. So all
/// follow one another by kMonth.
inline constexpr Time kMonth = 30 * kDay;
Time month_of(Time time, Calendar calendar);
/// In the largest unit that it is a whole number of: "6 h", "5 min", "90 s".
std::string duration_text(Time seconds);
/// The same, or of months "1 mo".
std::string lead_text(Time lead, bool of_months);
/// Of JSON: 6, 0.0833….
double in_hours(Time seconds);
/// The time nearest to so many hours.
Time from_hours(double hours);
/// The middle of a month that month_of() gave, in another calendar.
Time middle_of_month(Time month, Calendar calendar);
/// Its first moment.
Time begin_of_month(Time month, Calendar calendar);

/// The part of the year that has passed, in [0, 1).
double year_fraction(Time time, Calendar calendar = Calendar::kStandard);
/// From 1 on.
int day_of_year(Time time, Calendar calendar = Calendar::kStandard);
int days_in_year(Time time, Calendar calendar = Calendar::kStandard);

/// The calendar of this CF name, in letters of either case; "" is standard. @throws DataError  that begins
/// with `what`.
Calendar parse_calendar(const std::string& calendar, const std::string& what);

/// The same of a time coordinate: kNone where its units are those of a duration and count from no date.
Calendar calendar_of_times(const std::string& units, const std::string& calendar, const std::string& what);

/// Decodes CF time coordinates: `units` as "hours since 1900-01-01 00:00:00.0" (from days to nanoseconds, in
/// letters of either case), `calendar` as of parse_calendar(), of which "standard", "gregorian" and "" have
/// Julian dates before 1582-10-15. Times between seconds are rounded,
/// once the parts of a second that origin and value have are added up. Those of Calendar::kNone ("seconds")
/// count from 1970-01-01. Units "day as %Y%m%d.%f" are of dates as numbers: 20200131.25.
///
/// @throws DataError  for other units and calendars, an origin that the calendar does not have, and values
///                    that are no time or beyond any year of four digits, or one after the other less than
///                    a second apart; `what` names the coordinate and its file.
std::vector<Time> decode_times(std::span<const double> values, const std::string& units,
                               const std::string& calendar, const std::string& what);
/// Dates of the standard calendar as parse_time() reads them, or WRF writes them: "2019-03-01_06:00:00".
/// @throws DataError  that begins with `what`.
std::vector<Time> decode_dates(const std::vector<std::string>& dates, const std::string& what);

}  // namespace jigsaw::inline times
