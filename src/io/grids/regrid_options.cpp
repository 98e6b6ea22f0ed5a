#include "grids/regrid_options.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/text.h"
#include "config/config.h"
#include "grids/degrees.h"

namespace jigsaw::inline grids {

namespace {

bool are_steps(const std::vector<double>& axis) {
  if (axis.empty()) return true;
  if (axis.size() != 3 || !(axis[2] > 0)) return false;
  constexpr double kMost = 1e6;
  const double steps = std::abs(axis[1] - axis[0]) / axis[2];
  return steps > 0.5 && steps < kMost && std::abs(steps - std::round(steps)) < 1e-6 * std::max(1.0, steps);
}

void check_grid(const RegridOptions& options, const Place& at) {
  const bool given = !options.latitude.empty() || !options.longitude.empty();
  if (options.latitude.empty() != options.longitude.empty())
    at.error(options.latitude.empty() ? "latitude" : "longitude", "must be given, as the other axis is");
  if (given && options.method == Regrid::kNone)
    at.error("method", "must be another than \"none\" where a grid is given");
  if (!options.variables.empty() && options.method == Regrid::kNone)
    at.error("method", "must be another than \"none\" where data.regrid.variables has methods");
  if (!given) return;
  for (const double latitude : {options.latitude[0], options.latitude[1]}) {
    if (std::abs(latitude) > 90)
      at.error("latitude", concat("must not lie beyond a pole, as ", latitude, " does"));
  }
  const std::vector<double>& longitude = options.longitude;
  if (std::abs(longitude[1] - longitude[0]) > kCircle - longitude[2] + 1e-6) {
    at.error("longitude",
             concat("must not go round the circle more than once: of the whole globe the last is ",
                    longitude[0] + std::copysign(kCircle - longitude[2], longitude[1] - longitude[0])));
  }
}

std::vector<ChoiceForm<Regrid>::Entry> methods(const std::string& none) {
  return {
      {"none", Regrid::kNone, none},
      {"nearest", Regrid::kNearest, "The value of the nearest row and column, as of kinds of soil."},
      {"linear", Regrid::kLinear, "Linear between rows and between columns."},
      {"inverse_distance", Regrid::kInverseDistance,
       "The mean of the four nearest points by inverse distance, of points on projections and others that "
       "are in no rows."},
      {"conservative", Regrid::kConservative,
       "The mean over each cell of the grid, by area: to a coarser grid, where nothing is to be lost."}};
}

}  // namespace

Regrid RegridOptions::of(const std::string& variable) const {
  const auto found = variables.find(variable);
  return found == variables.end() ? method : found->second;
}

void declare(Keys<RegridOptions>& keys) {
  keys.choice("method", &RegridOptions::method,
              methods("Not at all: a file on another grid than the first one's is an error."))
      .doc("How fields are brought to the grid whose files have another one.");
  keys.add("variables", &RegridOptions::variables,
           std::make_unique<MapForm<Regrid>>(choice<Regrid>(methods("Not at all."))))
      .doc("The method for single variables, by name, where it is another one.");
  keys.add("latitude", &RegridOptions::latitude)
      .range(-90, 180)
      .doc(
          "The grid's first and last latitude and the step between, as [90, -90, 1.5]; []: the grid is that "
          "of the first target in the files.")
      .must("be [] or [first, last, step], with a step above 0 that divides the way", are_steps);
  keys.add("longitude", &RegridOptions::longitude)
      .range(-360, 720)
      .doc("The same of its longitudes, as [0, 358.5, 1.5].")
      .must("be [] or [first, last, step], with a step above 0 that divides the way", are_steps);
  keys.check(check_grid);
}

std::string to_text(const RegridOptions& options) {
  const auto steps = [](const std::vector<double>& axis) {
    std::vector<std::string> texts;
    for (const double number : axis) {
      char text[32];
      std::snprintf(text, sizeof text, "%.8g", number);
      texts.emplace_back(text);
    }
    return concat("[", join(texts, ", "), "]");
  };
  const std::vector<ChoiceForm<Regrid>::Entry> all = methods("");
  const auto method = std::ranges::find(all, options.method, &ChoiceForm<Regrid>::Entry::value);
  return concat("{\"method\": \"", method->name, "\", \"latitude\": ", steps(options.latitude),
                ", \"longitude\": ", steps(options.longitude), "}");
}

std::vector<double> equal_steps(const std::vector<double>& axis) {
  const auto steps = static_cast<std::int64_t>(std::round(std::abs(axis[1] - axis[0]) / axis[2]));
  std::vector<double> coordinates;
  for (std::int64_t i = 0; i <= steps; ++i)
    coordinates.push_back(axis[0] +
                          (axis[1] - axis[0]) * static_cast<double>(i) / static_cast<double>(steps));
  return coordinates;
}

}  // namespace jigsaw::inline grids
