// Families of few numbers, for which the reference's loops are right.
#include "kernels/group_statistics_kernels.h"
#include "kernels/relative_bias_kernels.h"
#include "kernels/row_statistics_kernels.h"

namespace jigsaw::cpu {

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

}  // namespace jigsaw::cpu
