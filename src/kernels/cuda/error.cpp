#include "kernels/cuda/error.h"

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels::cuda {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) fail(concat("CUDA could not ", what, ": ", cudaGetErrorString(status)));
}

}  // namespace jigsaw::inline kernels::cuda
