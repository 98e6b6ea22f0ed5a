#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"

namespace jigsaw::inline report {

/// How a run stands, by what its folder says.
struct RunStanding {
  std::string run;  ///< its path
  /// "running": a process holds its lock; "finished"; "stopped", to go on; "failed"; "interrupted": it ended
  /// without a word, killed or with its machine; "model": configuration and checkpoints alone; "unreadable".
  std::string state;
  std::string about;  ///< who runs it, what it failed with, why it was stopped, who ran it last
  /// Of the last line, where there is none of the newest checkpoint; of the whole run, 0: not known.
  std::int64_t step = 0, steps = 0;
  std::optional<double> loss;  ///< of that step
  std::optional<double> age;   ///< seconds since metrics.jsonl, log.txt or a checkpoint was written
  std::string left;            ///< of one that runs, "0:48", as it says itself; "": not known
};

/// Never throws for what a folder holds, or that it is no run's: that is its standing.
RunStanding standing_of(const std::string& run);

/// A row a run, and counts by state.
std::string standings_text(const std::vector<RunStanding>& runs);
/// [{"run": …, "state": …, "step": …, "steps": number or null, "loss", "age_seconds", "left", "about"}, …]
Json standings_json(const std::vector<RunStanding>& runs);

}  // namespace jigsaw::inline report
