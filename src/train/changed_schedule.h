#pragma once
#include <cstdint>
#include <string>

#include "task/configuration.h"

namespace jigsaw::inline train {

/// A sentence where the learning rate of a run that goes on jumps, for its schedule is another one than
/// before: with cosine and poly that of any other number of steps. "" where the next step has the rate that
/// it would have had.
/// @param extra  of the checkpoint that it goes on from.
/// @param step   that is done. @param steps  of the run, now.
std::string changed_schedule(const Json& extra, const Configuration& now, std::int64_t step,
                             std::int64_t steps);

}  // namespace jigsaw::inline train
