#pragma once
#include "array/array.h"

namespace jigsaw {

/// Number of CUDA devices for this build on this machine; 0 when either has none.
int cuda_device_count();

/// A context whose arrays live on a CUDA device, with a stream of its own.
/// Throws ConfigError when the build has no CUDA kernels or the machine has no such device.
Context make_cuda_context(int device);

/// Copies of an array on the other side; complete when they return.
/// @param cuda  the context of the array on the device.
Array to_device(const Context& cuda, const Array& host, Purpose purpose = Purpose::kActivations);
Array to_host(const Context& host, const Context& cuda, const Array& array,
              Purpose purpose = Purpose::kActivations);

}  // namespace jigsaw
