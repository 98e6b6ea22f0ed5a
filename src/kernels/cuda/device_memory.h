#pragma once
#include <memory>

#include "array/memory_source.h"
#include "kernels/cuda/failures.h"

namespace jigsaw::inline kernels::cuda {

/// Memory of a CUDA device as one range of addresses, reserved as large as the device and backed as it is
/// asked for (cuMemCreate): regions lie one behind the other, so that an arena's free blocks join across
/// them.
/// @param failures             name what the rank works on where there is no more memory, and the device
///                             where it failed.
/// @param for_other_processes  regions of cudaMalloc instead, see make_cuda_context().
///
/// Regions of cudaMalloc, too, where the driver maps no memory (virtual GPUs of a hypervisor).
///
/// JIGSAW_CUDA_MEMORY=apart: each array is an allocation of its own (cudaMalloc), for compute-sanitizer,
/// which sees accesses beyond an array only then.
std::unique_ptr<MemorySource> make_device_memory(int device, std::shared_ptr<const Failures> failures,
                                                 bool for_other_processes = false);

/// Whether the environment has JIGSAW_CUDA_MEMORY=apart.
bool memory_is_apart();

}  // namespace jigsaw::inline kernels::cuda
