#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "kernels/attention.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda_workspace.h"

namespace jigsaw::inline kernels::cuda {

/// Attention of bf16 heads of a multiple of 8 numbers, 128 at most, without bias, mask and dropout, by cuDNN.
/// Backward is solved at once where cuDNN's plan for it takes about AttentionParts::most_bytes at most, else
/// in parts of batches, heads and queries one after the other. What cuDNN makes is rounded to bf16, parts of
/// dk and dv are added up in f32.
/// @return  whether cuDNN did it
bool attention_forward_by_cudnn(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                const AttentionOptions& options, AttentionResult& result);
bool attention_backward_by_cudnn(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                 const Array& y, const Array& dy, const Array& log_sum_exp,
                                 const AttentionOptions& options, HeadRows& dq, HeadRows& dk, HeadRows& dv);

/// How much of backward is solved at once. Lies in the state of the rank's context.
struct AttentionParts {
  /// Of a plan's workspace; a tenth more passes, for what plans take beside a number for each pair.
  std::int64_t most_bytes = kMostCudaWorkspaceBytes;

  struct Part {
    std::int64_t batches, heads, queries;
    bool operator==(const Part&) const = default;
  };

  /// All of it, or the first smaller part whose plan takes no more; the smallest are a tile of a head's
  /// queries.
  /// @param bytes_of  what cuDNN's plan for a Part takes; none where there is no plan: then a smaller part is
  ///                  tried where pairs() would be too many bytes, for cuDNN might plan that.
  template <typename BytesOf>
  Part largest(const CudnnAttentionProblem& backward, const BytesOf& bytes_of) const {
    Part part{backward.batches, backward.heads, backward.queries};
    for (;;) {
      const std::optional<std::int64_t> planned = bytes_of(part);
      const Part next = cut(part, planned ? *planned : pairs(backward, part));
      if (next == part) return part;
      part = next;
    }
  }

 private:
  static constexpr std::int64_t kTile = 128;  // to whose multiples cuDNN rounds up
  static std::int64_t tiles(std::int64_t tokens) { return (tokens + kTile - 1) / kTile; }

  /// Bytes of a bf16 number for each query and key of each head: what plans take on GPUs before Blackwell for
  /// sums that repeat.
  static std::int64_t pairs(const CudnnAttentionProblem& backward, const Part& part) {
    return part.batches * part.heads * tiles(part.queries) * tiles(backward.keys) * kTile * kTile *
           size_of(DType::kBfloat16);
  }
  /// As much of a part as may be, if the part takes `bytes`, as much for each tile of queries.
  Part cut(const Part& part, std::int64_t bytes) const {
    const std::int64_t passes = most_bytes + most_bytes / 10;
    if (bytes <= passes) return part;
    const std::int64_t a_head = tiles(part.queries), all = part.batches * part.heads * a_head,
                       a_tile = (bytes + all - 1) / all, most = std::max<std::int64_t>(passes / a_tile, 1);
    if (a_head > most) return {1, 1, std::min(most * kTile, part.queries)};
    if (part.heads * a_head > most) return {1, most / a_head, part.queries};
    return {most / (part.heads * a_head), part.heads, part.queries};
  }
};

}  // namespace jigsaw::inline kernels::cuda
