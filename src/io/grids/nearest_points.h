#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace jigsaw::inline grids {

/// A point of the unit sphere.
using UnitVector = std::array<double, 3>;

/// @param latitude, longitude  in degrees.
UnitVector unit_vector(double latitude, double longitude);
/// The distance through the sphere; NaN where one of them has no place.
double chord_between(const UnitVector& a, const UnitVector& b);

/// Finds those of many points that are nearest to a place, by a k-d tree (Bentley, 1975, CACM 18(9)).
class NearestPoints {
 public:
  struct Point {
    UnitVector at;
    std::int64_t number = 0;
  };
  struct Neighbour {
    double chord = 0;  ///< the distance through the sphere
    std::int64_t number = 0;
    const UnitVector* at = nullptr;  ///< as long as this lives
  };

  explicit NearestPoints(std::vector<Point> points);

  std::int64_t size() const { return std::ssize(points_); }
  /// The `count` nearest ones, or all where there are fewer, the nearest first; of two as far, but for
  /// rounding, the one with the lower number. Which others there are makes no difference.
  void find(const UnitVector& place, std::size_t count, std::vector<Neighbour>& found) const;

 private:
  struct Search;
  void order(std::size_t begin, std::size_t end, int axis);
  void search(std::size_t begin, std::size_t end, int axis, Search& search) const;

  std::vector<Point> points_;  ///< of each part the middle one divides the others along an axis
};

}  // namespace jigsaw::inline grids
