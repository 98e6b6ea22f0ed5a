#include "samples/data_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline samples {

namespace {

enum class AxisKind { kTime, kLevel, kLatitude, kLongitude, kOther };

bool one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool counts_north(const std::string& units) {
  return one_of(units, {"degrees_north", "degree_north", "degrees_N", "degree_N", "degreesN", "degreeN"});
}

bool counts_east(const std::string& units) {
  return one_of(units, {"degrees_east", "degree_east", "degrees_E", "degree_E", "degreesE", "degreeE"});
}

bool is_pressure(const std::string& units) {
  return one_of(units, {"hPa", "millibars", "millibar", "mbar", "mb", "Pa"});
}

AxisKind kind_by_name(const std::string& name) {
  if (one_of(name, {"latitude", "lat", "Latitude", "nav_lat"})) return AxisKind::kLatitude;
  if (one_of(name, {"longitude", "lon", "Longitude", "nav_lon"})) return AxisKind::kLongitude;
  if (one_of(name, {"time", "valid_time"})) return AxisKind::kTime;
  if (one_of(name, {"level", "pressure_level", "plev", "lev", "isobaricInhPa"})) return AxisKind::kLevel;
  return AxisKind::kOther;
}

AxisKind kind_of(const std::string& name, const FileVariable* coordinate) {
  if (coordinate == nullptr) return kind_by_name(name);
  const std::string standard_name = coordinate->text("standard_name"), units = coordinate->text("units");
  const std::string axis = coordinate->text("axis");
  if (standard_name == "latitude" || counts_north(units)) return AxisKind::kLatitude;
  if (standard_name == "longitude" || counts_east(units)) return AxisKind::kLongitude;
  if (standard_name == "time" || units.find(" since ") != std::string::npos) return AxisKind::kTime;
  if (standard_name == "air_pressure" || is_pressure(units)) return AxisKind::kLevel;
  if (axis == "Y") return AxisKind::kLatitude;
  if (axis == "X") return AxisKind::kLongitude;
  if (axis == "T") return AxisKind::kTime;
  if (axis == "Z") return AxisKind::kLevel;
  return kind_by_name(name);
}

const FileVariable* coordinate_of(const VariableFile& file, const std::string& dimension) {
  const FileVariable* variable = file.find(dimension);
  const bool matches =
      variable != nullptr && variable->shape.rank() == 1 && variable->dimensions[0] == dimension;
  return matches ? variable : nullptr;
}

}  // namespace

FieldAxes DataFile::axes(const FileVariable& variable) const {
  FieldAxes axes;
  for (int d = 0; d < variable.shape.rank(); ++d) {
    const std::string& name = variable.dimensions[static_cast<std::size_t>(d)];
    int* place = nullptr;
    switch (kind_of(name, coordinate_of(*file_, name))) {
      case AxisKind::kTime:
        place = &axes.time;
        break;
      case AxisKind::kLevel:
        place = &axes.level;
        break;
      case AxisKind::kLatitude:
        place = &axes.latitude;
        break;
      case AxisKind::kLongitude:
        place = &axes.longitude;
        break;
      case AxisKind::kOther:
        break;
    }
    // Of two axes of one kind the first counts; the second has to be of extent 1.
    if (place != nullptr && *place < 0) *place = d;
  }
  return axes;
}

void DataFile::require_field(const FileVariable& variable) const {
  file_->require_numbers(variable);
  const FieldAxes found = axes(variable);
  const auto refuse = [&](const std::string& why) {
    throw DataError(concat(variable.name, " in ", file_->path(), " cannot be used: ", why));
  };
  if (!found.horizontal()) {
    refuse(concat("no latitude and longitude are known among its dimensions (",
                  join(variable.dimensions, ", "), ")"));
  }
  for (int d = 0; d < variable.shape.rank(); ++d) {
    if (d == found.time || d == found.level || d == found.latitude || d == found.longitude) continue;
    if (variable.shape[d] != 1) {
      refuse(concat("its dimension ", variable.dimensions[static_cast<std::size_t>(d)], " has ",
                    variable.shape[d], " entries; only one can be chosen from, merge them first"));
    }
  }
}

const std::vector<double>& DataFile::coordinates(const std::string& dimension) {
  const auto known = coordinates_.find(dimension);
  if (known != coordinates_.end()) return known->second;
  const FileVariable* variable = coordinate_of(*file_, dimension);
  if (variable == nullptr) {
    throw DataError(
        concat("the dimension ", dimension, " of ", file_->path(), " has no coordinate variable"));
  }
  std::vector<double> values = file_->read_all(*variable);
  for (double& value : values) {
    if (std::isnan(value)) {
      throw DataError(concat("the coordinate ", dimension, " of ", file_->path(), " has missing values"));
    }
    if (variable->text("units") == "Pa") value /= 100;
  }
  return coordinates_[dimension] = std::move(values);
}

const std::vector<Time>& DataFile::times(const std::string& dimension) {
  const auto known = times_.find(dimension);
  if (known != times_.end()) return known->second;
  const std::vector<double>& values = coordinates(dimension);
  const FileVariable& variable = *coordinate_of(*file_, dimension);
  return times_[dimension] = decode_times(values, variable.text("units"), variable.text("calendar"),
                                          concat("the coordinate ", dimension, " of ", file_->path()));
}

}  // namespace jigsaw::inline samples
