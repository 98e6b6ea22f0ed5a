#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"

namespace jigsaw {

/// A variable as a file's header describes it.
struct NetcdfVariable {
  std::string name;
  int id = 0;
  int type = 0;            ///< nc_type
  std::int64_t bytes = 0;  ///< of one element on disk; 0 when it is not a number
  std::vector<std::string> dimensions;
  Shape shape;
  /// The attributes that say what the numbers mean: units, scale_factor, standard_name, …
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> numbers;

  bool numeric() const { return bytes > 0; }
  /// The attribute, or "".
  std::string text(const std::string& attribute) const;
};

/// A NetCDF file (classic, 64-bit offset, CDF-5 or NetCDF-4) opened for reading: the variables of its root
/// group and what they hold. Library calls run under lock_io(). Reading is thread-safe, close() is not.
///
/// Every failure is a DataError that names the file, the variable and the library's own words.
class NetcdfFile {
 public:
  /// Opens the file and reads its header. @throws DataError
  explicit NetcdfFile(std::string path);
  ~NetcdfFile();
  NetcdfFile(const NetcdfFile&) = delete;
  NetcdfFile& operator=(const NetcdfFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<NetcdfVariable>& variables() const { return variables_; }
  /// The variable, or null.
  const NetcdfVariable* find(const std::string& name) const;

  /// The hyperslab `box` of a numeric variable in its physical units: stored · scale_factor + add_offset,
  /// computed in double. What is _FillValue, missing_value, outside valid_range (valid_min, valid_max) or
  /// not finite becomes NaN. T is float or double; `out` holds box.extent.count() values, row-major.
  template <typename T>
  void read(const NetcdfVariable& variable, const Box& box, std::span<T> out);
  /// All of a coordinate variable. @throws DataError also when it has more than 2^24 values.
  std::vector<double> read_all(const NetcdfVariable& variable);

  /// Elements read so far times their size on disk.
  std::int64_t bytes_read() const { return bytes_read_; }

  /// Releases the file handle until the next read.
  void close();
  bool is_open() const { return id_ >= 0; }

 private:
  void open();
  void read_header();
  NetcdfVariable read_variable(int id);
  void read_attribute(NetcdfVariable& variable, const std::string& attribute);
  void check(int status, const std::string& what) const;

  std::string path_;
  int id_ = -1;
  std::vector<NetcdfVariable> variables_;
  std::atomic<std::int64_t> bytes_read_ = 0;
};

}  // namespace jigsaw
