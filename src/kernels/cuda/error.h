#pragma once
#include <cuda_runtime_api.h>

#include <functional>
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
/// A library's call has failed. Libraries have CUDA runtimes of their own, whose errors this program's does
/// not know: where the device says that it has failed, Error tells of that, or else what `check` throws, of a
/// device that is full with what holds its memory.
/// @param work  names it.
void library_failed(const Context& context, const std::string& work, const std::function<void()>& check);
/// "; 34 MiB of 80 GiB are free: arrays hold …" where libraries may find too little memory on the device:
/// less than a 32nd of it. Else "".
std::string full_device_text(const Context& context);

}  // namespace jigsaw::inline kernels::cuda
