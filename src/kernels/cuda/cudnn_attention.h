#pragma once
#include <cstdint>
#include <string>

#include "kernels/attention.h"

// Attention by cuDNN; without it, or without the headers of its frontend (cudnn_attention_absent.cpp), it
// solves none, and kernels of ours do (attention.cu).

namespace jigsaw::inline kernels::cuda {

/// Attention of bf16 heads without bias, mask or dropout, or its gradients: weights = softmax(scale · q·k),
/// sums in f32. What it makes is bf16, too: cuDNN 9.19 takes graphs whose y, or dk and dv, are f32, but for
/// an H100 it plans the very kernels that it plans for bf16, which then write bf16 numbers in pairs where f32
/// ones should be.
struct CudnnAttentionProblem {
  /// Where an operand's heads lie: number c of (batch, token, head) at element batch · `batch` + token ·
  /// `token` + head · head_size + c.
  struct Places {
    std::int64_t batch = 0, token = 0;

    static Places of(const HeadRows& rows) { return {rows.tokens() * rows.stride(), rows.stride()}; }
    /// Of a dense [B, tokens, heads, d].
    static Places of(const Array& y) {
      const std::int64_t stride = y.shape()[2] * y.shape()[3];
      return {y.shape()[1] * stride, stride};
    }
  };

  bool backward = false;
  std::int64_t batches = 0, heads = 0, queries = 0, keys = 0, head_size = 0;
  double scale = 1;
  Places q, k, v, y;
  /// (batch, head, query) of the log-sum-exp, f32, at element batch · lse_batch + head · lse_head + query.
  std::int64_t lse_batch = 0, lse_head = 0;
  Places dy, dq, dk, dv;      ///< backward's
  bool deterministic = true;  ///< sums repeat bit for bit; backward may differ, those forward do always

  /// Whether cuDNN takes it, provided that all operands begin at multiples of 16 bytes.
  static bool suits(const HeadRows& q, const HeadRows& k, const AttentionOptions& options);
  /// @param y  [B, queries, heads, d], dense.
  static CudnnAttentionProblem forward(const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                       const Array& y, double scale);

  /// A name that no other problem has.
  std::string text() const;
};

/// What a problem's operands are at a run; addresses are multiples of 16 bytes.
struct CudnnAttentionOperands {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *y = nullptr, *log_sum_exp = nullptr, *dy = nullptr,
             *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

class CudnnAttentionPlan;

/// cuDNN's plan for it, kept by the context; null where no engine of cuDNN does it.
/// @param why  gets what cuDNN says then.
const CudnnAttentionPlan* cudnn_attention_plan(Context& context, const CudnnAttentionProblem& problem,
                                               std::string& why);

/// Bytes of workspace that a run takes.
std::int64_t cudnn_attention_workspace(const CudnnAttentionPlan& plan);

/// Puts a plan of the context's into its stream. Memory for work comes from its arena.
void cudnn_attention_run(Context& context, const CudnnAttentionPlan& plan,
                         const CudnnAttentionOperands& operands);

/// Whether the program is built with what attention by cuDNN needs.
bool cudnn_attention_built();

}  // namespace jigsaw::inline kernels::cuda
