// Contractions of float32 and bf16 run the plain loops.
#include "kernels/contraction_kernels.h"

namespace jigsaw::cpu {

template <>
const ContractionKernels& kernels() {
  return reference::kernels<ContractionKernels>();
}

}  // namespace jigsaw::cpu
