#pragma once
#include "kernels/cuda_context.h"

namespace jigsaw::inline kernels::cuda {

/// Throws ConfigError unless the program has kernels for the current device, which `device` describes.
void require_code_for(const CudaDevice& device);

}  // namespace jigsaw::inline kernels::cuda
