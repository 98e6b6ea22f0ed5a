#pragma once
#include <string>
#include <vector>

#include "array/grid.h"

namespace jigsaw::inline predict {

/// A box of a geographic grid: latitudes from south to north, longitudes eastward from west to east, limits
/// included. Longitudes are taken modulo 360.
struct Region {
  std::string name;
  double south = -90, north = 90, west = 0, east = 360;

  /// Weight of each row, 0 outside. @param weights  of the whole grid's rows.
  std::vector<double> row_weights(const Grid& grid, const std::vector<double>& weights) const;
  /// 1 for each column inside, else 0.
  std::vector<double> columns(const Grid& grid) const;
};

/// "europe=35,75,-12.5,42.5": name, south, north, west, east. @throws ConfigError
Region parse_region(const std::string& text);

/// The grid as a whole, and on one that goes around the globe those that WeatherBench 2 scores:
/// the tropics (20°S to 20°N) and what lies north and south of them.
std::vector<Region> usual_regions(const Grid& grid);

/// @throws ConfigError  when no point of the grid lies in the region.
void require_points(const Region& region, const Grid& grid);

}  // namespace jigsaw::inline predict
