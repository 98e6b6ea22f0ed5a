#include "kernels/cuda/error.h"

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels::cuda {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) fail(concat("CUDA could not ", what, ": ", cudaGetErrorString(status)));
}

std::string error_text(cudaError_t status) {
  return concat(cudaGetErrorString(status), " (", cudaGetErrorName(status), ", ", static_cast<int>(status),
                ")");
}

}  // namespace jigsaw::inline kernels::cuda
