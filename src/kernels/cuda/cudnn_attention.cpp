#include "kernels/cuda/cudnn_attention.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/cudnn_attention_plan.h"
#include "kernels/cuda/cudnn_run.h"

namespace jigsaw::inline kernels::cuda {

namespace {

struct Known {
  std::optional<CudnnAttentionPlan> plan;
  std::string why;  ///< there is none
};
/// Plans of a rank.
struct Plans {
  std::shared_ptr<CudnnHandle> handle;  ///< which they need till they go
  std::map<std::string, Known> by_text;
};

}  // namespace

const CudnnAttentionPlan* cudnn_attention_plan(Context& context, const CudnnAttentionProblem& problem,
                                               std::string& why) {
  Plans& plans = context.state<Plans>();
  const std::string key = problem.text();
  auto found = plans.by_text.find(key);
  if (found == plans.by_text.end()) {
    const auto make = [&]() -> Known {
      std::string said;
      try {
        if (!plans.handle) plans.handle = context.shared_state<CudnnHandle>();
        std::optional<CudnnAttentionPlan> plan = CudnnAttentionPlan::make(problem, *plans.handle, said);
        return {std::move(plan), std::move(said)};
      } catch (const Error& error) {  // of a library that does not start
        return {std::nullopt, error.what()};
      }
    };
    found = plans.by_text.emplace(key, make()).first;
  }
  why = found->second.why;
  return found->second.plan ? &*found->second.plan : nullptr;
}

void cudnn_attention_run(Context& context, const CudnnAttentionPlan& plan,
                         const CudnnAttentionOperands& operands) {
  run_by_cudnn(
      context, plan.problem().text(), plan.workspace_bytes(),
      [&](const CudnnHandle& handle, void* workspace) { return plan.run(handle, operands, workspace); });
}

bool cudnn_attention_built() {
  return true;
}

}  // namespace jigsaw::inline kernels::cuda
