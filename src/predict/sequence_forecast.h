#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/log.h"
#include "predict/trained_model.h"

namespace jigsaw::inline predict {

/// Forecasts of sequences (SequenceData), one of each sequence of the input.
struct SequenceForecastOptions {
  std::string output;  ///< a file .nc, .h5 or .hdf5 for one file of input, else a folder of such
  bool overwrite = false;
  int steps = 1;  ///< leads of data.lead_steps each
  /// The state that they start from, from 0 on in its sequence; nothing: the first whose inputs are there.
  std::optional<std::int64_t> start = {};
  std::map<std::string, std::string> attributes;  ///< of the files
};

/// Rollouts of the model, whose forecaster was planned for as many leads, in physical units: of each variable
/// one data set [sample, time, space…], with channels [sample, time, space…, channel], float32, a sample for
/// each sequence of the input file in its order and a time for each lead. NetCDF has the coordinate `time`,
/// steps from the state that forecasts start from. What is missing at that state is NaN.
///
/// Rank 0 writes, lead by lead and a piece of a rank at a time, so that neither the leads nor the size of a
/// state is held. Collective: what throws on one rank throws on all.
/// @throws ConfigError  for outputs that cannot be and a start that is none; DataError
void write_sequence_forecasts(TrainedModel& model, const SequenceForecastOptions& options, Log& log);

}  // namespace jigsaw::inline predict
