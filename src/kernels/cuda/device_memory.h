#pragma once
#include <memory>

#include "array/memory_source.h"

namespace jigsaw::inline kernels::cuda {

/// Memory of a CUDA device as one range of addresses, reserved as large as the device and backed as it is
/// asked for (cuMemCreate): regions lie one behind the other, so that an arena's free blocks join across
/// them.
std::unique_ptr<MemorySource> make_device_memory(int device);

}  // namespace jigsaw::inline kernels::cuda
