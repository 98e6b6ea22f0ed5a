#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"

namespace jigsaw::inline comm {

/// Makes the steps of a loop, as of a ring of thousands of ranks: work(0), work(1), … On a rank that only
/// records shapes (recorded_transfers()) steps that are like some before are counted once more in place of
/// being made: the work of their kernels, what they send, and for the observer each transfer that they start
/// or wait for, in their order. As much memory is taken at most as if all were made.
/// @param group  of which, or of whose relatives, the steps are.
/// @param kinds  of each step: where two are equal the steps have equal extents, what is under way behind
///               them, too; they do the same work, and start and wait for the same transfers.
void for_steps(Communicator& group, const std::vector<std::vector<std::int64_t>>& kinds,
               const std::function<void(std::size_t)>& work);

}  // namespace jigsaw::inline comm
