#include "grids/cell_areas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "grids/nearest_points.h"

namespace jigsaw::inline grids {

namespace {

/// f·a + g·b.
UnitVector combined(double f, const UnitVector& a, double g, const UnitVector& b) {
  return {f * a[0] + g * b[0], f * a[1] + g * b[1], f * a[2] + g * b[2]};
}

double product_of(const UnitVector& a, const UnitVector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

UnitVector on_sphere(const UnitVector& a) {
  return combined(1 / std::sqrt(product_of(a, a)), a, 0, a);
}

/// The solid angle of a spherical triangle, with its sign (Van Oosterom and Strackee, 1983, IEEE Trans.
/// Biomed. Eng. 30(2)); of differences, so that small ones lose no digits.
double triangle_area(const UnitVector& a, const UnitVector& b, const UnitVector& c) {
  const UnitVector u = combined(1, b, -1, a), v = combined(1, c, -1, a);
  const UnitVector across = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
  return 2 * std::atan2(product_of(a, across), 1 + product_of(a, b) + product_of(b, c) + product_of(c, a));
}

/// The places around one point: a row and a column before it, its own, and behind it.
class Neighbourhood {
 public:
  using Place = std::optional<UnitVector>;

  /// @param at  the place of a neighbour, −1 to 1 rows and columns away; nothing where it has none.
  template <typename F>
  explicit Neighbourhood(const F& at) {
    for (const int down : {-1, 0, 1})
      for (const int along : {-1, 0, 1}) known_[index(down, along)] = at(down, along);
  }

  double area() const {
    const bool is_cell = known(0, 0) && (known(-1, 0) || known(1, 0)) && (known(0, -1) || known(0, 1));
    if (!is_cell) return 0;
    const UnitVector a = corner(-1, -1), b = corner(-1, 1), c = corner(1, 1), d = corner(1, -1);
    return std::abs(triangle_area(a, b, c) + triangle_area(a, c, d));
  }

 private:
  static std::size_t index(int down, int along) {
    return static_cast<std::size_t>(3 * (down + 1) + along + 1);
  }
  const Place& known(int down, int along) const { return known_[index(down, along)]; }
  const UnitVector& here() const { return *known(0, 0); }

  /// Whether the row is one place, a pole.
  bool is_pole() const {
    constexpr double kSame = 1e-9;
    const Place& other = known(0, -1) ? known(0, -1) : known(0, 1);
    const UnitVector apart = combined(1, *other, -1, here());
    return product_of(apart, apart) < kSame * kSame;
  }
  UnitVector above_or_below(int down) const {
    if (known(down, 0)) return *known(down, 0);
    return is_pole() ? here() : combined(2, here(), -1, *known(-down, 0));
  }
  UnitVector beside(int along) const {
    if (known(0, along)) return *known(0, along);
    return combined(2, here(), -1, *known(0, -along));
  }
  UnitVector diagonal(int down, int along) const {
    if (known(down, along)) return *known(down, along);
    if (!known(down, 0) && is_pole()) return beside(along);
    if (known(0, along) && known(-down, along))
      return combined(2, *known(0, along), -1, *known(-down, along));
    if (known(down, 0) && known(down, -along)) return combined(2, *known(down, 0), -1, *known(down, -along));
    if (!known(0, along) && known(-down, 0) && known(-down, -along) && !known(down, 0)) {
      const UnitVector behind = combined(2, *known(-down, 0), -1, *known(-down, -along));
      return combined(2, beside(along), -1, behind);
    }
    return combined(1, combined(1, above_or_below(down), 1, beside(along)), -1, here());
  }
  UnitVector corner(int down, int along) const {
    return on_sphere(combined(1, combined(1, here(), 1, above_or_below(down)), 1,
                              combined(1, beside(along), 1, diagonal(down, along))));
  }

  std::array<Place, 9> known_;
};

}  // namespace

Box with_neighbours(const Box& plane, const Shape& grid) {
  Box all = plane;
  for (int d = 0; d < 2; ++d) {
    all.begin[d] = std::max<std::int64_t>(plane.begin[d] - 1, 0);
    all.extent[d] = std::min(plane.end(d) + 1, grid[d]) - all.begin[d];
  }
  return all;
}

std::vector<double> cell_areas(const PointPlaces& places, const Box& plane, const Shape& grid) {
  const Box all = with_neighbours(plane, grid);
  require(
      std::ssize(places.latitude) == all.extent.count() && std::ssize(places.longitude) == all.extent.count(),
      "areas need the places of all neighbours");
  std::vector<Neighbourhood::Place> points;
  points.reserve(places.latitude.size());
  for (std::size_t i = 0; i < places.latitude.size(); ++i) {
    const bool has_place = std::isfinite(places.latitude[i]) && std::isfinite(places.longitude[i]);
    points.push_back(has_place ? Neighbourhood::Place(unit_vector(places.latitude[i], places.longitude[i]))
                               : std::nullopt);
  }
  std::vector<double> areas;
  areas.reserve(static_cast<std::size_t>(plane.extent.count()));
  for (std::int64_t row = plane.begin[0]; row < plane.end(0); ++row) {
    for (std::int64_t column = plane.begin[1]; column < plane.end(1); ++column) {
      const Neighbourhood around([&](int down, int along) -> Neighbourhood::Place {
        const std::int64_t y = row + down, x = column + along;
        if (y < all.begin[0] || y >= all.end(0) || x < all.begin[1] || x >= all.end(1)) return std::nullopt;
        return points[static_cast<std::size_t>((y - all.begin[0]) * all.extent[1] + x - all.begin[1])];
      });
      areas.push_back(around.area());
    }
  }
  return areas;
}

}  // namespace jigsaw::inline grids
