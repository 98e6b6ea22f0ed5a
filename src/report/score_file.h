#pragma once
#include <string>

#include "config/json.h"

namespace jigsaw::inline report {

/// What evaluate's scores are of, which decides how they are laid out.
enum class ScoreKind {
  kFields,     ///< "lead_hours", "scores" by variable and region, …
  kSequences,  ///< "lead_steps", "variables"
  kImages      ///< "images", "scores" by target, measure and label
};
ScoreKind kind_of_scores(const Json& scores);

/// evaluate's JSON, or its NetCDF as the same JSON. @throws DataError
Json read_scores(const std::string& path);

/// What the scores are of, as far as they say it, for captions: " Scored: 42 forecasts of 2021-02-17 to
/// 2021-02-28, weights of step 233 of runs/first."; or "".
std::string what_scored(const Json& scores);

}  // namespace jigsaw::inline report
