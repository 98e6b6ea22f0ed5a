#include "evaluate/surface_distance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/heartbeat.h"

namespace jigsaw::inline evaluate {

namespace {

std::vector<NearestPoints::Point> places(std::span<const std::int32_t> points,
                                         const std::vector<double>& spacing) {
  const std::size_t dims = spacing.size();
  std::vector<NearestPoints::Point> result(points.size() / dims, NearestPoints::Point{});
  for (std::size_t i = 0; i < points.size(); ++i) result[i / dims][i % dims] = points[i] * spacing[i % dims];
  return result;
}

/// Between sorted values as numpy.percentile, method linear.
double percentile95(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double place = 0.95 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double directed(const std::vector<NearestPoints::Point>& from, const NearestPoints& to) {
  std::vector<double> distances;
  distances.reserve(from.size());
  for (const NearestPoints::Point& point : from) {
    distances.push_back(to.distance(point));
    beat();
  }
  return percentile95(std::move(distances));
}

}  // namespace

NearestPoints::NearestPoints(std::vector<Point> points) : points_(std::move(points)) {
  sort(0, points_.size(), 0);
}

void NearestPoints::sort(std::size_t begin, std::size_t end, std::size_t axis) {
  if (end - begin < 2) return;
  const std::size_t middle = begin + (end - begin) / 2;
  const auto at = [&](std::size_t i) { return points_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::nth_element(at(begin), at(middle), at(end),
                   [axis](const Point& a, const Point& b) { return a[axis] < b[axis]; });
  sort(begin, middle, (axis + 1) % 3);
  sort(middle + 1, end, (axis + 1) % 3);
}

void NearestPoints::search(std::size_t begin, std::size_t end, std::size_t axis, const Point& to,
                           double& least) const {
  if (begin == end) return;
  const std::size_t middle = begin + (end - begin) / 2;
  const Point& here = points_[middle];
  double square = 0;
  for (std::size_t d = 0; d < 3; ++d) square += (here[d] - to[d]) * (here[d] - to[d]);
  least = std::min(least, square);
  const double beyond = to[axis] - here[axis];
  const std::size_t next = (axis + 1) % 3;
  if (beyond < 0) {
    search(begin, middle, next, to, least);
    if (beyond * beyond < least) search(middle + 1, end, next, to, least);
  } else {
    search(middle + 1, end, next, to, least);
    if (beyond * beyond < least) search(begin, middle, next, to, least);
  }
}

double NearestPoints::distance(const Point& to) const {
  double least = std::numeric_limits<double>::infinity();
  search(0, points_.size(), 0, to, least);
  return std::sqrt(least);
}

double hausdorff95(std::span<const std::int32_t> a, std::span<const std::int32_t> b,
                   const std::vector<double>& spacing) {
  if (a.empty() || b.empty()) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<NearestPoints::Point> from = places(a, spacing), to = places(b, spacing);
  return std::max(directed(from, NearestPoints(to)), directed(to, NearestPoints(from)));
}

}  // namespace jigsaw::inline evaluate
