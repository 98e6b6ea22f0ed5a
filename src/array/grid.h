#pragma once
#include <string>
#include <vector>

#include "array/shape.h"

namespace jigsaw::inline array {

/// Where the rows of a latitude axis lie with respect to the poles.
enum class PoleKind { kNone, kPoint, kCellCentred };

/// One spatial axis of a field: its coordinates as the file has them, and its cells.
struct GridAxis {
  std::string name;                 ///< "latitude", "longitude", "depth", …
  std::string units;                ///< "degrees_north", …; may be empty
  std::vector<double> coordinates;  ///< cell centres, strictly monotonic
  /// Cell limits, one more than coordinates: midpoints, ended by half a step, or at the pole.
  std::vector<double> bounds;
};

/// The horizontal grid of fields, or the voxels of a volume: what io reads from files and what
/// forcings, loss weights, exchanges and prediction writers share.
struct Grid {
  std::vector<GridAxis> axes;
  bool geographic = false;  ///< axes are latitude and longitude in degrees
  PoleKind north = PoleKind::kNone, south = PoleKind::kNone;
  bool periodic = false;  ///< longitude closes the circle
  /// Of rows and columns on a projection latitude and longitude of its four corners, row by row; else none.
  std::vector<double> corners = {};

  /// Extents of the axes.
  Shape shape() const;
  /// Weight of each row of axis 0 with mean 1: sin(upper) − sin(lower) of its cell on a geographic
  /// grid (WeatherBench 2), else 1.
  std::vector<double> row_weights() const;
};

/// A geographic grid from the centres of its rows and columns in degrees. Poles and periodicity
/// follow from the coordinates. Throws DataError when they are not strictly monotonic, or when
/// latitudes leave [-90, 90].
Grid make_geographic_grid(std::vector<double> latitudes, std::vector<double> longitudes);
/// A grid without geography: coordinates 0, 1, 2, … on each axis.
Grid make_plain_grid(const Shape& extents);

}  // namespace jigsaw::inline array
