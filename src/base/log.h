#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "base/line_file.h"

namespace jigsaw::inline base {

/// Writes one line to stderr, line breaks in it made blanks, in a single write(): what launchers, libraries
/// and other ranks write to the same place stands before or after it, never within.
void print_to_stderr(std::string line);

/// What a run says to people: lines on stdout (warnings on stderr), copied with
/// the time of day to log.txt once a run directory is known. Only the rank that
/// speaks writes; on other ranks every call does nothing. A full disk costs lines of log.txt, is warned of
/// once, and when it has room again the file goes on. Thread-safe.
class Log {
 public:
  explicit Log(bool speaks) : speaks_(speaks) {}

  /// From now on lines are also appended to this file. Throws Error when it cannot be opened.
  void open(const std::string& path);

  void info(const std::string& line);
  void warn(const std::string& line);
  /// Of what ends the run.
  void error(const std::string& line);
  /// Writes to the file only: what another channel already showed.
  void record(const std::string& line);

  bool speaks() const { return speaks_; }

 private:
  void write_file(const std::string& line);

  bool speaks_;
  std::mutex mutex_;
  std::optional<LineFile> file_;
  bool warned_ = false;
};

}  // namespace jigsaw::inline base
