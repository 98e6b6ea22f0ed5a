// In front of an MPI that knows no GPUs: messages from and to the memory of simulated devices, as a
// CUDA-aware MPI carries them. Linked with a test, its functions come before those of the library.
#include "support/cuda_aware_mpi.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>

#include "support/simulated_device/simulated_device.h"

namespace jigsaw::testing {

namespace {

std::atomic<std::int64_t> messages = 0, receives = 0;

/// Where this process sees it.
void* seen(const void* memory) {
  const auto device = SimulatedDevice::holding(memory);
  if (device == nullptr) return const_cast<void*>(memory);
  ++messages;
  return device->seen_by_kernels(static_cast<std::byte*>(const_cast<void*>(memory)));
}

}  // namespace

std::int64_t messages_of_devices() {
  return messages;
}

std::int64_t receives_posted() {
  return receives;
}

}  // namespace jigsaw::testing

extern "C" {

int MPIX_Query_cuda_support() {
  return 1;
}
int MPI_Isend(const void* memory, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return PMPI_Isend(jigsaw::testing::seen(memory), count, type, to, tag, comm, request);
}
int MPI_Irecv(void* memory, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  ++jigsaw::testing::receives;
  return PMPI_Irecv(jigsaw::testing::seen(memory), count, type, from, tag, comm, request);
}

}  // extern "C"
