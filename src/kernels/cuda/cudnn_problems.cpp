#include "base/text.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/cudnn_convolution.h"

namespace jigsaw::inline kernels::cuda {

CudnnProblem CudnnProblem::forward(const Convolution& convolution, const Array& x, bool bias,
                                   const Array& y) {
  return {Pass::kForward, y.dtype(), y.dtype() != x.dtype(), bias, convolution, x.shape(), y.shape()};
}

CudnnProblem CudnnProblem::backward_data(const Convolution& convolution, const Array& dy, const Array& dx) {
  return {Pass::kData, dx.dtype(), dx.dtype() != dy.dtype(), false, convolution, dx.shape(), dy.shape()};
}

CudnnProblem CudnnProblem::backward_weight(const Convolution& convolution, const Array& dy, const Array& x) {
  return {Pass::kWeight, DType::kFloat32, dy.dtype() == DType::kBfloat16, false, convolution,
          x.shape(),     dy.shape()};
}

std::string CudnnProblem::text() const {
  constexpr const char* kNames[] = {"the convolution", "the data gradient of the convolution",
                                    "the weight gradient of the convolution"};
  return concat(kNames[static_cast<int>(pass)], bias ? " with bias" : "", " of ", name(type), " ", x, " to ",
                y, " by ", convolution.window.extent, ", stride ", convolution.window.stride, ", dilation ",
                convolution.window.dilation, ", groups ", convolution.groups, ", padding ", convolution.low,
                " and ", convolution.high, rounded ? ", factors rounded" : "");
}

std::string CudnnAttentionProblem::text() const {
  const auto places = [](const Places& p) { return concat(" ", p.batch, "/", p.token); };
  std::string text =
      concat(backward ? "the gradients of the attention of " : "the attention of ", batches, " × ", heads,
             " heads of ", head_size, ", ", queries, " queries and ", keys, " keys, in ", name(result),
             ", scale ", scale, ", elements between batches and tokens", places(q), places(k), places(v),
             places(y), ", of sums ", lse_batch, "/", lse_head);
  if (backward) text += concat(", of gradients", places(dy), places(dq), places(dk), places(dv));
  return text;
}

}  // namespace jigsaw::inline kernels::cuda
