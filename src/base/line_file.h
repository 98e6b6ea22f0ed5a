#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace jigsaw::inline base {

/// A file to which whole lines are appended, each on the disk's side of the process when append() returns. A
/// disk that is full costs lines and leaves none torn; when it has room again, lines are written again.
class LineFile {
 public:
  /// Opened at the first line, made if needed.
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  /// Opens it now. @throws FileError
  void open();
  /// @param line  with its line break. @throws FileError
  void append(std::string_view line);

 private:
  std::string path_;
  std::optional<File> file_;
  std::int64_t size_ = 0;  ///< of all whole lines
};

}  // namespace jigsaw::inline base
