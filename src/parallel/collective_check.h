#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline parallel {

/// Tries every kind of collective, gathers and sums with both urgencies, on small float32 arrays of whole
/// numbers, with uneven and empty pieces, against what each rank knows that the others send. Collective over
/// the group.
///
/// @return  the first that gives something else on this rank, "all_gather along tensor (4 ranks) gives 7 in
///          place of 5 as number 3"; "" where all are right.
std::string wrong_collective(Communicator& group);

/// How fast a kind of collective is along an axis, while all groups of that axis are at it.
struct CollectiveRate {
  Collective kind = Collective::kAllGather;
  std::int64_t bytes = 0;       ///< of the whole array; of an exchange, of a rank's message to the next
  double bytes_per_second = 0;  ///< that a rank sends, by the closed forms of Traffic
};

/// Measures larger and larger arrays of float32 with even pieces, 64 KiB, 2 MiB and 64 MiB: as seconds_of()
/// does, the fastest of several tries of the slowest rank. Collective over the mesh.
///
/// @param axis        of more than one rank.
/// @param most_bytes  of an array; equal on all ranks.
/// @param seconds     by which it is over, except that the smallest arrays are always tried.
std::vector<CollectiveRate> collective_rates(const Rank& rank, int axis, std::int64_t most_bytes,
                                             double seconds);

}  // namespace jigsaw::inline parallel
