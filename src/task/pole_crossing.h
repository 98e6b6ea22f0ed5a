#pragma once
#include "parallel/index_map.h"
#include "samples/channels.h"
#include "samples/statistics.h"

namespace jigsaw::inline task {

/// What crossing a pole does to a model's inputs, normalised as they are: a component of a vector has the
/// other sign there in its own units, so that (x − mean) / deviation becomes −x − 2 · mean / deviation. Empty
/// where no channel is one.
PoleCrossing pole_crossing(const std::vector<Channel>& inputs, const Statistics& statistics);

}  // namespace jigsaw::inline task
