#pragma once
#include "base/log.h"
#include "comm/communicator.h"
#include "samples/dataset.h"

namespace jigsaw::inline train {

/// Reads the states of data.train and data.valid that stand more than once in the files, each rank a share of
/// them: what differs would end a run where it comes to it. Collective. @throws DataError
void require_equal_repeats(Dataset& data, Communicator& world, Log& log);

}  // namespace jigsaw::inline train
