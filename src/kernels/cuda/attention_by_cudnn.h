#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda_workspace.h"

namespace jigsaw::inline kernels::cuda {

/// Attention of bf16 heads of a multiple of 8 numbers, 128 at most, without bias, mask and dropout, by cuDNN.
/// Backward is solved in parts of batches, heads and queries one after the other, so that the workspace, a
/// bf16 number for each query and key of each head if the context is deterministic(), an f32 number for each
/// of dq if not, stays bounded; dq is rounded to bf16.
/// @return  whether cuDNN did it
bool attention_forward_by_cudnn(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                const AttentionOptions& options, AttentionResult& result);
bool attention_backward_by_cudnn(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                 const Array& y, const Array& dy, const Array& log_sum_exp,
                                 const AttentionOptions& options, HeadRows& dq, HeadRows& dk, HeadRows& dv);

/// How much of backward is solved at once. Lies in the state of the rank's context.
struct AttentionParts {
  /// bf16 numbers of workspace, of queries and keys of all heads.
  std::int64_t most_pairs = kMostCudaWorkspaceBytes / size_of(DType::kBfloat16);

  struct Part {
    std::int64_t batches, heads, queries;
  };
  Part largest(const CudnnAttentionProblem& backward) const {
    const auto [batches, heads, queries] = std::array{backward.batches, backward.heads, backward.queries};
    // What stands for each query: in any order a row of dq in f32, of the size of two in bf16.
    const std::int64_t keys = backward.deterministic ? backward.keys : 2 * backward.head_size;
    constexpr std::int64_t kTile = 128;  // to whose multiples cuDNN rounds up
    const auto tiles = [](std::int64_t tokens) { return (tokens + kTile - 1) / kTile; };
    const std::int64_t most = std::max<std::int64_t>(most_pairs / (kTile * kTile), 1), a_row = tiles(keys),
                       a_head = tiles(queries) * a_row;
    if (a_head > most) return {1, 1, std::min(std::max<std::int64_t>(most / a_row, 1) * kTile, queries)};
    if (heads * a_head > most) return {1, most / a_head, queries};
    return {std::min(most / (heads * a_head), batches), heads, queries};
  }
};

}  // namespace jigsaw::inline kernels::cuda
