#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "base/line_file.h"
#include "base/terminal.h"

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
  /// @param terminal  where the lines are read; by default they are plain.
  explicit Log(bool speaks, const Terminal& terminal = {}) : speaks_(speaks), terminal_(terminal) {}

  /// From now on lines are also appended to this file. @throws ConfigError  when it cannot be opened;
  /// DiskError.
  void open(const std::string& path);

  /// May hold colours, which the file does not get.
  void info(const std::string& line);
  void warn(const std::string& line);
  /// Of what ends the run.
  void error(const std::string& line);
  /// Writes to the file only: what another channel already showed.
  void record(const std::string& line);

  /// Shows a line until the next one of any kind, where lines can be rewritten; elsewhere does nothing.
  void status(const std::string& line);
  /// Ends the line of status(): it stays as it is, or goes.
  void end_status(bool stays);

  bool speaks() const { return speaks_; }
  const Terminal& terminal() const { return terminal_; }

 private:
  void clear_status();
  void write_file(const std::string& line);

  bool speaks_;
  Terminal terminal_;
  bool status_open_ = false;
  std::mutex mutex_;
  std::optional<LineFile> file_;
  std::string path_;  ///< of the file
  bool warned_ = false, renewed_ = false;
};

}  // namespace jigsaw::inline base
