#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace jigsaw::inline base {

/// A file to which whole lines are appended, each on the disk's side of the process when append() returns. A
/// disk that is full costs lines and leaves none torn; when it has room again, lines are written again. A
/// file that somebody removed is made anew with all lines that it had; lines go to one that stands in its
/// place. With its folder it may be moved.
class LineFile {
 public:
  /// Opened at the first line, made if needed.
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  /// Opens it now. @throws FileError
  void open();
  /// @param line  with its line break. @return  whether it had been removed or replaced. @throws FileError
  bool append(std::string_view line);

 private:
  bool follow();

  std::string path_;
  std::optional<File> file_;
  std::int64_t size_ = 0;  ///< of all whole lines
};

/// What is said of a LineFile, behind its name, that had been removed or replaced.
inline constexpr const char* kWrittenAnew =
    " was removed or replaced during the run; it is written on, with the lines that were known";

}  // namespace jigsaw::inline base
