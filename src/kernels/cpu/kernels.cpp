// Float32 and bf16 on the CPU run the plain loops.
#include "kernels/contraction_kernels.h"
#include "kernels/copy_kernels.h"
#include "kernels/loss_kernels.h"
#include "kernels/normalization_kernels.h"
#include "kernels/optimizer_kernels.h"
#include "kernels/pointwise_kernels.h"

namespace jigsaw::cpu {

template <>
const ContractionKernels& kernels() {
  return reference::kernels<ContractionKernels>();
}

template <>
const CopyKernels& kernels() {
  return reference::kernels<CopyKernels>();
}

template <>
const LossKernels& kernels() {
  return reference::kernels<LossKernels>();
}

template <>
const NormalizationKernels& kernels() {
  return reference::kernels<NormalizationKernels>();
}

template <>
const OptimizerKernels& kernels() {
  return reference::kernels<OptimizerKernels>();
}

template <>
const PointwiseKernels& kernels() {
  return reference::kernels<PointwiseKernels>();
}

}  // namespace jigsaw::cpu
