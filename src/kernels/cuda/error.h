#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "array/context.h"

namespace jigsaw::inline kernels::cuda {

/// Throws Error that says what failed and CUDA's word for why.
void check(cudaError_t status, const char* what);

/// The stream into which the context's work is put. Asked for again for each piece of work: the context
/// remembers which operation it belongs to.
cudaStream_t stream_of(const Context& context);

/// Whether each launch is waited for, so that an error names it: with JIGSAW_CUDA_SYNC=1 in the environment.
bool launches_wait(const Context& context);
/// After each piece of work that was put into the stream: waits for it where launches do. Throws Error that
/// names it and the operation unless `status` and its end are good.
void launched(const Context& context, cudaError_t status, const char* work);
/// A library's call has failed: throws Error where it met what work before it had done. Libraries have CUDA
/// runtimes of their own, whose errors this program's does not know: the device is asked.
void library_failed(const Context& context, const std::string& work);

}  // namespace jigsaw::inline kernels::cuda
