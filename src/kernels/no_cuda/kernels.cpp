// What stands for the CUDA backend in a build without it: every kernel throws missing_kernel().
#include "kernels/attention_kernels.h"
#include "kernels/channel_statistics_kernels.h"
#include "kernels/contraction_kernels.h"
#include "kernels/convolution_kernels.h"
#include "kernels/copy_kernels.h"
#include "kernels/group_statistics_kernels.h"
#include "kernels/loss_kernels.h"
#include "kernels/normalization_kernels.h"
#include "kernels/optimizer_kernels.h"
#include "kernels/pointwise_kernels.h"
#include "kernels/pooling_kernels.h"
#include "kernels/relative_bias_kernels.h"
#include "kernels/resampling_kernels.h"
#include "kernels/row_statistics_kernels.h"

namespace jigsaw::cuda {

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
const ContractionKernels& kernels() {
  static const ContractionKernels instance;
  return instance;
}

template <>
const ConvolutionKernels& kernels() {
  static const ConvolutionKernels instance;
  return instance;
}

template <>
const CopyKernels& kernels() {
  static const CopyKernels instance;
  return instance;
}

template <>
const LossKernels& kernels() {
  static const LossKernels instance;
  return instance;
}

template <>
const NormalizationKernels& kernels() {
  static const NormalizationKernels instance;
  return instance;
}

template <>
const OptimizerKernels& kernels() {
  static const OptimizerKernels instance;
  return instance;
}

template <>
const PointwiseKernels& kernels() {
  static const PointwiseKernels instance;
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

}  // namespace jigsaw::cuda
