#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jigsaw::inline samples {

/// Times are whole seconds since 1970-01-01 00:00 UTC in the proleptic Gregorian calendar, without leap
/// seconds.
using Time = std::int64_t;

inline constexpr Time kHour = 3600;
inline constexpr Time kDay = 24 * kHour;

/// The days of a configuration: both ends are included.
struct Period {
  Time first = 0, last = 0;

  bool contains(Time time) const { return first <= time && time <= last; }
  bool operator==(const Period&) const = default;
};

/// "2019-03-01" (midnight), "2019-03-01T06:00", "2019-03-01T06:00:30", a blank in place of the T and a Z at
/// the end allowed; nothing when it is no such time.
std::optional<Time> parse_time(std::string_view text);
/// A period from its two ends; an end without time of day counts whole.
std::optional<Period> parse_period(std::string_view first, std::string_view last);

/// "2019-03-01T06:00", with seconds only where there are some.
std::string format_time(Time time);
/// The ends of a period as parse_period() reads them.
std::pair<std::string, std::string> format_ends(const Period& period);
/// "2019-03-01 to 2019-03-24".
std::string format_period(const Period& period);

/// The part of the year that has passed, in [0, 1).
double year_fraction(Time time);

/// Decodes CF time coordinates: `units` as "hours since 1900-01-01 00:00:00.0" (days, hours, minutes or
/// seconds), calendar "standard", "gregorian" (Julian dates before 1582-10-15), "proleptic_gregorian", or ""
/// as standard. Values between seconds are rounded.
///
/// @throws DataError  for other units and calendars, and values that are no time or beyond any year of four
///                    digits; `what` names the coordinate and its file.
std::vector<Time> decode_times(std::span<const double> values, const std::string& units,
                               const std::string& calendar, const std::string& what);

}  // namespace jigsaw::inline samples
