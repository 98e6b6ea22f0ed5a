#pragma once
#include "array/array.h"

namespace jigsaw::inline kernels {

/// Number of CUDA devices for this build on this machine; 0 when either has none.
int cuda_device_count();

/// Bytes of memory that the device has which the calling thread uses; 0 where there is none.
std::int64_t cuda_memory_bytes();

/// A context whose arrays live on a CUDA device, with streams of its own.
/// Throws ConfigError when the build has no CUDA kernels or the machine has no such device.
Context make_cuda_context(int device);

}  // namespace jigsaw::inline kernels
