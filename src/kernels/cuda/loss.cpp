#include "kernels/loss_kernels.h"

namespace jigsaw::cuda {

/// Losses have no CUDA kernels: the interface itself says so when one is called.
template <>
const LossKernels& kernels() {
  static const LossKernels instance;
  return instance;
}

}  // namespace jigsaw::cuda
