#pragma once
#include "array/array.h"

namespace jigsaw::inline array {

/// Whoever includes this header can touch the memory of arrays: Array::raw(), data() and span() do not
/// compile without it. It is for backends of kernels (src/kernels/<backend>/), for transports between
/// devices (src/comm/nccl/, src/comm/mpi/) and for this room, whose HostView and transfers are everybody's
/// way to elements; scripts/check_includes.sh refuses it elsewhere.
struct RawMemory {};

}  // namespace jigsaw::inline array
