#include "images/image_axes.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "files/coordinate_units.h"
#include "files/coordinate_values.h"
#include "files/field_attributes.h"
#include "files/probe.h"
#include "files/variable_file.h"

namespace jigsaw::inline images {

namespace {

/// How NetCDF-C calls the dims of HDF5 files that name none.
constexpr const char* kUnnamed = "phony_dim_";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// "a/b/" of "a/b/c".
std::string group_of(const std::string& name) {
  return name.substr(0, name.rfind('/') + 1);
}

/// A dim's own coordinate, latitudes, longitudes, or times.
bool lies_along(const FileVariable& variable, const FileVariable& data) {
  if (!variable.numeric() || variable.name == data.name) return false;
  if (!data.name.starts_with(group_of(variable.name))) return false;
  const std::string units = variable.text("units");
  const bool axis = variable.dimensions == std::vector{variable.name};
  const bool place = !variable.dimensions.empty() && (counts_north(units) || counts_east(units));
  const bool time = variable.dimensions.size() <= 1 && counts_since(units);
  if (!axis && !place && !time) return false;
  return std::ranges::all_of(variable.dimensions,
                             [&](const std::string& dim) { return contains(data.dimensions, dim); });
}

OutputCoordinate coordinate(VariableFile& file, const FileVariable& variable) {
  CoordinateValues decoded = read_coordinate(file, variable);
  OutputCoordinate coordinate{
      variable.name, variable.dimensions, variable.shape, std::move(decoded.values), {}};
  coordinate.single_precision = decoded.single_precision;
  for (const char* attribute : {"units", "calendar", "standard_name", "long_name", "axis", "positive"}) {
    const std::string text = variable.text(attribute);
    if (!text.empty()) coordinate.texts[attribute] = text;
  }
  return coordinate;
}

std::optional<OutputCoordinate> mapping_of(const VariableFile& file, const FileVariable& data) {
  const FileVariable* found = file.grid_mapping(data);
  if (found == nullptr) return std::nullopt;
  OutputCoordinate mapping{found->name, {}, {}, {0.0}, {}};
  for (const auto& [attribute, text] : found->texts)
    if (says_mapping(attribute)) mapping.texts[attribute] = text;
  for (const auto& [attribute, numbers] : found->numbers)
    if (says_mapping(attribute)) mapping.numbers[attribute] = numbers;
  return mapping;
}

void add_attributes(const FileVariable& data, ImageAxes& axes) {
  for (const auto& [attribute, text] : data.texts)
    if (!text.empty() && is_of_field(attribute)) axes.texts[attribute] = text;
  for (const auto& [attribute, numbers] : data.numbers)
    if (is_of_field(attribute)) axes.numbers[attribute] = numbers;
}

}  // namespace

const OutputCoordinate* ImageAxes::along(const std::string& dimension) const {
  const auto found = std::ranges::find(coordinates, dimension, &OutputCoordinate::name);
  return found == coordinates.end() || found->dimensions != std::vector{dimension} ? nullptr : &*found;
}

ImageAxes read_image_axes(const std::string& path, const std::string& data_set, std::size_t most_dims) {
  ImageAxes axes;
  try {
    probe_files({path}, Dimensions::kByName, External::kRefused);
    const std::unique_ptr<VariableFile> file = open_variables(path, Dimensions::kByName);
    const FileVariable* data = file->find(data_set);
    if (data == nullptr || std::ssize(data->dimensions) != data->shape.rank()) return axes;
    if (std::ranges::any_of(data->dimensions,
                            [](const std::string& name) { return name.starts_with(kUnnamed); }))
      return axes;
    axes.names = data->dimensions;
    axes.extents.assign(data->shape.begin(), data->shape.end());
    axes.mapping = mapping_of(*file, *data);
    add_attributes(*data, axes);
    for (const FileVariable& variable : file->variables()) {
      if (variable.dimensions.size() > most_dims || !lies_along(variable, *data)) continue;
      try {
        axes.coordinates.push_back(coordinate(*file, variable));
      } catch (const DataError&) {
        // Left out.
      }
    }
  } catch (const DataError&) {
    // A format that names no dims.
  }
  return axes;
}

namespace {

/// The entries along dim `at` of an array.
std::vector<double> taken(const std::vector<double>& values, const Shape& shape, int at,
                          const std::vector<std::int64_t>& entries) {
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < shape.rank(); ++d) (d < at ? outer : inner) *= d == at ? 1 : shape[d];
  std::vector<double> result;
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const std::int64_t entry : entries) {
      const auto first = values.begin() + (i * shape[at] + entry) * inner;
      result.insert(result.end(), first, first + inner);
    }
  }
  return result;
}

}  // namespace

ImageAxes chosen_along(ImageAxes axes, std::size_t dimension, const std::vector<std::int64_t>& entries) {
  const std::string& name = axes.names.at(dimension);
  axes.extents.at(dimension) = std::ssize(entries);
  for (OutputCoordinate& coordinate : axes.coordinates) {
    const auto found = std::ranges::find(coordinate.dimensions, name);
    if (found == coordinate.dimensions.end()) continue;
    const int at = static_cast<int>(found - coordinate.dimensions.begin());
    coordinate.values = taken(coordinate.values, coordinate.shape, at, entries);
    coordinate.shape[at] = std::ssize(entries);
  }
  return axes;
}

ImageAxes without_dimension(ImageAxes axes, std::size_t dimension) {
  const std::string name = axes.names.at(dimension);
  std::erase_if(axes.coordinates,
                [&](const OutputCoordinate& coordinate) { return contains(coordinate.dimensions, name); });
  axes.names.erase(axes.names.begin() + static_cast<std::ptrdiff_t>(dimension));
  axes.extents.erase(axes.extents.begin() + static_cast<std::ptrdiff_t>(dimension));
  return axes;
}

}  // namespace jigsaw::inline images
