#pragma once
#include <map>
#include <string>
#include <vector>

#include "files/netcdf_file.h"
#include "samples/time_axis.h"

namespace jigsaw {

/// Which dimension of a variable is which axis; -1 where it has none.
struct FieldAxes {
  int time = -1, level = -1, latitude = -1, longitude = -1;

  bool horizontal() const { return latitude >= 0 && longitude >= 0; }
};

/// A NetCDF file as fields on axes: dimensions are recognised by the standard_name, units or axis of their
/// coordinate variable, else by name, and coordinates are decoded once.
class DataFile {
 public:
  /// @throws DataError
  explicit DataFile(const std::string& path) : netcdf_(path) {}

  NetcdfFile& netcdf() { return netcdf_; }
  const NetcdfFile& netcdf() const { return netcdf_; }

  FieldAxes axes(const FileVariable& variable) const;
  /// Throws DataError unless the variable is a field of numbers: latitude, longitude, perhaps time and level,
  /// every other dimension of extent 1.
  void require_field(const FileVariable& variable) const;

  /// Coordinates of a dimension: latitude and longitude in degrees; levels of pressure in hPa.
  /// @throws DataError  when it has none, or one is missing.
  const std::vector<double>& coordinates(const std::string& dimension);
  /// Decoded coordinates of a time dimension. @throws DataError
  const std::vector<Time>& times(const std::string& dimension);

 private:
  NetcdfFile netcdf_;
  std::map<std::string, std::vector<double>> coordinates_;
  std::map<std::string, std::vector<Time>> times_;
};

}  // namespace jigsaw
