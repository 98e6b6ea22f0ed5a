#pragma once
#include <functional>

#include "nccl/nccl_communicator.h"

namespace jigsaw {

/// Ranks that are threads, each with a device of the fake CUDA runtime to itself, and NCCL between them.
void run_nccl_ranks(int ranks, const NcclOptions& options, const std::function<void(Communicator&)>& body);

}  // namespace jigsaw
