#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace jigsaw::testing {

/// A variable of a made-up file: on (time, latitude, longitude), with levels on (time, level, latitude,
/// longitude), without time on (latitude, longitude). NaN is missing.
struct FileField {
  std::string name;
  std::vector<double> values;
  std::vector<double> levels = {};  ///< in hPa
  bool has_time = true;
};

/// Coordinates of the file; times are whole hours since 2019-12-30.
struct FileAxes {
  std::vector<double> hours, latitudes, longitudes;
};

/// Coordinates first, first + step, …
std::vector<double> coordinates(std::size_t count, double first, double step);

/// Writes a NetCDF file of float64 numbers.
void write_forecast_file(const std::string& path, const FileAxes& axes, const std::vector<FileField>& fields);

}  // namespace jigsaw::testing
