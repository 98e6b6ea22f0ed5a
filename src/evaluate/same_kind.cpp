#include "evaluate/same_kind.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "files/coordinate_units.h"
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
  const bool of_times =
      counts_since(coordinate.text("units")) || coordinate.text("standard_name") == "forecast_period";
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

namespace {

/// The first of a variable's numbers.
std::vector<double> first_numbers(DataFile& file, const FileVariable& variable, std::int64_t count) {
  const int rank = variable.shape.rank();
  Box first{Shape::filled(rank, 0), Shape::filled(rank, 1)};
  first.extent[rank - 1] = count;
  std::vector<double> numbers(static_cast<std::size_t>(count));
  file.file().read<double>(variable, first, std::span(numbers));
  return numbers;
}

/// Of the first cell of a coordinate of times; nothing where its limits were never written, or are none.
std::optional<Period> limits_of_first(DataFile& file, const FileVariable& coordinate) {
  const FileVariable* const limits = file.file().find_from(coordinate, coordinate.text("bounds"));
  const int rank = limits == nullptr ? 0 : limits->shape.rank();
  if (rank < 2 || !limits->numeric() || limits->shape.count() < 2 || limits->shape[rank - 1] != 2)
    return std::nullopt;
  std::vector<double> numbers = first_numbers(file, *limits, 2);
  numbers.push_back(first_numbers(file, coordinate, 1)[0]);
  if (!std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); })) return std::nullopt;
  try {
    const std::vector<Time> times =
        decode_times(numbers, coordinate.text("units"), coordinate.text("calendar"), limits->name);
    const auto [first, last] = std::minmax(times[0], times[1]);
    return first < last ? std::optional(Period{first - times[2], last - times[2]}) : std::nullopt;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

/// "from 6 h before to 0 h behind".
std::string limits_text(const Period& limits) {
  const auto hours = [](Time time) { return static_cast<double>(time) / static_cast<double>(kHour); };
  return concat("from ", -hours(limits.first), " h before their times to ", hours(limits.last),
                " h behind them");
}

}  // namespace

double hours_in(const Period& limits) {
  return static_cast<double>(limits.last - limits.first) / static_cast<double>(kHour);
}

std::optional<Period> limits_of(DataFile& file, const FileVariable& variable) {
  if (const double hours = time_range(variable); hours > 0)
    return Period{-std::llround(hours * static_cast<double>(kHour)), 0};
  if (method_in_time(variable.text("cell_methods")) == "point") return std::nullopt;
  for (const FileVariable& coordinate : file.file().variables()) {
    if (!bounds_times(coordinate, variable)) continue;
    if (const std::optional<Period> limits = limits_of_first(file, coordinate)) return limits;
  }
  return std::nullopt;
}

std::optional<Period> limits_of(FileSet& data, const Field& field) {
  const auto& texts = data.describe(field).texts;
  const auto said = texts.find("cell_methods");
  if (said != texts.end() && method_in_time(said->second) == "point") return std::nullopt;
  return data.time_limits(field);
}

void require_same_limits(const std::string& what, const std::optional<Period>& limits,
                         const std::optional<Period>& wanted) {
  if (!limits || !wanted) return;
  if (!same_time_range(hours_in(*limits), hours_in(*wanted))) {
    throw DataError(concat(what, " is over ", hours_in(*limits), " h, and the data or other files over ",
                           hours_in(*wanted), " h"));
  }
  const bool as_long = hours_in(*limits) == hours_in(*wanted);  // as months are not
  if (as_long && std::abs(limits->first - wanted->first) > kMinute) {
    throw DataError(concat(what, " holds values ", limits_text(*limits),
                           " (bounds), and the data or other files ", limits_text(*wanted),
                           "; bring its times to the same place in their bounds"));
  }
}

}  // namespace jigsaw::inline evaluate
