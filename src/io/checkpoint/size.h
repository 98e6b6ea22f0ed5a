#pragma once
#include <cstdint>
#include <vector>

#include "checkpoint/shard.h"
#include "comm/communicator.h"

namespace jigsaw::inline checkpoint {

/// Bytes that a checkpoint of these pieces takes on the disk: numbers, what shards and views say of them, and
/// the manifest; of small models most of it is not numbers. Somewhat more than it comes to. Collective.
/// @param own  pieces of this rank, whose values do not count.
std::int64_t checkpoint_bytes(const std::vector<CheckpointPiece>& own, Communicator& communicator);

}  // namespace jigsaw::inline checkpoint
