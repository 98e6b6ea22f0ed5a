#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "predict/trained_model.h"

namespace jigsaw::inline predict {

/// Which forecasts are written, and where.
struct ForecastOptions {
  std::string output;
  bool overwrite = false;
  int steps = 1;
  std::vector<std::string> starts;                ///< dates; empty: all of the period
  std::string period;                             ///< "train", or else valid
  std::vector<std::string> variables;             ///< empty: all that the model predicts
  std::vector<double> levels;                     ///< of those that have levels; empty: all
  bool split_levels = false;                      ///< as ForecastContents has it
  std::map<std::string, std::string> attributes;  ///< of the file
};

/// Rollouts of the model, whose forecaster was planned for options.steps leads, written as ForecastFile does.
///
/// One rank writes, on a thread of its own, while the next step runs; the others' pieces come to it one at a
/// time, so that no rank holds a whole field. Collective: what throws on one rank throws on all.
///
/// @throws ConfigError  for dates, variables and levels that are none, and an output that exists; DataError
void write_forecasts(TrainedModel& model, const ForecastOptions& options, Log& log);

}  // namespace jigsaw::inline predict
