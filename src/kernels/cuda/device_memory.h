#pragma once
#include <memory>

#include "array/current_work.h"
#include "array/memory_source.h"

namespace jigsaw::inline kernels::cuda {

/// Memory of a CUDA device as one range of addresses, reserved as large as the device and backed as it is
/// asked for (cuMemCreate): regions lie one behind the other, so that an arena's free blocks join across
/// them.
/// @param work  what the rank works on: when there is no more memory, the error names it.
///
/// JIGSAW_CUDA_MEMORY=apart: each array is an allocation of its own (cudaMalloc), for compute-sanitizer,
/// which sees only then what goes beyond one.
std::unique_ptr<MemorySource> make_device_memory(int device, std::shared_ptr<const CurrentWork> work);

/// Whether the environment says so.
bool memory_is_apart();

}  // namespace jigsaw::inline kernels::cuda
