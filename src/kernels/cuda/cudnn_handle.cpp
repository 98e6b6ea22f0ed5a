#include "kernels/cuda/cudnn_handle.h"

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels::cuda {

std::string failure_text(cudnnStatus_t status, const std::string& what) {
  std::array<char, 512> why{};
  cudnnGetLastErrorString(why.data(), why.size());
  return concat("cuDNN could not ", what, ": ", cudnnGetErrorString(status), why[0] == '\0' ? "" : "; ",
                why.data());
}
void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) fail(failure_text(status, what));
}

CudnnHandle::CudnnHandle() {
  check(cudnnCreate(&handle_), "start");
}
CudnnHandle::~CudnnHandle() {
  cudnnDestroy(handle_);
}

}  // namespace jigsaw::inline kernels::cuda
