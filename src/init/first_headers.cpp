#include "init/first_headers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/text.h"
#include "fields/data_file.h"
#include "files/coordinate_units.h"

namespace jigsaw::inline init {

namespace {

DataFile open_by_name(const std::string& path) {
  return DataFile(open_variables(path, Dimensions::kByName, External::kRefused));
}

/// What require_numbers() says of a variable with a fault.
std::string refusal_of(const VariableFile& file, const FileVariable& variable) {
  try {
    file.require_numbers(variable);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

bool is_in_time(const DataFile& file, const FileVariable& variable) {
  const FieldAxes axes = file.axes(variable);
  return axes.horizontal() && file.times_of(variable, axes);
}

bool looks_like_field(const FileVariable& variable) {
  static constexpr std::array<std::string_view, 19> kNames = {
      "time",      "Time",           "valid_time",  "timestamp", "lat",       "lon", "latitude",
      "longitude", "rlat",           "rlon",        "nlat",      "nlon",      "lev", "level",
      "plev",      "pressure_level", "south_north", "west_east", "bottom_top"};
  if (variable.shape.rank() < 2 || (!variable.numeric() && variable.fault.empty())) return false;
  const auto is_of_fields = [](const std::string& dimension) {
    return std::ranges::find(kNames, without_groups(dimension)) != kNames.end();
  };
  return std::ranges::any_of(variable.dimensions, is_of_fields) || !variable.text("standard_name").empty() ||
         !variable.text("grid_mapping").empty();
}

}  // namespace

std::vector<std::string> refusals_in(const VariableFile& file) {
  std::vector<std::string> refusals;
  for (const FileVariable& variable : file.variables())
    if (!variable.fault.empty() && variable.shape.rank() != 1) refusals.push_back(refusal_of(file, variable));
  return refusals;
}

std::set<std::string> bounds_in(const VariableFile& file) {
  std::set<std::string> names;
  for (const FileVariable& variable : file.variables()) {
    const std::string named = variable.text("bounds");
    // In the group of the variable.
    if (!named.empty()) names.insert(variable.name.substr(0, variable.name.rfind('/') + 1) + named);
  }
  return names;
}

namespace {

/// By names of a variable and a coordinate: its value, and the file that has it.
using KnownScalars = std::map<std::pair<std::string, std::string>, std::pair<double, std::string>>;

/// What differing_scalars() says of one variable; "" where nothing differs from the files before.
std::string differing_scalar(DataFile& file, const std::string& variable, KnownScalars& known) {
  const FileVariable* const field = file.file().find(variable);
  if (field == nullptr) return "";
  const FileVariable* const level = file.scalar_level(*field);
  const std::optional<CoordinateDescription> member = file.scalar_member();
  for (const FileVariable& scalar : file.file().variables()) {
    if (!scalar.numeric() || scalar.shape.rank() > 1 || scalar.shape.count() != 1) continue;
    if (!names_coordinate(*field, scalar) || &scalar == level || counts_since(scalar.text("units"))) continue;
    if (member && member->name == without_groups(scalar.name)) continue;
    const std::string& here = file.file().path();
    const double value = file.file().read_all(scalar).front();
    const auto& [first, path] = known.try_emplace({variable, scalar.name}, value, here).first->second;
    if (first == value || std::isnan(first) || std::isnan(value)) continue;
    return concat(variable, " has ", scalar.name, " ", first, " in ", path, " and ", value, " in ", here,
                  ", and all files become one series: if these are different quantities, give each a "
                  "variable of its own in "
                  "data.variables, {\"name\": …, \"data_set\": \"",
                  variable, "\", \"files\": […]}");
  }
  return "";
}

}  // namespace

std::vector<std::string> differing_scalars(const std::vector<std::string>& paths,
                                           const std::vector<std::string>& variables) {
  constexpr std::size_t kMostFiles = 2000;
  std::vector<std::string> left = variables, sentences;
  KnownScalars known;
  for (std::size_t i = 0; i < std::min(paths.size(), kMostFiles) && !left.empty(); ++i) {
    try {
      DataFile file = open_by_name(paths[i]);
      std::erase_if(left, [&](const std::string& variable) {
        std::string sentence = differing_scalar(file, variable, known);
        if (sentence.empty()) return false;
        sentences.push_back(std::move(sentence));
        return true;
      });
    } catch (const DataError&) {
      // Whoever reads it says so.
    }
  }
  return sentences;
}

bool has_fields_in_time(const std::string& path) {
  try {
    const DataFile file = open_by_name(path);
    return std::ranges::any_of(file.file().variables(), [&](const FileVariable& variable) {
      return variable.numeric() && is_in_time(file, variable);
    });
  } catch (const DataError&) {
    return false;
  }
}

std::string refusal_of_field(const std::string& path) {
  const DataFile file = open_by_name(path);
  const auto& variables = file.file().variables();
  const auto found = std::ranges::find_if(variables, [&](const FileVariable& variable) {
    return !variable.fault.empty() && is_in_time(file, variable);
  });
  return found == variables.end() ? "" : refusal_of(file.file(), *found);
}

std::string refusal_of_grid(const std::string& path) {
  const DataFile file = open_by_name(path);
  for (const FileVariable& variable : file.file().variables()) {
    const FieldAxes axes = file.axes(variable);
    if (!variable.numeric() || axes.time < 0 || file.unread_grid(variable, axes).empty()) continue;
    if (!file.counts_dates(variable.dimensions[static_cast<std::size_t>(axes.time)])) continue;
    try {
      file.require_field(variable);
    } catch (const DataError& error) {
      return error.what();
    }
  }
  return "";
}

std::string lack_of_field(const std::string& path) {
  const DataFile file = open_by_name(path);
  const FileVariable* largest = nullptr;
  for (const FileVariable& variable : file.file().variables()) {
    if (!looks_like_field(variable)) continue;
    if (largest == nullptr || variable.shape.count() > largest->shape.count()) largest = &variable;
  }
  if (largest == nullptr) return "";
  try {
    file.require_field(*largest);
  } catch (const DataError& error) {
    return error.what();
  }
  return concat(largest->name, " in ", path, " has no times for its dimensions (",
                join(largest->dimensions, ", "),
                "); fields have a coordinate of times, in units as \"hours since 2020-01-01\"");
}

std::optional<std::string> image_format(const std::string& path) {
  const std::string end = to_lower(std::filesystem::path(path).extension().string());
  constexpr std::array<std::string_view, 8> kOfFields = {".nc",   ".nc4", ".cdf",   ".zarr",
                                                         ".grib", ".grb", ".grib2", ".grb2"};
  if (std::ranges::find(kOfFields, end) != kOfFields.end()) return std::nullopt;
  std::string format;
  try {
    format = open_variables(path, Dimensions::kByNumber, External::kRefused)->format();
  } catch (const DataError&) {
    return "";  // which is said again when it is opened as images
  }
  const auto& formats = file_formats();
  const auto found = std::ranges::find(formats, format, &FileFormat::name);
  return found != formats.end() && !found->names_dimensions ? std::optional(format) : std::nullopt;
}

}  // namespace jigsaw::inline init
