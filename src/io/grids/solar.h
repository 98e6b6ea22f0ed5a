#pragma once
#include "times/time_axis.h"

namespace jigsaw::inline grids {

/// Where the sun stands at a time, by the low-precision formulas of the Astronomical Almanac (section C):
/// within 0.01° from 1950 to 2050. Of calendars other than the standard one years are counted as if each took
/// the Gregorian mean of 365.2425 days, so that the seasons keep their dates.
struct SunPosition {
  double declination = 0;           ///< [radians]
  double greenwich_hour_angle = 0;  ///< at longitude 0, 0 at true noon [radians]
  double distance = 1;              ///< from the Earth [astronomical units]
};
SunPosition sun_at(Time time, Calendar calendar = Calendar::kStandard);

}  // namespace jigsaw::inline grids
