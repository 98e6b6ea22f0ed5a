#pragma once
#include "base/log.h"
#include "task/opened_run.h"

namespace jigsaw::inline train {

/// Says what a run is about to do, and warns of what is hardly meant: data with its periods, model,
/// parameters, mesh with each axis, bytes per rank, steps and epochs. Rank 0 speaks; each rank plans once
/// more for its own bytes. Collective: an error of one is thrown by all.
///
/// @param ranks  of the job, which may be one that is only planned for: then the bytes are those of its first
///               and its last rank, which hold the most and the least that a cut gives.
void tell_opening(Log& log, OpenedRun& run, int ranks);

/// Says which part of the targets of the first batch is missing, over all ranks, and warns of targets of
/// which all is. Collective.
void tell_missing(Log& log, const Batch& batch, OpenedRun& run);

}  // namespace jigsaw::inline train
