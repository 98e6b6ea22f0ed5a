#pragma once
#include <string>
#include <vector>

#include "config/json.h"
#include "evaluate/paired_difference.h"

namespace jigsaw::inline evaluate {

/// One score of two systems over the forecasts that both have.
struct ComparedScore {
  std::string variable, region, score, units;
  double lead = 0;               ///< in the unit of the files
  double first = 0, second = 0;  ///< over the common forecasts; of rmse the roots of mean squares
  PairedDifference difference;   ///< of these; of rmse that of the squares, parted by the sum of both
  std::int64_t forecasts = 0;    ///< that have a number in both
};

/// Two files of scores by start (StartScoreFile), of the same variables, regions and leads as far as both
/// have them.
struct ScoreComparison {
  std::vector<std::string> paths;  ///< of both
  std::string lead_units;
  std::int64_t starts = 0;  ///< that both have
  std::string first_start, last_start;
  std::vector<ComparedScore> scores;  ///< by variable, score, region and lead
};

/// @param scores  names of those that are compared; none: rmse, and of ensembles crps.
/// @throws DataError  for files that are none, or have no start in common; ConfigError  for a score that they
/// do not have.
ScoreComparison compare_scores(const std::string& first, const std::string& second,
                               const std::vector<std::string>& scores);
/// For people: up to 24 leads. @param region  that is shown; "": all of them
std::vector<std::string> table_of(const ScoreComparison& comparison, const std::string& region);
Json json_of(const ScoreComparison& comparison);

}  // namespace jigsaw::inline evaluate
