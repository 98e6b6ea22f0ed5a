#include "grids/nearest_points.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace jigsaw::inline grids {

namespace {

constexpr std::size_t kLeaf = 8;

int next(int axis) {
  return axis == 2 ? 0 : axis + 1;
}

/// Squares of distances in units below which rounding decides.
std::int64_t in_units(double square) {
  return std::llround(std::ldexp(square, 44));
}

double square_between(const UnitVector& a, const UnitVector& b) {
  double sum = 0;
  for (std::size_t d = 0; d < 3; ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

}  // namespace

UnitVector unit_vector(double latitude, double longitude) {
  constexpr double kRadians = std::numbers::pi / 180;
  const double along = std::cos(latitude * kRadians);
  return {along * std::cos(longitude * kRadians), along * std::sin(longitude * kRadians),
          std::sin(latitude * kRadians)};
}

double chord_between(const UnitVector& a, const UnitVector& b) {
  return std::sqrt(square_between(a, b));
}

NearestPoints::NearestPoints(std::vector<Point> points) : points_(std::move(points)) {
  order(0, points_.size(), 0);
}

void NearestPoints::order(std::size_t begin, std::size_t end, int axis) {
  if (end - begin <= kLeaf) return;
  const std::size_t middle = begin + (end - begin) / 2;
  const auto first = points_.begin();
  const auto at = [&](std::size_t i) { return first + static_cast<std::ptrdiff_t>(i); };
  const auto d = static_cast<std::size_t>(axis);
  std::nth_element(at(begin), at(middle), at(end),
                   [d](const Point& a, const Point& b) { return a.at[d] < b.at[d]; });
  order(begin, middle, next(axis));
  order(middle + 1, end, next(axis));
}

struct NearestPoints::Search {
  const UnitVector& place;
  std::size_t count;
  struct Found {
    std::int64_t units, number;
    const UnitVector* at;
    auto operator<=>(const Found&) const = default;
  };
  std::vector<Found> found;  ///< a heap with the furthest first

  void look_at(const Point& point) {
    const Found here{in_units(square_between(point.at, place)), point.number, &point.at};
    if (found.size() == count) {
      if (!(here < found.front())) return;
      std::ranges::pop_heap(found);
      found.pop_back();
    }
    found.push_back(here);
    std::ranges::push_heap(found);
  }
  bool may_be_within(double square) const {
    return found.size() < count || in_units(square) <= found.front().units;
  }
};

void NearestPoints::search(std::size_t begin, std::size_t end, int axis, Search& search) const {
  if (end - begin <= kLeaf) {
    for (std::size_t i = begin; i < end; ++i) search.look_at(points_[i]);
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  const auto d = static_cast<std::size_t>(axis);
  const double beyond = search.place[d] - points_[middle].at[d];
  const bool below = beyond < 0;
  this->search(below ? begin : middle + 1, below ? middle : end, next(axis), search);
  if (!search.may_be_within(beyond * beyond)) return;
  search.look_at(points_[middle]);
  this->search(below ? middle + 1 : begin, below ? end : middle, next(axis), search);
}

void NearestPoints::find(const UnitVector& place, std::size_t count, std::vector<Neighbour>& found) const {
  Search search{place, count, {}};
  search.found.reserve(count);
  this->search(0, points_.size(), 0, search);
  std::ranges::sort_heap(search.found);
  found.clear();
  for (const Search::Found& one : search.found)
    found.push_back({chord_between(*one.at, place), one.number, one.at});
}

}  // namespace jigsaw::inline grids
