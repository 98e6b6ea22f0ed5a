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
                " and ", convolution.high, rounded ? ", factors rounded" : "",
                deterministic ? "" : ", in any order");
}

bool CudnnAttentionProblem::suits(const HeadRows& q, const HeadRows& k, const AttentionOptions& options) {
  constexpr std::int64_t kUnit = 8, kLargestHead = 128;
  return q.array.dtype() == DType::kBfloat16 && q.head_size() % kUnit == 0 && q.head_size() <= kLargestHead &&
         !options.bias.defined() && !options.mask.defined() && !options.dropout && q.array.count() > 0 &&
         q.tokens() + k.tokens() > 2 && k.array.count() > 0;
}

CudnnAttentionProblem CudnnAttentionProblem::forward(const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                                     const Array& y, double scale) {
  CudnnAttentionProblem problem;
  problem.batches = q.batches();
  problem.heads = q.heads();
  problem.queries = q.tokens();
  problem.keys = k.tokens();
  problem.head_size = q.head_size();
  problem.scale = scale;
  problem.q = Places::of(q);
  problem.k = Places::of(k);
  problem.v = Places::of(v);
  problem.y = Places::of(y);
  problem.lse_batch = q.heads() * q.tokens();
  problem.lse_head = q.tokens();
  return problem;
}

std::string CudnnAttentionProblem::text() const {
  const auto places = [](const Places& p) { return concat(" ", p.batch, "/", p.token); };
  std::string text = concat(backward ? "the gradients of the attention of " : "the attention of ", batches,
                            " × ", heads, " heads of ", head_size, ", ", queries, " queries and ", keys,
                            " keys, scale ", scale, ", elements between batches and tokens", places(q),
                            places(k), places(v), places(y), ", of sums ", lse_batch, "/", lse_head);
  if (backward) text += concat(", of gradients", places(dy), places(dq), places(dk), places(dv));
  if (!deterministic) text += ", in any order";
  return text;
}

}  // namespace jigsaw::inline kernels::cuda
