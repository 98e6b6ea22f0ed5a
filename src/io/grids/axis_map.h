#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "grids/regrid.h"

namespace jigsaw::inline grids {

/// Points begin, begin + 1, … that are read are points first, first + step, … of a file's axis.
struct AxisRun {
  std::int64_t begin = 0, count = 0, first = 0, step = 1;

  bool operator==(const AxisRun&) const = default;
};

/// Where the points of an axis of the grid stand along the same axis of a file, which may run the other way,
/// begin elsewhere on the circle, or hold more points.
class AxisMap {
 public:
  /// Nothing when the file lacks one of the wanted points. Coordinates within 1e-4 are equal, as single and
  /// double precision of one number are.
  /// @param circular  coordinates that differ by a multiple of 360 are equal, too.
  static std::optional<AxisMap> make(const std::vector<double>& wanted, const std::vector<double>& there,
                                     bool circular);

  /// Of points between those of the file, which are means of what is read there.
  static std::optional<AxisMap> make(AxisWeights weights, const std::vector<double>& there, bool circular);

  /// Whether points of the grid that follow one another do so in the file.
  bool consecutive() const;
  /// How points of the grid are made of those that are read; null where these are the grid's own.
  const AxisWeights* weights() const { return weights_.get(); }
  /// What is read for points [begin, begin + count) of the grid: these, or those that weights() takes.
  AxisInterval needed(std::int64_t begin, std::int64_t count) const;
  /// The runs that make up points [begin, begin + count) of those that are read, in order.
  std::vector<AxisRun> runs(std::int64_t begin, std::int64_t count) const;
  std::vector<AxisRun> runs(AxisInterval points) const { return runs(points.begin, points.count); }

 private:
  std::vector<AxisRun> runs_;
  std::shared_ptr<const AxisWeights> weights_;
};

/// Longitudes of a file without jumps, so that they are monotonic where they go round the circle once:
/// 170, 180, −170 become 170, 180, 190. A last column that repeats the first one is left out.
std::vector<double> without_jumps(std::vector<double> longitudes);

/// The part of the ascending or descending latitudes in [south, north].
std::vector<double> latitudes_within(const std::vector<double>& latitudes, double south, double north);
/// The longitudes from west eastward to east, in the order of the file but without jumps, counted from west.
std::vector<double> longitudes_within(const std::vector<double>& longitudes, double west, double east);

/// How the rows and columns of a grid follow one another: the first and the last coordinates, or, on a
/// projection, Grid::corners.
struct GridOrder {
  std::array<double, 2> rows{}, columns{};
  std::vector<double> corners = {};
};
/// Whether the coordinates are equal, as single and double precision of one number are.
bool alike(const GridOrder& a, const GridOrder& b);
/// The same of Grid::corners; those that are missing (NaN) are equal.
bool alike_corners(const std::vector<double>& a, const std::vector<double>& b);
/// Latitudes in the direction of others, of which the first and the last are given.
std::vector<double> latitudes_like(std::vector<double> latitudes, const std::array<double, 2>& others);
/// Longitudes without jumps in the direction of others; of a whole circle from the first of these on, where
/// they have it.
std::vector<double> longitudes_like(std::vector<double> longitudes, const std::array<double, 2>& others);

/// Every so manieth, from the first on.
std::vector<double> every_of(const std::vector<double>& coordinates, std::int64_t every);

}  // namespace jigsaw::inline grids
