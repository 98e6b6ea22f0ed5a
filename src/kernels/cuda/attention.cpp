#include "kernels/attention_kernels.h"

namespace jigsaw::cuda {

/// Attention has no CUDA kernels: the interface itself says so when one is called.
template <>
const AttentionKernels& kernels() {
  static const AttentionKernels instance;
  return instance;
}

}  // namespace jigsaw::cuda
