#include "grids/solar.h"

#include <cmath>
#include <numbers>

namespace jigsaw::inline grids {

namespace {

constexpr double kRadians = std::numbers::pi / 180;
constexpr double kMeanYear = 365.2425;

/// Days since 2000-01-01 12:00, the epoch J2000.0.
double days_since_epoch(Time time, Calendar calendar) {
  const Time midnight = days_from_date({2000, 1, 1}, calendar) * kDay;
  // Files with Julian dates count those of this century, which are the Gregorian ones.
  if (calendar == Calendar::kStandard || calendar == Calendar::kJulian)
    return static_cast<double>(time - midnight) / static_cast<double>(kDay) - 0.5;
  const Time of_day = ((time % kDay) + kDay) % kDay;
  const Time day = (time - of_day) / kDay;
  const auto year = static_cast<double>(date_from_days(day, calendar).year);
  return kMeanYear * (year - 2000 + year_fraction(time, calendar)) - 0.5;
}

}  // namespace

SunPosition sun_at(Time time, Calendar calendar) {
  const double n = days_since_epoch(time, calendar);
  const double mean_longitude = 280.460 + 0.9856474 * n;  // with aberration [degrees]
  const double anomaly = (357.528 + 0.9856003 * n) * kRadians;
  const double longitude =
      (mean_longitude + 1.915 * std::sin(anomaly) + 0.020 * std::sin(2 * anomaly)) * kRadians;
  const double obliquity = (23.439 - 0.0000004 * n) * kRadians;
  const double ascension = std::atan2(std::cos(obliquity) * std::sin(longitude), std::cos(longitude));
  const Time of_day = ((time % kDay) + kDay) % kDay;
  const double mean_angle = 360.0 * static_cast<double>(of_day) / static_cast<double>(kDay) - 180;
  SunPosition sun;
  sun.declination = std::asin(std::sin(obliquity) * std::sin(longitude));
  // The equation of time, mean longitude less right ascension, is what true time is ahead of mean time.
  sun.greenwich_hour_angle = (mean_angle + mean_longitude) * kRadians - ascension;
  sun.distance = 1.00014 - 0.01671 * std::cos(anomaly) - 0.00014 * std::cos(2 * anomaly);
  return sun;
}

}  // namespace jigsaw::inline grids
