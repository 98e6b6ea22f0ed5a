#include "kernels/convolution_kernels.h"

namespace jigsaw::cpu {

template <>
const ConvolutionKernels& kernels() {
  return reference::kernels<ConvolutionKernels>();
}

}  // namespace jigsaw::cpu
