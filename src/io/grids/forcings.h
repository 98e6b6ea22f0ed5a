#pragma once
#include <span>
#include <vector>

#include "array/box.h"
#include "array/grid.h"
#include "times/time_axis.h"

namespace jigsaw::inline grids {

/// Fields that place and time alone determine; all are without unit and of order 1.
enum class Forcing {
  kLatitude,   ///< standardised over the grid's rows: mean 0, deviation 1
  kLongitude,  ///< standardised over the grid's columns
  kCosLongitude,
  kSinLongitude,
  kSinLatitude,
  kCosLatitude,
  kCosZenithAngle,  ///< of the sun, below 0 at night
  kInsolation,      ///< on top of the atmosphere, over the solar constant
  kSinLocalTime,    ///< of the day in mean solar time, UTC + longitude/15 h
  kCosLocalTime,
  kSinTimeOfDay,  ///< of the day in UTC; these and what follows are the same everywhere
  kCosTimeOfDay,
  kSinDayOfYear,  ///< of the part of the year that has passed
  kCosDayOfYear
};
const char* name(Forcing forcing);

/// Latitudes and longitudes of the points of a box, in degrees, where the grid's axes do not give them.
struct PointPlaces {
  std::vector<double> latitude, longitude;
};

/// Whether the forcing is a function of the latitude or longitude of each point that place_plane() of a
/// reader does not give already standardised.
bool needs_degrees(Forcing forcing);

/// Whether it is a function of the time of the day or the year.
bool needs_dates(Forcing forcing);

/// Forcings on a geographic grid, or of places that are given.
class ForcingFields {
 public:
  /// @param calendar  that of the times.
  explicit ForcingFields(const Grid& grid, Calendar calendar = Calendar::kStandard);

  /// Rows and columns `box` [H, W] of a forcing at a time; `out` holds box.extent.count() values.
  /// @param places  of the points of the box, for forcings that need_degrees(); null where the grid is
  /// geographic.
  void fill(Forcing forcing, Time time, const Box& box, std::span<double> out,
            const PointPlaces* places = nullptr) const;

 private:
  void fill_from_degrees(Forcing forcing, Time time, const Box& box, std::span<double> out,
                         const PointPlaces* places) const;

  Calendar calendar_;
  std::vector<double> latitude_, longitude_;  ///< standardised
  std::vector<double> row_degrees_, column_degrees_;
};

}  // namespace jigsaw::inline grids
