#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/variable_file.h"
#include "grids/axis_map.h"
#include "report/figures.h"
#include "report/svg.h"
#include "times/time_axis.h"

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

/// Of the last two dims of a variable: latitudes and longitudes, or rows and columns of a projection.
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

/// What a time series has in place of starts and leads.
constexpr const char* kStartOfSeries = "forecast_reference_time";

/// "2021-02-01T00:00"; nothing where they are no times.
std::vector<std::string> dates_of(VariableFile& file, const std::string& name) {
  const FileVariable* const time = file.find(name);
  std::vector<std::string> dates;
  try {
    if (time == nullptr || !time->numeric()) return {};
    const std::string calendar = time->text("calendar");
    for (const Time date : decode_times(file.read_all(*time), time->text("units"), calendar, name))
      dates.push_back(format_time(date, parse_calendar(calendar, name)));
  } catch (const Error&) {
    return {};
  }
  return dates;
}

/// Where a forecast is shown along a dimension between leads and rows: the number, and how it is called.
/// Of levels the one that is nearest to 500, of members the first, of others the middle.
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

/// The leads of a file, or the times of a series.
struct Leads {
  int axis;  ///< along which variables have them
  std::string dimension;
  std::vector<std::string> titles;
  std::string start;  ///< "from 2021-02-01T00:00" of the first forecast, or "the first"
};

Leads leads_of(VariableFile& file) {
  const bool series = file.find(kStartOfSeries) != nullptr;
  const std::vector<std::string> starts = dates_of(file, series ? kStartOfSeries : "time");
  const std::string start = starts.empty() ? "the first" : "from " + starts.front();
  if (series) return {0, "time", dates_of(file, "time"), start};
  const FileVariable& leads = *file.find("lead_time");
  Leads of_file{1, "lead_time", {}, start};
  const std::string units = leads.text("units");
  const char* const unit = units == "1"                  ? "mo"
                           : units.starts_with("min")    ? "min"
                           : units.starts_with("second") ? "s"
                                                         : "h";
  for (const double lead : file.read_all(leads))
    of_file.titles.push_back(concat(short_number(lead), " ", unit));
  return of_file;
}

/// Maps of the first forecast of a variable at its first, middle and last lead.
Figure forecast_figure(VariableFile& file, const FileVariable& variable, const Leads& leads,
                       const std::string& more) {
  const int rank = variable.shape.rank();
  const PlaneGrid grid = plane_grid(file, variable);
  Box box = Box::whole(variable.shape);
  std::string places;
  std::set<std::string> others;  // of which the file has more
  for (int d = 0; d < rank - 2; ++d) {
    box.begin[d] = 0;
    box.extent[d] = 1;
    if (d <= leads.axis) continue;
    const auto [at, name] =
        place_along(file, variable.dimensions[static_cast<std::size_t>(d)], variable.shape[d]);
    box.begin[d] = at;
    places += ", " + name;
    if (variable.shape[d] > 1) others.insert(name.starts_with("member ") ? "members" : "levels");
  }
  std::vector<std::string> pictures;
  std::optional<Colouring> colours;
  const std::int64_t count = variable.shape[leads.axis];
  for (const std::int64_t lead : std::set<std::int64_t>{0, count / 2, count - 1}) {
    box.begin[leads.axis] = lead;
    std::vector<float> values(static_cast<std::size_t>(box.extent.count()));
    file.read<float>(variable, box, values);
    if (!colours) colours = colouring_of(values, ColourMap::kSequential);
    const std::string what = concat(places, ", ", leads.titles.at(static_cast<std::size_t>(lead)));
    pictures.push_back(svg_of_map(grid, values, *colours, variable.name, what, variable.text("units"), 300));
  }
  const std::string range = remark_on_range(colours.value_or(Colouring()), pictures.size() > 1);
  return {"fig-forecast-" + variable.name, row_of(pictures),
          concat(variable.name, places, ": the forecast ", leads.start, " at the leads above.",
                 others.empty() ? ""
                                : concat(" The file has further ",
                                         join(std::vector(others.begin(), others.end()), " and "), "."),
                 range, more)};
}

}  // namespace

Figures forecast_figures(const std::string& path) {
  if (path.ends_with(".nii") || path.ends_with(".nii.gz"))
    throw DataError(concat(path,
                           " holds images; --forecast takes forecasts as predict writes them, and of "
                           "images a run with \"report\": true keeps slices"));
  const auto file = open_variables(path, Dimensions::kByName);
  if (file->find("lead_time") == nullptr && file->find(kStartOfSeries) == nullptr)
    throw DataError(concat(path, " holds no forecasts as predict writes them: it has no lead_time"));
  const Leads leads = leads_of(*file);
  std::vector<std::string> names;
  for (const FileVariable& variable : file->variables()) {
    const auto axis = static_cast<std::size_t>(leads.axis);
    if (variable.shape.rank() >= leads.axis + 3 && variable.numeric() &&
        variable.dimensions[axis] == leads.dimension &&
        variable.shape[leads.axis] <= std::ssize(leads.titles))
      names.push_back(variable.name);
  }
  const ShownVariables shown = shown_of(names, 4);
  Figures figures;
  for (const std::string& name : shown.names)
    figures.push_back(forecast_figure(*file, *file->find(name), leads,
                                      name == shown.names.back() ? shown.remark(path) : ""));
  return figures;
}

}  // namespace jigsaw::inline report
