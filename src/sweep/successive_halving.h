#pragma once
#include <optional>

#include "sweep/run_list.h"

namespace jigsaw::inline sweep {

/// One round of successive halving.
struct HalvingRound {
  std::int64_t runs = 0;   ///< that take part
  std::int64_t steps = 0;  ///< train.steps at its end
};

/// The rounds for so many runs: steps grow by the factor up to `last_steps`, runs shrink by it down to one.
/// @param last_steps  train.steps of the configuration.
std::vector<HalvingRound> halving_rounds(const HalvingOptions& options, std::int64_t runs,
                                         std::int64_t last_steps);

/// What task K of a sweep by successive halving does: tasks 0 to n₀−1 are the first round, the next n₁ the
/// second, …
struct HalvingTask {
  std::size_t round = 0;
  std::size_t place = 0;  ///< in the round, the best of the round before first
};
std::optional<HalvingTask> halving_task(const std::vector<HalvingRound>& rounds, std::int64_t index);

/// The runs that take part in a round: all in the first, then the best of the round before, by the metric
/// after its last step. A run that failed, or whose metric is no number, comes last.
/// @throws NotYet  while runs of the round before have not ended.
std::vector<SweepRun> halving_participants(const SearchSpace& space, const RunList& list,
                                           const std::vector<HalvingRound>& rounds, std::size_t round);

/// How a run stands at the end of a round.
struct RoundEnd {
  bool there = false;           ///< it came there, ended itself before, or failed
  std::optional<double> score;  ///< where that is finite
};
RoundEnd round_end(const std::filesystem::path& folder, const std::string& metric, const HalvingRound& round);

/// A task must wait for others of its sweep.
class NotYet : public Error {
 public:
  explicit NotYet(const std::string& message) : Error(ExitCode::kStopped, message) {}
};

}  // namespace jigsaw::inline sweep
