#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/line_file.h"
#include "base/log.h"
#include "config/json.h"

namespace jigsaw::inline train {

/// metrics.jsonl: one compact JSON object a line, each with an integer "step", on the disk's side of the
/// process line by line. Floating point numbers carry all their digits; what is not finite becomes null.
/// Only the rank that speaks writes; on other ranks every call does nothing. A disk that is full costs
/// lines, never the run: it warns once, and no line is ever left torn.
class MetricsLog {
 public:
  /// @param clock  as of a LineFile
  MetricsLog(std::string path, Log& log, std::function<double()> clock = monotonic_seconds);

  /// Before the first write(): keeps the whole lines whose step is at most `step` and drops the others, among
  /// them a torn last line. A run that starts anew resumes at 0.
  void resume_at(std::int64_t step);
  void write(const Json& line);
  /// Before resume_at(), of a run that leaves a history: moves the lines into the new file
  /// "metrics.old-1.jsonl" (-2, …), or copies them where some of them stay, where the last of them is of step
  /// `least` or later. That file, or "".
  /// @throws ConfigError  naming `output`, DiskError: resume_at() would remove them.
  std::string set_aside(std::int64_t least, bool some_stay);
  /// The last line of a kind ("train", "valid") among those that resume_at() kept; null: none. On the rank
  /// that speaks.
  const Json& last(const std::string& kind) const;
  /// The last step of a validation among the lines that resume_at() kept; 0: none. On the rank that speaks.
  std::int64_t validated() const { return validated_; }

 private:
  void keep_lines_until(std::int64_t step);
  void warn_once(const std::string& reason);

  std::string path_;
  Log* log_;
  std::function<double()> clock_;
  std::optional<LineFile> file_;
  std::map<std::string, Json> last_;
  std::int64_t validated_ = 0;
  bool warned_ = false, renewed_ = false;
};

}  // namespace jigsaw::inline train
