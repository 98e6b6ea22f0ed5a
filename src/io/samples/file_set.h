#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"
#include "array/grid.h"
#include "samples/data_file.h"
#include "samples/field.h"

namespace jigsaw::inline samples {

/// What the files hold of one variable.
struct VariableSummary {
  std::string name, units, long_name;
  std::vector<double> levels;  ///< ascending; empty for a variable without levels
  std::vector<Time> times;     ///< ascending; empty for a variable without time
};

/// Several files as one data set: each field has the union of its times over all files. Fields are
/// selected before they are read, and all of those must lie on one grid. read() may be called from several
/// threads. At most kMostOpenFiles are held open.
///
/// Every error is a DataError that names variable and file.
class FileSet {
 public:
  static constexpr std::size_t kMostOpenFiles = 64;

  /// Reads the headers of these files. @throws DataError
  explicit FileSet(const std::vector<std::string>& paths, External external = External::kRefused);
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  /// Every variable that is a field, sorted by name.
  std::vector<VariableSummary> catalogue();

  /// Makes a field readable. Of a constant field (`has_time` false) the first state found is taken, for data
  /// sets repeat it in every file, with a time. @throws DataError for a variable or level that is not there
  /// (with what is), a time that occurs twice, two units, or another grid than that of the fields before.
  void select(const Field& field, bool has_time);

  /// The grid of the selected fields; rows and columns stand as in the files.
  const Grid& grid() const { return grid_; }
  const std::string& units(const Field& field) const { return series(field).units; }
  /// The times of a selected field, ascending.
  const std::vector<Time>& times(const Field& field) const { return series(field).index->times; }
  bool has(const Field& field, Time time) const;

  /// Rows and columns `box` [H, W] of a field at one time in physical units, NaN where it is missing: one
  /// hyperslab. For a constant field the time does not matter. @throws DataError when the time is not there.
  void read(const Field& field, Time time, const Box& box, std::span<double> out);

  /// Elements read so far times their size on disk, coordinates included.
  std::int64_t bytes_read() const;
  /// VariableFile::undeclared() of all files, by "variable in file".
  std::map<std::string, UndeclaredValues> undeclared() const;

 private:
  /// A variable (on one level) in one file.
  struct Part {
    int file = 0;
    const FileVariable* variable = nullptr;
    FieldAxes axes;
    std::int64_t level = 0;
  };
  /// Where each time stands; shared by all fields of the same files, since it can be long.
  struct TimeIndex {
    struct Entry {
      std::int32_t part, position;
    };
    std::vector<Time> times;
    std::vector<Entry> entries;
  };
  struct Series {
    std::string units;
    bool has_time = true;
    std::vector<Part> parts;
    std::shared_ptr<const TimeIndex> index;
  };
  using TimeDimensions = std::vector<std::pair<int, std::string>>;

  const Series& series(const Field& field) const;
  DataFile& use(int file);
  std::vector<Part> find_parts(const Field& field);
  bool find_level(const Field& field, Part& part);
  [[noreturn]] void refuse_unknown(const std::string& variable) const;
  [[noreturn]] void refuse_level(const Field& field);
  std::shared_ptr<const TimeIndex> index_times(const Field& field, const std::vector<Part>& parts);
  void check_grid(const Part& part);
  void check_memory(const Part& part);
  std::string check_units(const Field& field, const std::vector<Part>& parts) const;

  std::vector<std::unique_ptr<DataFile>> files_;
  std::deque<int> open_;  ///< least recently used first
  Grid grid_;
  std::string grid_file_;
  std::map<Field, Series> series_;
  std::map<TimeDimensions, std::shared_ptr<const TimeIndex>> indices_;
  std::mutex mutex_;  ///< guards open_ and the handles behind it
};

}  // namespace jigsaw::inline samples
