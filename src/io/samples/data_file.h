#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "files/variable_file.h"
#include "samples/time_axis.h"

namespace jigsaw::inline samples {

/// Which dimension of a variable is which axis; -1 where it has none.
struct FieldAxes {
  int time = -1, level = -1, latitude = -1, longitude = -1;

  bool horizontal() const { return latitude >= 0 && longitude >= 0; }
};

/// A file whose variables name their dimensions, as fields on axes: these are recognised by the
/// standard_name, units or axis of their coordinate variable, else by name, and coordinates are decoded once.
class DataFile {
 public:
  /// @throws DataError
  DataFile(const std::string& path, External external)
      : file_(open_variables(path, Dimensions::kByName, external)) {}

  VariableFile& file() { return *file_; }
  const VariableFile& file() const { return *file_; }

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
  std::unique_ptr<VariableFile> file_;
  std::map<std::string, std::vector<double>> coordinates_;
  std::map<std::string, std::vector<Time>> times_;
};

}  // namespace jigsaw::inline samples
