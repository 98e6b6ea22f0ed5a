#pragma once
#include <string>

#include "base/log.h"
#include "predict/trained_model.h"

namespace jigsaw::inline evaluate {

/// How forecasts of sequences (SequenceData) are scored.
struct SequenceEvaluationOptions {
  std::string json, netcdf;  ///< files for the scores; "": none
  bool overwrite = false;
  std::string title;
};

/// Scores of all windows of data.valid by lead and variable, in physical units: √ of the mean over windows of
/// the mean square over points (RMSE), so that of persistence, means of |error| (MAE) and of the error
/// (bias); and VRMSE as The Well has it (arXiv:2412.00568): the mean over windows of √(mean square of the
/// error over points / variance of the truth over points, of that state). Windows whose truth does not vary
/// in space do not count for VRMSE. By bands of wave numbers (BandSpectra) means over windows without missing
/// values of the mean square of the error, and of that over the mean square of the truth there. Points
/// without truth, or without a state at time 0, do not count. As a table, JSON and NetCDF. Collective: what
/// throws on one rank throws on all. @throws ConfigError  without windows
void evaluate_sequences(TrainedModel& model, const SequenceEvaluationOptions& options, Log& log);

}  // namespace jigsaw::inline evaluate
