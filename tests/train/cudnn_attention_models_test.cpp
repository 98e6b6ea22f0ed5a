// What cuDNN plans for the attention that training steps of the shipped configurations call, on an H100
// (tests/kernels/h100.json) that is not there: its driver and runtime are in tests/support/described_gpu/.
// The linker puts the functions of this file before those of kernels/attention.h.
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "kernels/cuda/attention_by_cudnn.h"
#include "kernels/cuda/cudnn_attention_plan.h"
#include "train/shipped_steps.h"

namespace jigsaw {
namespace {

using cuda::AttentionParts;
using cuda::CudnnAttentionPlan;
using cuda::CudnnAttentionProblem;
using Places = CudnnAttentionProblem::Places;

/// How often kernels of ours do it.
int& others() {
  static int count = 0;
  return count;
}

}  // namespace

JIGSAW_CALL(
    forward,
    "17attention_forwardERNS_5array7ContextERKNS0_8HeadRowsES6_S6_RKNS0_16AttentionOptionsENS1_5DTypeE",
    (Context & context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
     const AttentionOptions& options, DType output),
    AttentionResult)
AttentionResult forward_here(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                             const AttentionOptions& options, DType output) {
  const AttentionResult result = forward_there(context, q, k, v, options, output);
  if (CudnnAttentionProblem::suits(q, k, options)) {
    pose(CudnnAttentionProblem::forward(q, k, v, result.output, options.scale));
  } else {
    ++others();
  }
  return result;
}

JIGSAW_CALL(backward,
            "18attention_backwardERNS_5array7ContextERKNS0_8HeadRowsES6_S6_RKNS1_5ArrayES9_S9_S9_RKNS0_"
            "16AttentionOptionsES4_S4_S4_S7_",
            (Context & context, const HeadRows& q, const HeadRows& k, const HeadRows& v, const Array& y,
             const Array& dy, const Array& log_sum_exp, const Array& row_sums,
             const AttentionOptions& options, HeadRows dq, HeadRows dk, HeadRows dv, Array dbias),
            void)
void backward_here(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v, const Array& y,
                   const Array& dy, const Array& log_sum_exp, const Array& row_sums,
                   const AttentionOptions& options, HeadRows dq, HeadRows dk, HeadRows dv, Array dbias) {
  backward_there(context, q, k, v, y, dy, log_sum_exp, row_sums, options, dq, dk, dv, dbias);
  if (!CudnnAttentionProblem::suits(q, k, options)) return;
  CudnnAttentionProblem problem = CudnnAttentionProblem::forward(q, k, v, y, options.scale);
  problem.backward = true;
  problem.dy = Places::of(dy);
  problem.dq = Places::of(dq);
  problem.dk = Places::of(dk);
  problem.dv = Places::of(dv);
  pose(problem);
}

namespace {

/// Its largest part, see attention_backward_by_cudnn().
CudnnAttentionProblem part_of(const CudnnAttentionProblem& whole, const AttentionParts::Part& part) {
  CudnnAttentionProblem problem = whole;
  problem.batches = part.batches;
  problem.heads = part.heads;
  problem.queries = part.queries;
  return problem;
}
/// What the plan takes; none where there is no plan.
std::optional<std::int64_t> workspace_of(const CudnnAttentionProblem& whole, std::string& why) {
  std::optional<std::int64_t> bytes;
  const auto bytes_of = [&](const AttentionParts::Part& part) {
    const auto plan = CudnnAttentionPlan::make(part_of(whole, part), h100(), why);
    return bytes = plan ? std::optional(plan->workspace_bytes()) : std::nullopt;
  };
  if (whole.backward) {
    AttentionParts().largest(whole, bytes_of);
  } else {
    bytes_of({whole.batches, whole.heads, whole.queries});
  }
  return bytes;
}

TEST(CudnnModels, AttentionOfTheShippedConfigurationsIsPlanned) {
  std::set<std::string> attending, by_others;
  for_each_shipped_step({"bf16"}, [&](const std::string& name, const std::function<void()>& count) {
    const std::size_t before = problems<CudnnAttentionProblem>().size();
    const int before_others = others();
    count();
    if (problems<CudnnAttentionProblem>().size() > before) attending.insert(name);
    if (others() > before_others) by_others.insert(name);
  });
  EXPECT_EQ(attending, (std::set<std::string>{"era5_uk_vit", "era5_vit"}));
  EXPECT_EQ(by_others, (std::set<std::string>{"era5_swin"}));
  std::int64_t most = 0;
  for (const auto& [text, problem] : problems<CudnnAttentionProblem>()) {
    std::string why;
    const std::optional<std::int64_t> bytes = workspace_of(problem, why);
    ASSERT_TRUE(bytes.has_value()) << text << ": " << why;
    most = std::max(most, *bytes);
  }
  EXPECT_LE(static_cast<double>(most), 1.1 * (1 << 29));
  std::printf("attention %zu times, at most %.1f MB of workspace\n", problems<CudnnAttentionProblem>().size(),
              static_cast<double>(most) * 1e-6);
}

}  // namespace
}  // namespace jigsaw
