#pragma once
#include <compare>
#include <cstdint>

namespace jigsaw::inline times {

/// ⌊a/b⌋ for b > 0.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

/// The calendars of CF conventions (section 4.4.1) in which times are counted.
enum class Calendar : std::uint8_t {
  kStandard,  ///< proleptic Gregorian; "standard" and "gregorian" dates before 1582-10-15 are brought to it
  kNoLeap,    ///< years of 365 days
  kAllLeap,   ///< years of 366 days
  k360Day,    ///< twelve months of 30 days
  kJulian,    ///< a leap year every four years
  kNone       ///< times have no dates, as of simulations that count from their start; those of kStandard from
              ///< 1970-01-01 on stand for them
};
/// As CF calls it: "standard", "noleap", "all_leap", "360_day", "julian", "none".
const char* name(Calendar calendar);

struct Date {
  std::int64_t year = 1970, month = 1, day = 1;

  auto operator<=>(const Date&) const = default;
};

std::int64_t days_in_month(std::int64_t year, std::int64_t month, Calendar calendar);
bool exists(const Date& date, Calendar calendar);

/// Days of the calendar since its own 1970-01-01, and back.
std::int64_t days_from_date(const Date& date, Calendar calendar);
Date date_from_days(std::int64_t days, Calendar calendar);

}  // namespace jigsaw::inline times
