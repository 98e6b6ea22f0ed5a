#pragma once
#include <memory>

#include "array/current_work.h"
#include "array/memory_source.h"

namespace jigsaw::inline kernels::cuda {

/// Memory of a CUDA device as one range of addresses, reserved as large as the device and backed as it is
/// asked for (cuMemCreate): regions lie one behind the other, so that an arena's free blocks join across
/// them.
/// @param work  what the rank works on: when there is no more memory, the error names it.
std::unique_ptr<MemorySource> make_device_memory(int device, std::shared_ptr<const CurrentWork> work);

}  // namespace jigsaw::inline kernels::cuda
