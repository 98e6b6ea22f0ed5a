#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "predict/trained_model.h"

namespace jigsaw::inline predict {

/// Forecasts of sequences (SequenceData), one of each sequence of the input.
struct SequenceForecastOptions {
  std::string output;  ///< a file .nc, .h5 or .hdf5 for one file of input, else a folder of such
  bool overwrite = false;
  int steps = 1;  ///< leads of data.lead_steps each
  int every = 1;  ///< of these leads those are written that are multiples of it
  /// The state that they start from, from 0 on in its sequence; nothing: the first whose inputs are there.
  std::optional<std::int64_t> start = {};
  std::vector<std::string> variables;             ///< empty: all that the model predicts
  std::vector<double> levels;                     ///< channels of those that have channels; empty: all
  std::map<std::string, std::string> attributes;  ///< of the files
  bool skip_existing = false;                     ///< inputs whose outputs are there are left alone
  const std::atomic<int>* stop = nullptr;  ///< not 0, on any rank, to end behind the lead in work; or null
};

/// Rollouts of the model, whose forecaster was planned for as many leads, in physical units: of each variable
/// one data set [sample, time, space…], with channels [sample, time, space…, channel], float32, or float64
/// where a channel needs_double_precision(), a sample for each sequence of the input file in its order and a
/// time for each lead that is written; where channels have numbers, those that are there are its attribute
/// "channels". NetCDF has the coordinate `time`, steps from the state that forecasts start from. What is
/// missing at that state is NaN.
///
/// Rank 0 writes, lead by lead and a piece of a rank at a time, so that neither the leads nor the size of a
/// state is held. Collective: what throws on one rank throws on all.
/// @return  whether it was asked to stop early: what was in work is then not there, files before it are
/// whole.
/// @throws ConfigError  for outputs that cannot be, a start, variables and channels that are none, and steps
/// of which none would be written; DataError
bool write_sequence_forecasts(TrainedModel& model, const SequenceForecastOptions& options, Log& log);

}  // namespace jigsaw::inline predict
