#pragma once
#include <optional>
#include <string>

namespace jigsaw::inline base {

/// What a file or folder is, as far as its first bytes tell.
struct FileKind {
  std::string name;  ///< with an article: "a GRIB file"
  /// A shell command that makes a NetCDF or HDF5 file of it, with its path in it; "" for files of these
  /// formats and where none is known.
  std::string conversion;
};

/// Nothing when it is unknown or cannot be read. Waits for nothing: of what is no regular file and no folder
/// nothing is read.
std::optional<FileKind> kind_of_file(const std::string& path);

/// The same of what begins with these bytes, in a file of this name.
std::optional<FileKind> kind_of_content(const std::string& begin, const std::string& path);

/// Whether a folder is a Zarr store of format 2 or 3, or a single array of one.
bool is_zarr_store(const std::string& path);

/// A word as a shell takes it for one: in quotes where it needs them.
std::string shell_word(const std::string& text);

}  // namespace jigsaw::inline base
