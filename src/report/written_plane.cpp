#include "report/written_plane.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "grids/axis_map.h"
#include "report/svg.h"

namespace jigsaw::inline report {

namespace {

/// Whether rows of a projection begin in the south: by latitudes of the points, else by the projection's y.
bool runs_northwards(VariableFile& file, const FileVariable& variable, const std::vector<double>& rows) {
  const int rank = variable.shape.rank();
  const std::string &row = variable.dimensions[static_cast<std::size_t>(rank - 2)],
                    &column = variable.dimensions[static_cast<std::size_t>(rank - 1)];
  for (const FileVariable& other : file.variables()) {
    if (other.dimensions != std::vector<std::string>{row, column} ||
        other.text("standard_name") != "latitude")
      continue;
    const std::vector<double> latitudes = file.read_all(other);
    const std::size_t last_row = latitudes.size() - static_cast<std::size_t>(other.shape[1]);
    return latitudes[last_row] > latitudes[0];
  }
  const FileVariable* const y = file.find(row);
  return y != nullptr && y->text("standard_name") == "projection_y_coordinate" && rows.back() > rows.front();
}

}  // namespace

PlaneGrid plane_grid(VariableFile& file, const FileVariable& variable) {
  const auto rank = static_cast<std::size_t>(variable.shape.rank());
  const auto coordinates = [&](std::size_t dim) {
    const FileVariable* const found = file.find(variable.dimensions[dim]);
    if (found != nullptr && found->shape.rank() == 1) return file.read_all(*found);
    std::vector<double> numbers(static_cast<std::size_t>(variable.shape[static_cast<int>(dim)]));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    return numbers;
  };
  const std::string& name = variable.dimensions[rank - 2];
  const FileVariable* const rows = file.find(name);
  PlaneGrid grid{rows != nullptr && rows->shape.rank() == 1 &&
                     (name.starts_with("lat") || rows->text("standard_name") == "latitude" ||
                      rows->text("units").starts_with("degree")),
                 false, coordinates(rank - 2), coordinates(rank - 1)};
  if (grid.geographic) {
    grid.columns = without_jumps(std::move(grid.columns));  // forecasts have them as their input does
    grid.periodic = make_geographic_grid(grid.rows, grid.columns).periodic;
  } else {
    grid.upwards = runs_northwards(file, variable, grid.rows);
  }
  return grid;
}

std::pair<std::int64_t, std::string> place_along(VariableFile& file, const std::string& dimension,
                                                 std::int64_t count) {
  const FileVariable* const coordinate = file.find(dimension);
  std::int64_t at = count / 2;
  if (coordinate == nullptr || !coordinate->numeric() || coordinate->shape.count() != count)
    return {at, concat(dimension, " number ", at)};
  const std::vector<double> values = file.read_all(*coordinate);
  if (coordinate->text("standard_name") == "realization")
    return {0, concat("member ", short_number(values[0]))};
  if (dimension == "level")
    at = std::ranges::min_element(values, {}, [](double level) { return std::abs(level - 500); }) -
         values.begin();
  const std::string units = coordinate->text("units");
  return {at, concat(dimension, " ", short_number(values[static_cast<std::size_t>(at)]),
                     units.empty() || units == "1" ? "" : " ", units == "1" ? "" : units)};
}

std::vector<std::string> lead_titles(VariableFile& file) {
  const FileVariable& leads = *file.find("lead_time");
  const std::string units = leads.text("units");
  const char* const unit = units == "1"                  ? "mo"
                           : units.starts_with("min")    ? "min"
                           : units.starts_with("second") ? "s"
                                                         : "h";
  std::vector<std::string> titles;
  for (const double lead : file.read_all(leads)) titles.push_back(concat(short_number(lead), " ", unit));
  return titles;
}

}  // namespace jigsaw::inline report
