#pragma once
#include <cudnn_graph.h>

#include <string>

namespace jigsaw::inline kernels::cuda {

/// What failed, and cuDNN's words for why.
std::string failure_text(cudnnStatus_t status, const std::string& what);
/// Throws Error of that text unless all is well.
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
