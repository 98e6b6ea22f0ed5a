#include "kernels/pooling_kernels.h"

namespace jigsaw::cpu {

template <>
const PoolingKernels& kernels() {
  return reference::kernels<PoolingKernels>();
}

}  // namespace jigsaw::cpu
