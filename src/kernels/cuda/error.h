#pragma once
#include <cuda_runtime_api.h>

#include "array/context.h"

namespace jigsaw::inline kernels::cuda {

/// Throws Error that says what failed and CUDA's word for why.
void check(cudaError_t status, const char* what);

/// The stream into which the context's work is put.
cudaStream_t stream_of(const Context& context);

}  // namespace jigsaw::inline kernels::cuda
