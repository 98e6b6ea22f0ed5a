#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"

namespace jigsaw::inline files {

/// A variable (a data set) as a file's header describes it.
struct FileVariable {
  std::string name;        ///< in HDF5 with its groups, "scans/volume"
  int id = 0;              ///< the format's own
  std::int64_t bytes = 0;  ///< of one element on disk; 0 when it is not a number
  bool single_precision = false;
  /// What stands where nothing was written and the file does not say otherwise.
  std::optional<double> default_fill;
  std::vector<std::string> dimensions;  ///< their names; none in HDF5
  Shape shape;
  /// The attributes that say what the numbers mean: units, scale_factor, standard_name, …
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> numbers;

  bool numeric() const { return bytes > 0; }
  /// The attribute, or "".
  std::string text(const std::string& attribute) const;
};

/// A file of variables opened for reading. Library calls run under lock_io(). Reading is thread-safe, close()
/// is not.
///
/// Every failure is a DataError that names the file, the variable and what the library says.
class VariableFile {
 public:
  explicit VariableFile(std::string path) : path_(std::move(path)) {}
  virtual ~VariableFile() = default;
  VariableFile(const VariableFile&) = delete;
  VariableFile& operator=(const VariableFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<FileVariable>& variables() const { return variables_; }
  /// The variable, or null.
  const FileVariable* find(const std::string& name) const;

  /// The hyperslab `box` of a numeric variable in its physical units: stored · scale_factor + add_offset,
  /// computed in double. What is _FillValue, missing_value, outside valid_range (valid_min, valid_max) or
  /// not finite becomes NaN. T is float or double; `out` holds box.extent.count() values, row-major.
  template <typename T>
  void read(const FileVariable& variable, const Box& box, std::span<T> out);
  /// All of a coordinate variable. @throws DataError also when it has more than 2^24 values.
  std::vector<double> read_all(const FileVariable& variable);

  /// Elements read so far times their size on disk.
  std::int64_t bytes_read() const { return bytes_read_; }

  /// Releases the file handle until the next read.
  virtual void close() = 0;
  virtual bool is_open() const = 0;

 protected:
  /// The attributes that are looked for.
  static const std::vector<std::string>& attributes();
  static constexpr std::size_t kLongestAttribute = 4096;

  /// The numbers of a hyperslab as they are stored; the box is not empty and lies in the variable or is
  /// refused.
  virtual void read_stored(const FileVariable& variable, const Box& box, std::span<double> out) = 0;

  std::vector<FileVariable> variables_;

 private:
  std::string path_;
  std::atomic<std::int64_t> bytes_read_ = 0;
};

/// A format of data files. A new one is a VariableFile and a line in variable_file.cpp.
struct FileFormat {
  std::string name;  ///< as people call it
  /// Whether variables name their dimensions.
  bool names_dimensions = false;
  /// Whether a file that begins with these bytes is one. A file may be of several formats: NetCDF-4 is HDF5.
  bool (*recognises)(std::span<const char> begin) = nullptr;
  std::unique_ptr<VariableFile> (*open)(const std::string& path) = nullptr;
};
const std::vector<FileFormat>& file_formats();

enum class Dimensions : std::uint8_t {
  kByNumber,  ///< what is read goes by the order of dimensions
  kByName,    ///< and by their names
};
/// Opens a file in the first format that its content, not its name, is of. @throws DataError
std::unique_ptr<VariableFile> open_variables(const std::string& path, Dimensions dimensions);

}  // namespace jigsaw::inline files
