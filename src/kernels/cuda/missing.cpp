// Families without CUDA kernels: the interface itself says so when one is called.
#include "kernels/attention_kernels.h"
#include "kernels/channel_statistics_kernels.h"
#include "kernels/convolution_kernels.h"
#include "kernels/loss_kernels.h"
#include "kernels/pooling_kernels.h"
#include "kernels/resampling_kernels.h"

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

}  // namespace jigsaw::cuda
