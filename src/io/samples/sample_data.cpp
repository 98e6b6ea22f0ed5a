#include "samples/sample_data.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numbers>
#include <vector>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "files/netcdf_output.h"
#include "samples/sample_flow.h"

namespace jigsaw::inline samples {

namespace {

struct Variable {
  const char* name;
  const char* units;
  const char* long_name;
  const char* standard_name;
  double RossbyHaurwitzFlow::State::*value;
};

constexpr std::array kVariables = {
    Variable{"t2m", "K", "2 metre temperature", "air_temperature", &RossbyHaurwitzFlow::State::temperature},
    Variable{"u10", "m s**-1", "10 metre U wind component", "eastward_wind",
             &RossbyHaurwitzFlow::State::eastward},
    Variable{"v10", "m s**-1", "10 metre V wind component", "northward_wind",
             &RossbyHaurwitzFlow::State::northward},
    Variable{"z", "m**2 s**-2", "Geopotential", "geopotential", &RossbyHaurwitzFlow::State::geopotential},
};

constexpr std::int16_t kFill = -32767;
constexpr double kSteps = 65532.0;  // packed values are −32766 … 32766, so that none is the fill value

/// One month of one data set: coordinates as the files hold them.
struct Month {
  std::vector<float> latitudes, longitudes;  // degrees
  std::vector<int> hours;                    // since 1900-01-01
};

/// A variable of one month as the file holds it: value = packed · scale_factor + add_offset.
struct PackedField {
  double scale_factor;
  double add_offset;
  std::vector<std::int16_t> values;
};

void check(const SampleDataOptions& options) {
  const int least_columns = 2 * RossbyHaurwitzFlow::kLargestWavenumber + 2;
  if (options.rows < 3 || options.columns < least_columns) {
    throw ConfigError(concat("sample data on ", options.rows, " x ", options.columns,
                             " points cannot hold the waves; at least 3 x ", least_columns, " are needed"));
  }
  if (options.step_hours < 1 || 24 % options.step_hours != 0) {
    throw ConfigError(concat("sample data every ", options.step_hours,
                             " hours is not possible; the step must be a divisor of 24"));
  }
  if (options.month < 1 || options.month > 12 || options.months < 1 || options.year < 1900 ||
      options.year > 2100) {
    throw ConfigError(concat("sample data for ", options.months, " months from ", options.year, "-",
                             options.month, " is not possible; years are 1900 to 2100, months 1 to 12"));
  }
}

Month month_of(const SampleDataOptions& options, std::chrono::year_month month) {
  using std::chrono::sys_days;
  Month result;
  for (int row = 0; row < options.rows; ++row) {
    result.latitudes.push_back(static_cast<float>(90.0 - 180.0 * row / (options.rows - 1)));
  }
  for (int column = 0; column < options.columns; ++column) {
    result.longitudes.push_back(static_cast<float>(360.0 * column / options.columns));
  }
  const sys_days epoch{std::chrono::year{1900} / 1 / 1};
  const auto hours_until = [&](std::chrono::year_month when) {
    return static_cast<int>((sys_days{when / 1} - epoch).count()) * 24;
  };
  for (int hour = hours_until(month); hour < hours_until(month + std::chrono::months{1});
       hour += options.step_hours) {
    result.hours.push_back(hour);
  }
  return result;
}

/// The flow at every time, latitude and longitude of the month, in this order.
std::vector<RossbyHaurwitzFlow::State> states_of(const RossbyHaurwitzFlow& flow, const Month& month) {
  constexpr double kRadians = std::numbers::pi / 180.0;
  std::vector<RossbyHaurwitzFlow::State> states;
  states.reserve(month.hours.size() * month.latitudes.size() * month.longitudes.size());
  for (const int hour : month.hours) {
    for (const float latitude : month.latitudes) {
      for (const float longitude : month.longitudes) {
        states.push_back(flow.at(latitude * kRadians, longitude * kRadians, hour * 3600.0));
      }
    }
  }
  return states;
}

/// Spreads the range of the variable over the packed integers.
PackedField pack(const std::vector<RossbyHaurwitzFlow::State>& states, const Variable& variable) {
  double low = states.front().*variable.value, high = low;
  for (const auto& state : states) {
    low = std::min(low, state.*variable.value);
    high = std::max(high, state.*variable.value);
  }
  PackedField field{.scale_factor = (high - low) / kSteps, .add_offset = 0.5 * (low + high), .values = {}};
  field.values.reserve(states.size());
  for (const auto& state : states) {
    const double steps = (state.*variable.value - field.add_offset) / field.scale_factor;
    field.values.push_back(static_cast<std::int16_t>(std::lround(steps)));
  }
  return field;
}

int add_coordinate(NetcdfOutput& file, const char* name, NetcdfOutput::Type type, int dimension,
                   const char* units) {
  const int variable = file.add_variable(name, type, {dimension});
  file.add_text(variable, "units", units);
  file.add_text(variable, "long_name", name);
  file.add_text(variable, "standard_name", name);
  return variable;
}

int add_field(NetcdfOutput& file, const Variable& description, const std::vector<int>& dimensions,
              const PackedField& field) {
  const int variable = file.add_variable(description.name, NetcdfOutput::Type::kShort, dimensions);
  file.add_number(variable, "scale_factor", field.scale_factor);
  file.add_number(variable, "add_offset", field.add_offset);
  file.add_number(variable, "_FillValue", kFill);
  file.add_number(variable, "missing_value", kFill);
  file.add_text(variable, "units", description.units);
  file.add_text(variable, "long_name", description.long_name);
  file.add_text(variable, "standard_name", description.standard_name);
  return variable;
}

void write_month(const std::string& path, const Month& month, const std::vector<PackedField>& fields,
                 std::uint64_t seed) {
  NetcdfOutput file(path);
  const int longitude = file.add_dimension("longitude", month.longitudes.size());
  const int latitude = file.add_dimension("latitude", month.latitudes.size());
  const int time = file.add_dimension("time", month.hours.size());
  const int longitudes =
      add_coordinate(file, "longitude", NetcdfOutput::Type::kFloat, longitude, "degrees_east");
  const int latitudes =
      add_coordinate(file, "latitude", NetcdfOutput::Type::kFloat, latitude, "degrees_north");
  const int times =
      add_coordinate(file, "time", NetcdfOutput::Type::kInt, time, "hours since 1900-01-01 00:00:00.0");
  file.add_text(times, "calendar", "gregorian");
  std::vector<int> variables;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    variables.push_back(add_field(file, kVariables[i], {time, latitude, longitude}, fields[i]));
  }
  file.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.6");
  file.add_text(NetcdfOutput::kFile, "title", "Rossby-Haurwitz waves in the shape of ERA5; not observations");
  file.add_text(NetcdfOutput::kFile, "history", concat("jigsaw-train sample-data, seed ", seed));
  file.end_definitions();
  file.write(longitudes, month.longitudes);
  file.write(latitudes, month.latitudes);
  file.write(times, month.hours);
  for (std::size_t i = 0; i < fields.size(); ++i) file.write(variables[i], fields[i].values);
  file.close();
}

std::string file_name(std::chrono::year_month month) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "sample_%04d-%02u.nc", static_cast<int>(month.year()),
                static_cast<unsigned>(month.month()));
  return name.data();
}

}  // namespace

void write_sample_data(const SampleDataOptions& options, const std::string& directory) {
  check(options);
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem)
    refuse_output<ConfigError>(problem, concat("folder ", directory, " cannot be made: ", problem.message()));
  const RossbyHaurwitzFlow flow = RossbyHaurwitzFlow::random(options.seed);
  const std::chrono::year_month first{std::chrono::year{options.year},
                                      std::chrono::month{static_cast<unsigned>(options.month)}};
  for (int i = 0; i < options.months; ++i) {
    const std::chrono::year_month month = first + std::chrono::months{i};
    const Month coordinates = month_of(options, month);
    const auto states = states_of(flow, coordinates);
    std::vector<PackedField> fields;
    for (const Variable& variable : kVariables) fields.push_back(pack(states, variable));
    try {
      Replacement file((std::filesystem::path(directory) / file_name(month)).string());
      write_month(file.file().path(), coordinates, fields, options.seed);
      file.commit();
    } catch (const FileError& error) {
      refuse_output<ConfigError>(error, error.what());
    }
  }
}

}  // namespace jigsaw::inline samples
