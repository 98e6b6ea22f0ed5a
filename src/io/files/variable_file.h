#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/box.h"
#include "base/file.h"
#include "files/byte_buffer.h"
#include "files/file_description.h"
#include "files/file_variable.h"
#include "files/hyperslab_stream.h"
#include "files/unpacking.h"

namespace jigsaw::inline files {

/// Whether a file may have its values, or what its links lead to, in other files (HDF5: external links,
/// external storage, virtual data sets; Zarr: chunks where links lead that leave the store).
enum class External : std::uint8_t { kRefused, kFollowed };
/// Why something in another file is not read: "it stands in another file (…); …".
std::string refusal_of_other_file(const std::string& where);

/// Values that are no finite numbers where the file declares no mask that covers them.
struct UndeclaredValues {
  std::int64_t count = 0, of = 0;  ///< so many of the values read
  std::int64_t infinite = 0;       ///< and so many of them
};

/// A file of variables opened for reading. Library calls run under lock_io(). Reading is thread-safe, close()
/// is not.
///
/// Every failure is a DataError that names the file, the variable and what the library says. A file that is
/// another, of another length or written to since this object was made is a failure of every read that
/// follows, for libraries give zeros where a file has become shorter.
class VariableFile {
 public:
  /// @throws DataError  when there is no such regular file.
  /// @param stands_for  the regular file whose change is that of the data; that of `path` unless given.
  explicit VariableFile(std::string path, std::string stands_for = "");
  virtual ~VariableFile() = default;
  VariableFile(const VariableFile&) = delete;
  VariableFile& operator=(const VariableFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<FileVariable>& variables() const { return variables_; }
  /// The variable, or null.
  const FileVariable* find(const std::string& name) const;
  /// The variable that another one names: from the root ("/a/crs"), or in its group or the next one around
  /// it; null where there is none.
  const FileVariable* find_from(const FileVariable& variable, const std::string& name) const;
  /// The variable that says by its attributes how the points of this one's projection lie on the earth, as CF
  /// has it; null where the file has none.
  const FileVariable* grid_mapping(const FileVariable& variable) const;
  /// @throws DataError  when it does not hold numbers, or none that can be read or understood.
  void require_numbers(const FileVariable& variable) const;
  /// Of the variables read so far those with values that are NaN or infinite and not declared as missing.
  std::map<std::string, UndeclaredValues> undeclared() const;

  /// The hyperslab `box` of a numeric variable in its physical units: stored · scale_factor + add_offset,
  /// computed in double unless that is a float anyway (files/unpacking.h). What is _FillValue, missing_value,
  /// outside valid_range (valid_min, valid_max) or not finite becomes NaN. T is float or double; `out` holds
  /// box.extent.count() values, row-major.
  template <typename T>
  void read(const FileVariable& variable, const Box& box, std::span<T> out);
  /// The same hyperslab, read in parts; nothing where its numbers do not stand in the file uncompressed, in
  /// one array.
  std::optional<HyperslabStream> stream(const FileVariable& variable, const Box& box);
  /// The numbers of a hyperslab as they are stored, row-major, into `out`, of box.extent.count() times
  /// size_of(…) bytes.
  StoredNumbers read_as_stored(const FileVariable& variable, const Box& box, ByteBuffer& out);
  /// All of a coordinate variable. @throws DataError also when it has more than 2^24 values.
  std::vector<double> read_all(const FileVariable& variable);

  /// The texts of a coordinate that names things, such as channels; of NetCDF also those that stand by
  /// characters, [texts, length]. @throws DataError  when it holds none, or more than 2^16; of WRF's dates,
  /// more than 2^24 characters.
  std::vector<std::string> read_texts(const FileVariable& variable);

  /// What makes the same file on another rank without its header being read there: its variables, the
  /// numbers or names of coordinates (those along one dimension that bear its name, or count time, and
  /// scalars; WRF's `Times`), and of latitudes and longitudes of points their first, middle and last row;
  /// together at most 2^20 numbers, in the order of variables. They are kept here, too. Not thread-safe.
  FileDescription describe();
  /// What was described is no longer kept, and read from the file where it is wanted again. Not thread-safe.
  void forget_described();
  /// As FileFormat::name, or "Zarr".
  virtual std::string_view format() const = 0;

  /// Elements read so far times their size on disk.
  std::int64_t bytes_read() const { return bytes_read_; }
  /// Bytes that the system was asked for to read them: chunks whole, as they are stored, and gaps between
  /// runs that are read over. Of what only a format's library can read, the elements that were wanted.
  std::int64_t bytes_fetched() const { return bytes_fetched_; }

  /// Releases the file handle until the next read.
  virtual void close() = 0;
  virtual bool is_open() const = 0;

 protected:
  /// A file that another rank described. Nothing is opened before it is read.
  /// @throws DataError  when there is none here, one of another length, or the same file written to since.
  explicit VariableFile(const FileDescription& known);
  /// FileDescription::own.
  virtual std::string own_description() const { return ""; }

  /// The attributes that are looked for.
  static const std::vector<std::string>& attributes();
  /// Whether an attribute beside those is read, where it is no longer than kLongestAttribute: of a variable
  /// that says how a projection's points lie on the earth, as CF has it, each; of one that may be a field
  /// those that say what it is.
  static bool is_read(const FileVariable& variable, const std::string& attribute);
  /// An attribute that is there and empty, or of a type that is not understood.
  static void add_unknown(FileVariable& variable, const std::string& attribute);
  /// Bytes of the file when this object was made.
  std::int64_t opened_bytes() const { return state_.bytes; }
  /// Of the file in the cache of chunks (files/chunk_cache.h).
  std::uint64_t chunk_key() const;
  /// @throws DataError  when the file is no longer what it was when this object was made.
  void check_unchanged() const;
  static constexpr std::size_t kLongestAttribute = 4096;

  /// The numbers of a hyperslab as they are stored, row-major, into out.take(…); the box is not empty and
  /// lies in the variable or is refused.
  /// @param fetched  to which the bytes are added that the system was asked for.
  virtual StoredNumbers read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                                    std::int64_t& fetched) = 0;
  /// Where the numbers of a variable stand as they are; nothing where they do not, or nobody knows.
  virtual std::optional<PlainNumbers> plain_numbers(const FileVariable& variable);

