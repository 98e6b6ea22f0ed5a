#pragma once
#include <vector>

#include "predict/output_file.h"
#include "samples/batch.h"
#include "task/opened_run.h"

namespace jigsaw::inline predict {

/// What a model is given and what its loss compares with, as a NetCDF-4 file for other programs:
///
///   input(sample, y, x, input_channel)           Batch::input; of volumes (sample, z, y, x, …)
///
///   target(lead, sample, y, x, target_channel)   Batch::targets, NaN where a point does not count
///
///   forcing(lead_behind, sample, y, x, input_channel)   Batch::forcings, of leads from the second on, if any
///
///   time(sample)                                 time 0, of forecasts of fields
///
/// Input and target have the names of their channels in the attribute `channels`, a list in JSON, and how
/// much later than time 0 each is in `offset_seconds` (of sequences `offset_steps`). The file has the
/// statistics that normalised them, in JSON, and how the target is predicted.
///
/// @param parts  of one batch, whole, whose samples follow one another. @param host  where they stand.
/// @throws DataError
void write_batch(OpenedRun& run, const std::vector<Batch>& parts, const Context& host, OutputFile& output);

}  // namespace jigsaw::inline predict
