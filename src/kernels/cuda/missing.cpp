// Families without CUDA kernels: the interface itself says so when one is called.
#include "kernels/front/attention_kernels.h"
#include "kernels/front/channel_statistics_kernels.h"
#include "kernels/front/convolution_kernels.h"
#include "kernels/front/group_statistics_kernels.h"
#include "kernels/front/loss_kernels.h"
#include "kernels/front/pooling_kernels.h"
#include "kernels/front/relative_bias_kernels.h"
#include "kernels/front/resampling_kernels.h"
#include "kernels/front/row_statistics_kernels.h"

namespace jigsaw::inline kernels::cuda {

template <>
const AttentionKernels& kernels() {
  static const AttentionKernels instance;
  return instance;
}

template <>
const ChannelStatisticsKernels& kernels() {
  static const ChannelStatisticsKernels instance;
  return instance;
}

template <>
const ConvolutionKernels& kernels() {
  static const ConvolutionKernels instance;
  return instance;
}

template <>
const LossKernels& kernels() {
  static const LossKernels instance;
  return instance;
}

template <>
const PoolingKernels& kernels() {
  static const PoolingKernels instance;
  return instance;
}

template <>
const ResamplingKernels& kernels() {
  static const ResamplingKernels instance;
  return instance;
}

template <>
const GroupStatisticsKernels& kernels() {
  static const GroupStatisticsKernels instance;
  return instance;
}

template <>
const RelativeBiasKernels& kernels() {
  static const RelativeBiasKernels instance;
  return instance;
}

template <>
const RowStatisticsKernels& kernels() {
  static const RowStatisticsKernels instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
