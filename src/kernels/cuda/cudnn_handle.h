#pragma once
#include <cudnn_graph.h>

namespace jigsaw::inline kernels::cuda {

/// Throws Error that says what failed and cuDNN's words for why.
void check(cudnnStatus_t status, const char* what);

/// The handle of the library for one rank, on the GPU that is current when it is made. Lies in the state of
/// the rank's context.
class CudnnHandle {
 public:
  CudnnHandle();
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace jigsaw::inline kernels::cuda
