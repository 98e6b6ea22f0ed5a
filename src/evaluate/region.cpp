#include "evaluate/region.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline evaluate {

namespace {

/// Degrees within which a point lies on an edge: files round their coordinates to float32.
constexpr double kRounding = 1e-4;

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

double degrees_east_of(double west, double longitude) {
  const double turn = std::fmod(longitude - west, 360.0);
  return turn < 0 ? turn + 360 : turn;
}

}  // namespace

bool Region::holds(double latitude, double longitude) const {
  if (latitude < south - kRounding || latitude > north + kRounding) return false;
  return east - west >= 360 ||
         degrees_east_of(west - kRounding, longitude) <= degrees_east_of(west, east) + 2 * kRounding;
}

std::vector<double> Region::point_weights(const Grid& grid, const Box& plane, const PointPlaces* places,
                                          const CellWeights& cells) const {
  require(grid.geographic || places != nullptr, "the points of a projection have places of their own");
  std::vector<double> weights = *cells.of(plane);
  std::size_t point = 0;
  for (std::int64_t row = plane.begin[0]; row < plane.end(0); ++row) {
    for (std::int64_t column = plane.begin[1]; column < plane.end(1); ++column, ++point) {
      const auto y = static_cast<std::size_t>(row), x = static_cast<std::size_t>(column);
      const bool inside = places != nullptr ? holds(places->latitude[point], places->longitude[point])
                                            : holds(grid.axes[0].coordinates[y], grid.axes[1].coordinates[x]);
      if (!inside) weights[point] = 0;
    }
  }
  return weights;
}

Region parse_region(const std::string& text) {
  const std::size_t sign = text.find('=');
  std::vector<double> limits;
  if (sign != std::string::npos) {
    for (const std::string& part : split(text.substr(sign + 1), ',')) {
      const std::optional<double> limit = number_of(part);
      if (!limit) break;
      limits.push_back(*limit);
    }
  }
  const bool whole =
      sign != std::string::npos && sign > 0 && limits.size() == 4 && std::ranges::count(text, ',') == 3;
  if (whole && limits[0] > limits[1]) {
    throw ConfigError(concat("command line: --region ", text,
                             " is NAME=SOUTH,NORTH,WEST,EAST, and its south ", limits[0],
                             " is not south of its north ", limits[1]));
  }
  if (whole && (limits[0] < -90 || limits[1] > 90)) {
    throw ConfigError(concat("command line: --region ", text, " is NAME=SOUTH,NORTH,WEST,EAST, and its ",
                             limits[0] < -90 ? concat("south ", limits[0]) : concat("north ", limits[1]),
                             " is no latitude"));
  }
  for (std::size_t i = 2; whole && i < 4; ++i) {
    constexpr double kMost = 540;
    if (std::abs(limits[i]) <= kMost) continue;
    throw ConfigError(concat("command line: --region ", text, " is NAME=SOUTH,NORTH,WEST,EAST, and its ",
                             i == 2 ? "west " : "east ", limits[i], " is no longitude"));
  }
  if (!whole) {
    throw ConfigError(concat("command line: --region ", text,
                             " must be NAME=SOUTH,NORTH,WEST,EAST in degrees, as europe=35,75,-12.5,42.5"));
  }
  return {text.substr(0, sign), limits[0], limits[1], limits[2], limits[3]};
}

std::vector<Region> usual_regions(const Grid& grid) {
  std::vector<Region> regions = {{"all"}};
  if (!grid.periodic) return regions;
  for (const Region& region : {Region{"northern_hemisphere", 20, 90}, Region{"tropics", -20, 20},
                               Region{"southern_hemisphere", -90, -20}}) {
    const auto inside = [&](double latitude) { return region.holds(latitude, 0); };
    if (std::ranges::any_of(grid.axes[0].coordinates, inside)) regions.push_back(region);
  }
  return regions;
}

}  // namespace jigsaw::inline evaluate
