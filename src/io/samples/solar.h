#pragma once
#include "samples/time_axis.h"

namespace jigsaw::inline samples {

/// Where the sun stands at a time, by the low-precision formulas of the Astronomical Almanac (section C):
/// within 0.01° from 1950 to 2050. Of calendars other than the standard one years are counted as if each took
/// the Gregorian mean of 365.2425 days, so that the seasons keep their dates.
struct SunPosition {
  double declination = 0;           ///< [radians]
  double greenwich_hour_angle = 0;  ///< at longitude 0, 0 at true noon [radians]
  double distance = 1;              ///< from the Earth [astronomical units]
};
SunPosition sun_at(Time time, Calendar calendar = Calendar::kStandard);

/// Of the sun's zenith angle at a place in degrees, below 0 at night; without refraction.
double cos_zenith_angle(const SunPosition& sun, double latitude, double longitude);

/// What the sun sends to a horizontal plane on top of the atmosphere over the solar constant: 0 at night,
/// else cos_zenith_angle/distance².
double insolation(const SunPosition& sun, double latitude, double longitude);

}  // namespace jigsaw::inline samples
