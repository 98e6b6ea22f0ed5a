#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "array/context.h"

namespace jigsaw::inline kernels::cuda {

/// Throws Error that says what failed and CUDA's word for why.
void check(cudaError_t status, const char* what);

/// "out of memory (cudaErrorMemoryAllocation, 2)".
std::string error_text(cudaError_t status);

/// The stream into which the context's work is put. Asked for again for each piece of work: the context
/// remembers which operation it belongs to.
cudaStream_t stream_of(const Context& context);

/// Whether each launch is waited for, so that an error names it: with JIGSAW_CUDA_SYNC=1 in the environment.
bool launches_wait(const Context& context);
/// To be called after each piece of work that was put into the stream. Where launches are waited for, waits.
/// Throws Error that names the work and the operation if `status`, or the work itself, failed.
void launched(const Context& context, cudaError_t status, const char* work);
/// Throws Error if work in the context's stream has failed, as far as the device knows yet, or if the
/// recording of it has. Does not wait.
void require_no_failure(const Context& context);
/// "; 34 MiB of 80 GiB are free on the GPU: arrays hold …" where less than this part of its memory is, so
/// that a library may have found too little. Else "".
std::string full_device_text(const Context& context, double part = 1.0 / 32);

}  // namespace jigsaw::inline kernels::cuda
