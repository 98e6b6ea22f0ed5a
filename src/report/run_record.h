#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "report/examples.h"

namespace jigsaw::inline report {

/// What a run wrote, whether it is over or not.
struct RunRecord {
  std::string path, name;
  Json config = nullptr, summary = nullptr, placement = nullptr;
  /// The lines "train" of metrics.jsonl, a number a step; NaN where a line has none.
  std::vector<double> step, loss, learning_rate, norm, step_seconds, data_wait, communication, rate,
      peak_share;
  std::vector<Json> valid;         ///< the lines "valid"
  std::int64_t foreign_lines = 0;  ///< of metrics.jsonl: whole, and no JSON objects
  std::string first_time, last_time;
  std::string error;     ///< that log.txt ends with; "" for none
  std::string stopped;   ///< what it says in the end of a run that was stopped, "stopped early at step 7 …"
  std::string progress;  ///< its last line on a step that was made, "step 20/600  loss 0.5 …  0:48 left"
  std::optional<Examples> examples;
  Json scores = nullptr;    ///< as evaluate writes them
  std::string scores_path;  ///< where they stand

  bool over() const { return summary.is_object(); }
  /// Of the last start of a run that is over, whose seconds and bytes alone the summary holds.
  std::int64_t first_step() const;
};

/// Reads a run directory; scores.json there are those of evaluate. A torn or foreign line of metrics.jsonl is
/// passed over.
/// @throws ConfigError  when the folder is no run's. @throws DataError  when a file in it is malformed.
RunRecord read_run(const std::string& path);

/// The same without examples and scores.
RunRecord read_course(const std::string& path);

/// Does what takes a file of a run for what runs write. @throws DataError  that names the file when it is
/// not.
void naming_malformed(const std::string& path, const std::function<void()>& work);

/// The number at `key` of an object; `otherwise` where there is none.
double number_at(const Json& object, const std::string& key,
                 double otherwise = std::numeric_limits<double>::quiet_NaN());

/// The numbers of a list; NaN for what is none.
std::vector<double> numbers_of(const Json& list);

/// Whether it is a file; nothing else is opened, which might be waited for. @throws DataError
bool is_there(const std::string& path);
/// A file of JSON; null where it is not there. @throws DataError
Json read_json(const std::string& path);

}  // namespace jigsaw::inline report