  /// All texts of a variable, each cut to kLongestAttribute; by default none.
  virtual std::vector<std::string> read_stored_texts(const FileVariable& variable);

  std::vector<FileVariable> variables_;

 private:
  friend class HyperslabStream;
  /// A stream has come to the end of its hyperslab. @throws DataError  as read() does.
  void end_stream(const FileVariable& variable, std::int64_t fetched, const UndeclaredValues& undeclared);
  void note_undeclared(const FileVariable& variable, const UndeclaredValues& values);
  /// Null unless they are kept.
  const DescribedPiece* kept(const FileVariable& variable, const Box& box) const;
  /// @param room  for numbers; what was kept is taken from it.
  void keep(const FileVariable& variable, const Box& box, std::int64_t& room);
  void keep_texts(const FileVariable& variable, std::int64_t& room);

  std::string path_;
  std::string stands_for_;
  FileState state_;
  DescribedValues known_values_;
  DescribedTexts known_texts_;
  std::atomic<std::int64_t> bytes_read_ = 0, bytes_fetched_ = 0;
  mutable std::mutex mutex_;  ///< guards undeclared_
  std::map<std::string, UndeclaredValues> undeclared_;
};

/// So deep groups in files may be nested; one farther down is an error, not passed over, whatever is asked
/// for.
inline constexpr int kDeepestGroup = 16;
/// @param group  its name, "a/b/c". @throws DataError
[[noreturn]] void refuse_deep_group(const std::string& path, const std::string& group);

/// Throws unless memory has room for an array of doubles of these extents. @param what  the variable it is
/// of.
void require_memory(const Shape& extents, const std::string& what, const std::string& path);

/// A format of data files. A new one is a VariableFile with both constructors, and a line in
/// variable_file.cpp.
struct FileFormat {
  std::string name;  ///< as people call it
  /// Whether variables name their dimensions.
  bool names_dimensions = false;
  /// Whether a file is one. A file may be of several formats: NetCDF-4 is HDF5.
  bool (*recognises)(const File& file) = nullptr;
  std::unique_ptr<VariableFile> (*open)(const std::string& path, External external) = nullptr;
  std::unique_ptr<VariableFile> (*open_described)(const FileDescription& known, External external) = nullptr;
};
const std::vector<FileFormat>& file_formats();

/// Whether a file has these bytes at that offset.
bool holds_at(const File& file, std::int64_t offset, std::string_view signature);

/// The format of which Format reads the files.
template <typename Format>
FileFormat format_of(bool names_dimensions, bool (*recognises)(const File& file)) {
  return {Format::kFormat, names_dimensions, recognises,
          [](const std::string& path, External external) -> std::unique_ptr<VariableFile> {
            return std::make_unique<Format>(path, external);
          },
          [](const FileDescription& known, External external) -> std::unique_ptr<VariableFile> {
            return std::make_unique<Format>(known, external);
          }};
}

enum class Dimensions : std::uint8_t {
  kByNumber,  ///< what is read goes by the order of dimensions
  kByName,    ///< and by their names
};
/// Opens a Zarr store, or a file in the first format that its content, not its name, is of. @throws DataError
std::unique_ptr<VariableFile> open_variables(const std::string& path, Dimensions dimensions,
                                             External external = External::kRefused);
/// Whether a path is a Zarr store or a file of one of the formats that name dimensions. @throws DataError
bool is_variable_file(const std::string& path);
/// The file that VariableFile::describe() described.
std::unique_ptr<VariableFile> open_described(const FileDescription& known, External external);

/// Opens a file by its name. @throws DataError
using FileOpener = std::function<std::unique_ptr<VariableFile>(const std::string& path)>;
/// open_variables() with these.
FileOpener opener(Dimensions dimensions, External external = External::kRefused);

}  // namespace jigsaw::inline files
