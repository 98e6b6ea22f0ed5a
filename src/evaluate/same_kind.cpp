#include "evaluate/same_kind.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "files/value_kinds.h"

namespace jigsaw::inline evaluate {

namespace {

/// "mean", "sum", …: along whichever dimension of times.
std::string method_in_time(const std::string& cell_methods) {
  std::string method;
  for (const char* dimension : {"time", "lead_time", "valid_time", "step", "prediction_timedelta"})
    if (method.empty()) method = method_along(cell_methods, dimension);
  return method;
}

/// A coordinate of times, or of leads, along dimensions of a variable, whose cells have limits.
bool bounds_times(const FileVariable& coordinate, const FileVariable& variable) {
  const std::string units = coordinate.text("units"), standard_name = coordinate.text("standard_name");
  const bool of_times = units.find(" since ") != std::string::npos || standard_name == "forecast_period";
  return coordinate.numeric() && of_times && !coordinate.text("bounds").empty() &&
         !coordinate.dimensions.empty() &&
         std::ranges::all_of(coordinate.dimensions, [&](const std::string& dimension) {
           return std::ranges::find(variable.dimensions, dimension) != variable.dimensions.end();
         });
}

}  // namespace

void require_same_kind(const std::string& what, DataFile& file, const FileVariable& variable, FileSet& data,
                       const Field& field) {
  const auto& texts = data.describe(field).texts;
  const auto said = texts.find("cell_methods");
  const std::string wanted = said == texts.end() ? "" : method_in_time(said->second),
                    there = method_in_time(variable.text("cell_methods"));
  if (!wanted.empty() && !there.empty() && wanted != there) {
    throw DataError(concat(what, " is of the method \"", there,
                           "\" in time (cell_methods), and the data of \"", wanted, "\""));
  }
  const std::optional<double> height = file.height_of(variable), height_of_data = data.height_of(field);
  constexpr double kSameHeight = 1;  // as of thermometers in screens
  if (height && height_of_data && std::abs(*height - *height_of_data) > kSameHeight)
    throw DataError(concat(what, " is at ", *height, " m, and the data at ", *height_of_data, " m"));
}

double hours_of(DataFile& file, const FileVariable& variable) {
  if (const double hours = time_range(variable); hours > 0) return hours;
  if (method_in_time(variable.text("cell_methods")) == "point") return 0;
  for (const FileVariable& coordinate : file.file().variables()) {
    if (!bounds_times(coordinate, variable)) continue;
    const FileVariable* const limits = file.file().find_from(coordinate, coordinate.text("bounds"));
    if (limits == nullptr || !limits->numeric() || limits->shape.count() < 2 || limits->shape.rank() < 2 ||
        limits->shape[limits->shape.rank() - 1] != 2)
      continue;
    Box first{Shape::filled(limits->shape.rank(), 0), Shape::filled(limits->shape.rank(), 1)};
    first.extent[limits->shape.rank() - 1] = 2;
    std::array<double, 2> ends{};
    file.file().read<double>(*limits, first, std::span(ends));
    if (!std::isfinite(ends[0]) || !std::isfinite(ends[1]) || ends[0] == ends[1]) continue;
    const std::vector<Time> times = decode_times(ends, coordinate.text("units"), coordinate.text("calendar"),
                                                 concat(limits->name, " in ", file.file().path()));
    return static_cast<double>(std::abs(times[1] - times[0])) / static_cast<double>(kHour);
  }
  return 0;
}

double hours_of(FileSet& data, const Field& field) {
  const auto& texts = data.describe(field).texts;
  const auto said = texts.find("cell_methods");
  if (said != texts.end() && method_in_time(said->second) == "point") return 0;
  const std::optional<Period> limits = data.time_limits(field);
  return limits ? static_cast<double>(limits->last - limits->first) / static_cast<double>(kHour) : 0;
}

void require_same_hours(const std::string& what, double hours, double wanted) {
  if (hours <= 0 || wanted <= 0 || same_time_range(hours, wanted)) return;
  throw DataError(concat(what, " is over ", hours, " h, and the data or other files over ", wanted, " h"));
}

}  // namespace jigsaw::inline evaluate
