// What stands for the CUDA backend in a build without it: every kernel throws missing_kernel().
#include "kernels/front/attention_kernels.h"
#include "kernels/front/blending_kernels.h"
#include "kernels/front/channel_statistics_kernels.h"
#include "kernels/front/contraction_kernels.h"
#include "kernels/front/convolution_kernels.h"
#include "kernels/front/copy_kernels.h"
#include "kernels/front/ensemble_kernels.h"
#include "kernels/front/forecast_scores_kernels.h"
#include "kernels/front/group_statistics_kernels.h"
#include "kernels/front/loss_kernels.h"
#include "kernels/front/normalization_kernels.h"
#include "kernels/front/optimizer_kernels.h"
#include "kernels/front/pointwise_kernels.h"
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
const BlendingKernels& kernels() {
  static const BlendingKernels instance;
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
const EnsembleKernels& kernels() {
  static const EnsembleKernels instance;
  return instance;
}

template <>
const ForecastScoresKernels& kernels() {
  static const ForecastScoresKernels instance;
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

}  // namespace jigsaw::inline kernels::cuda
