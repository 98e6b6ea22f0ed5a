// Families of few numbers, or of float64, for which the reference's loops are right.
#include "kernels/front/blending_kernels.h"
#include "kernels/front/group_statistics_kernels.h"
#include "kernels/front/relative_bias_kernels.h"
#include "kernels/front/row_statistics_kernels.h"

namespace jigsaw::inline kernels::cpu {

template <>
const BlendingKernels& kernels() {
  return reference::kernels<BlendingKernels>();
}

template <>
const GroupStatisticsKernels& kernels() {
  return reference::kernels<GroupStatisticsKernels>();
}

template <>
const RelativeBiasKernels& kernels() {
  return reference::kernels<RelativeBiasKernels>();
}

template <>
const RowStatisticsKernels& kernels() {
  return reference::kernels<RowStatisticsKernels>();
}

}  // namespace jigsaw::inline kernels::cpu
