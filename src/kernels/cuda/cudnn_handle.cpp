#include "kernels/cuda/cudnn_handle.h"

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels::cuda {

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> why{};
  cudnnGetLastErrorString(why.data(), why.size());
  fail(concat("cuDNN could not ", what, ": ", cudnnGetErrorString(status), why[0] == '\0' ? "" : "; ",
              why.data()));
}

CudnnHandle::CudnnHandle() {
  check(cudnnCreate(&handle_), "start");
}
CudnnHandle::~CudnnHandle() {
  cudnnDestroy(handle_);
}

}  // namespace jigsaw::inline kernels::cuda
