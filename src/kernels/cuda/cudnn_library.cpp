#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include "kernels/cuda_context.h"

jigsaw::CudnnLibrary jigsaw::cudnn_library() {
  constexpr int kMajor = 1000;
  return {.built = true,
          .built_for = CUDNN_MAJOR,
          .version = static_cast<int>(cudnnGetVersion()),
          .cuda = CUDART_VERSION / kMajor,
          .for_cuda = static_cast<int>(cudnnGetCudartVersion()) / kMajor};
}
