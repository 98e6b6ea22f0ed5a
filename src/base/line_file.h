#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"

namespace jigsaw::inline base {

/// A file to which whole lines are appended, each on the disk's side of the process when append() returns. A
/// disk that is full costs lines and leaves none torn; when it has room again, lines are written again. A
/// file that somebody removed is made anew with all lines that it had, but not within seconds, and not where
/// its folder goes, too: whoever removes a folder with all that is in it is not to find it filled again.
/// Lines go to a file that stands in its place. With its folder it may be moved.
class LineFile {
 public:
  /// Opened at the first line, made if needed.
  /// @param clock  seconds since some moment.
  explicit LineFile(std::string path, std::function<double()> clock = monotonic_seconds)
      : path_(std::move(path)), clock_(std::move(clock)) {}
  /// A file that is missing is made anew, if it can be.
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  static constexpr double kSecondsUntilAnew = 2;

  /// Opens it now. @throws FileError
  void open();
  /// @param line  with its line break. @return  whether it had been removed or replaced. @throws FileError
  bool append(std::string_view line);

 private:
  bool follow();
  bool make_anew();

  std::string path_;
  std::function<double()> clock_;
  std::optional<double> missing_since_;
  std::optional<File> file_;
  std::int64_t size_ = 0;  ///< of all whole lines
};

/// What is said of a LineFile, behind its name, that had been removed or replaced.
inline constexpr const char* kWrittenAnew =
    " was removed or replaced during the run; it is written on, with the lines that were known";

}  // namespace jigsaw::inline base
