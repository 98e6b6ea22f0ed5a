#pragma once
#include "kernels/attention.h"

namespace jigsaw::inline kernels::cuda {

/// The passes over queries and keys of attention_kernels.h, each in a source of its own.
void attention_forward_pass(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                            const AttentionOptions& options, AttentionResult& result);
void attention_backward_pass(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                             const Array& dy, const Array& log_sum_exp, const Array& row_sums,
                             const AttentionOptions& options, HeadRows& dq, HeadRows& dk, HeadRows& dv,
                             Array& dbias);

}  // namespace jigsaw::inline kernels::cuda
