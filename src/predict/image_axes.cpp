#include "predict/image_axes.h"

#include <algorithm>
#include <memory>
#include <ranges>

#include "base/error.h"
#include "files/coordinate_units.h"
#include "files/probe.h"
#include "files/variable_file.h"

namespace jigsaw::inline predict {

namespace {

/// How NetCDF-C calls the dims of HDF5 files that name none.
constexpr const char* kUnnamed = "phony_dim_";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool lies_along(const FileVariable& variable, const FileVariable& data) {
  if (!variable.numeric() || variable.dimensions.empty() || variable.name == data.name) return false;
  if (variable.name.find('/') != std::string::npos) return false;  // of a group
  const bool axis = variable.dimensions == std::vector{variable.name};
  if (!axis && !counts_north(variable.text("units")) && !counts_east(variable.text("units"))) return false;
  return std::ranges::all_of(variable.dimensions,
                             [&](const std::string& dim) { return contains(data.dimensions, dim); });
}

OutputCoordinate coordinate(VariableFile& file, const FileVariable& variable) {
  OutputCoordinate coordinate{variable.name, variable.dimensions, variable.shape, {}, {}};
  coordinate.values = file.read_all(variable);
  for (const char* attribute : {"units", "calendar", "standard_name", "long_name", "axis", "positive"}) {
    const std::string text = variable.text(attribute);
    if (!text.empty()) coordinate.texts[attribute] = text;
  }
  return coordinate;
}

}  // namespace

ImageAxes read_image_axes(const std::string& path, const std::string& data_set) {
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
    for (const FileVariable& variable : file->variables()) {
      if (!lies_along(variable, *data)) continue;
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

}  // namespace jigsaw::inline predict
