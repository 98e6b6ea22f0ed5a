#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace jigsaw::inline evaluate {

/// Points of which the nearest to another is asked for: a k-d tree (Bentley, 1975).
class NearestPoints {
 public:
  using Point = std::array<double, 3>;

  explicit NearestPoints(std::vector<Point> points);
  /// The distance to the nearest; infinite without points.
  double distance(const Point& to) const;

 private:
  void sort(std::size_t begin, std::size_t end, std::size_t axis);
  void search(std::size_t begin, std::size_t end, std::size_t axis, const Point& to, double& least) const;

  std::vector<Point> points_;  ///< the middle of each range parts it along an axis
};

/// The 95th percentile of the distances of the points of each surface to the other, the larger one of both
/// directions (HD95; monai.metrics.compute_hausdorff_distance with percentile 95). Percentiles lie between
/// sorted values as numpy.percentile has them. NaN where one surface has no points.
///
/// @param a, b     places as surface_points() gives them. @param spacing  of points along each dim.
double hausdorff95(std::span<const std::int32_t> a, std::span<const std::int32_t> b,
                   const std::vector<double>& spacing);

}  // namespace jigsaw::inline evaluate
