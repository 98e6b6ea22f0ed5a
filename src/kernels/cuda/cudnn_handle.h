#pragma once
#include <cudnn_graph.h>

#include <string>

#include "kernels/cuda/library.h"

namespace jigsaw::inline kernels::cuda {

/// The name of a status, and cuDNN's words for why.
std::string words_of(cudnnStatus_t status);
/// Whether words name a status of an installation that is not whole: parts of cuDNN, or what they need, are
/// missing or of other versions.
bool of_installation(const std::string& words);
/// What failed and why, with what to install where that is why.
LibraryError failure(const std::string& what, const std::string& words);
/// Throws it unless all is well.
void check(cudnnStatus_t status, const char* what);

/// Of a problem that cuDNN has no plan for: throws LibraryError with a remedy where that is for want of a
/// library, and not of an engine. cuDNN itself does without the engines of a part that it cannot load, and
/// says nothing.
/// @param what  cannot be done.
/// @param said  words of cuDNN that are of_installation(); "" where it has said none.
void require_whole_installation(const std::string& what, const std::string& said);

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
