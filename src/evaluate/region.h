#pragma once
#include <string>
#include <vector>

#include "array/box.h"
#include "array/grid.h"
#include "grids/forcings.h"
#include "samples/cell_weights.h"

namespace jigsaw::inline evaluate {

/// Latitudes from south to north, longitudes eastward from west to east, limits included. Longitudes are
/// taken modulo 360.
struct Region {
  std::string name;
  double south = -90, north = 90, west = 0, east = 360;

  /// Whether a point lies in it.
  bool holds(double latitude, double longitude) const;
  /// Weights of the points `plane` [H, W] of a grid: those of its cells, 0 outside.
  /// @param places  of these points; null where the grid is geographic.
  std::vector<double> point_weights(const Grid& grid, const Box& plane, const PointPlaces* places,
                                    const CellWeights& cells) const;
};

/// "europe=35,75,-12.5,42.5": name, south, north, west, east. @throws ConfigError
Region parse_region(const std::string& text);

/// The grid as a whole, and on one that goes around the globe those that WeatherBench 2 scores:
/// the tropics (20°S to 20°N) and what lies north and south of them.
std::vector<Region> usual_regions(const Grid& grid);

}  // namespace jigsaw::inline evaluate
