#include "kernels/resampling_kernels.h"

namespace jigsaw::cpu {

template <>
const ResamplingKernels& kernels() {
  return reference::kernels<ResamplingKernels>();
}

}  // namespace jigsaw::cpu
