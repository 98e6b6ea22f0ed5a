#include "predict/region.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline predict {

namespace {

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

std::vector<double> Region::row_weights(const Grid& grid, const std::vector<double>& weights) const {
  std::vector<double> result = weights;
  for (std::size_t row = 0; row < result.size(); ++row) {
    const double latitude = grid.axes[0].coordinates[row];
    if (latitude < south || latitude > north) result[row] = 0;
  }
  return result;
}

std::vector<double> Region::columns(const Grid& grid) const {
  std::vector<double> result;
  for (const double longitude : grid.axes[1].coordinates) {
    const bool inside = east - west >= 360 || degrees_east_of(west, longitude) <= degrees_east_of(west, east);
    result.push_back(inside ? 1.0 : 0.0);
  }
  return result;
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
  if (!whole || limits[0] >= limits[1]) {
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
    const std::vector<double> rows = region.row_weights(grid, grid.row_weights());
    if (std::ranges::any_of(rows, [](double weight) { return weight > 0; })) regions.push_back(region);
  }
  return regions;
}

void require_points(const Region& region, const Grid& grid) {
  const auto some = [](const std::vector<double>& weights) {
    return std::ranges::any_of(weights, [](double weight) { return weight > 0; });
  };
  if (some(region.row_weights(grid, grid.row_weights())) && some(region.columns(grid))) return;
  throw ConfigError(concat("command line: the region ", region.name, " holds no point of the grid"));
}

}  // namespace jigsaw::inline predict
