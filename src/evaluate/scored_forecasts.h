#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "evaluate/evaluation.h"
#include "evaluate/forecast_scores.h"

namespace jigsaw::inline evaluate {

/// What is scored: forecasts that a model makes, or that files hold.
struct ScoredForecasts {
  Communicator& world;
  const Configuration& configuration;
  Dataset& data;
  const Rank& rank;
  Box piece;                 ///< this rank's, of [samples, rows, columns, targets]
  std::vector<Time> starts;  ///< ascending
  std::int64_t members = 1;
  std::string source;                   ///< what made them
  std::vector<std::string> paths = {};  ///< the files that hold them
  /// The members of all starts and leads. Collective.
  std::function<void(ForecastScores& scores, const std::function<void(double part)>& done)> run;

  bool of_model = true;  ///< whose training says what states are of its kind

  int leads() const { return configuration.validation_rollout(); }
};

/// Scores them, says what is odd, and writes what is asked for. Collective.
void score(const ScoredForecasts& of, const EvaluationOptions& options, Log& log);

}  // namespace jigsaw::inline evaluate
