#pragma once
#include <functional>

#include "comm/communicator.h"

namespace jigsaw {

/// Runs a test's body on every rank. Linked with ranks_thread.cpp: on 1, 2, 3, 4, 5, 8 and 18 ranks, one
/// thread each. Linked with nccl/ranks_nccl.cpp: on 1, 2, 3, 5 and 8, each with a device. Linked with
/// mpi_main.cpp: on all ranks of the mpirun; an exception on one of them ends the job.
void on_ranks(const std::function<void(Communicator&)>& body);

}  // namespace jigsaw
