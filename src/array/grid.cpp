#include "array/grid.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline array {

Shape Grid::shape() const {
  Shape shape;
  for (const GridAxis& axis : axes) shape.append(static_cast<std::int64_t>(axis.coordinates.size()));
  return shape;
}

std::vector<double> Grid::row_weights() const {
  const std::size_t rows = axes[0].coordinates.size();
  std::vector<double> weights(rows, 1.0);
  if (!geographic) return weights;
  double sum = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double to_radians = std::numbers::pi / 180.0;
    weights[row] =
        std::abs(std::sin(axes[0].bounds[row + 1] * to_radians) - std::sin(axes[0].bounds[row] * to_radians));
    sum += weights[row];
  }
  for (double& weight : weights) weight *= static_cast<double>(rows) / sum;
  return weights;
}

namespace {

void require_monotonic(const std::vector<double>& values, const char* axis) {
  if (values.empty()) throw DataError(concat("the ", axis, " axis has no points"));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      throw DataError(concat("the ", axis, " coordinate ", i, " is not a number"));
  }
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] == values[i - 1]) throw DataError(concat("the ", axis, " coordinates repeat ", values[i]));
    if ((values[i] > values[i - 1]) != (values[1] > values[0])) {
      throw DataError(concat("the ", axis, " coordinates are not monotonic: ", values[i - 1],
                             " is followed by ", values[i]));
    }
  }
}

std::vector<double> midpoint_bounds(const std::vector<double>& centres) {
  const std::size_t n = centres.size();
  std::vector<double> bounds(n + 1);
  for (std::size_t i = 1; i < n; ++i) bounds[i] = 0.5 * (centres[i - 1] + centres[i]);
  bounds[0] = n > 1 ? centres[0] - 0.5 * (centres[1] - centres[0]) : centres[0] - 0.5;
  bounds[n] = n > 1 ? centres[n - 1] + 0.5 * (centres[n - 1] - centres[n - 2]) : centres[0] + 0.5;
  return bounds;
}

/// Whether the outermost row is the pole itself, a cell that ends there (cell-centred and Gaussian
/// grids: less than a step away), or neither.
PoleKind pole_kind(double centre, double step) {
  const double distance = 90.0 - std::abs(centre);
  if (distance < 1e-6) return PoleKind::kPoint;
  return distance < 0.9 * std::abs(step) ? PoleKind::kCellCentred : PoleKind::kNone;
}

/// Ends the outermost cell at the pole where it reaches that far.
void end_at_pole(PoleKind kind, double centre, double& bound) {
  if (kind != PoleKind::kNone) bound = std::copysign(90.0, centre);
  bound = std::clamp(bound, -90.0, 90.0);
}

}  // namespace

Grid make_geographic_grid(std::vector<double> latitudes, std::vector<double> longitudes) {
  require_monotonic(latitudes, "latitude");
  require_monotonic(longitudes, "longitude");
  for (const double latitude : latitudes) {
    if (std::abs(latitude) > 90.0 + 1e-6)
      throw DataError(concat("the latitude ", latitude, " is beyond the pole"));
  }
  Grid grid;
  grid.geographic = true;
  std::vector<double> rows = midpoint_bounds(latitudes);
  const bool north_first = latitudes.size() < 2 || latitudes[0] > latitudes[1];
  const std::size_t n = latitudes.size();
  const double step = n > 1 ? latitudes[1] - latitudes[0] : 0.0;
  const PoleKind first = pole_kind(latitudes.front(), step);
  const PoleKind last = pole_kind(latitudes.back(), step);
  grid.north = north_first ? first : last;
  grid.south = north_first ? last : first;
  end_at_pole(first, latitudes.front(), rows.front());
  end_at_pole(last, latitudes.back(), rows.back());

  const std::vector<double> columns = midpoint_bounds(longitudes);
  const double spacing = longitudes.size() > 1 ? std::abs(longitudes[1] - longitudes[0]) : 360.0;
  grid.periodic = std::abs(std::abs(columns.back() - columns.front()) - 360.0) < 0.1 * spacing;
  grid.axes = {{"latitude", "degrees_north", std::move(latitudes), std::move(rows)},
               {"longitude", "degrees_east", std::move(longitudes), columns}};
  return grid;
}

Grid make_plain_grid(const Shape& extents) {
  Grid grid;
  for (int dim = 0; dim < extents.rank(); ++dim) {
    std::vector<double> centres(static_cast<std::size_t>(extents[dim]));
    for (std::size_t i = 0; i < centres.size(); ++i) centres[i] = static_cast<double>(i);
    std::vector<double> bounds = midpoint_bounds(centres);
    grid.axes.push_back({concat("axis_", dim), "", std::move(centres), std::move(bounds)});
  }
  return grid;
}

}  // namespace jigsaw::inline array
