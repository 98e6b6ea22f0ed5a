#include "kernels/cuda/cudnn_attention.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda/cudnn_attention_plan.h"
#include "kernels/cuda/cudnn_run.h"
#include "kernels/cuda/error.h"

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
  Plans& plans = *library_state<Plans>(context);
  const std::string key = problem.text();
  auto found = plans.by_text.find(key);
  if (found == plans.by_text.end()) {
    if (!plans.handle) plans.handle = library_state<CudnnHandle>(context);
    Known known = by_library(context, key, [&]() -> Known {
      std::string said;
      std::optional<CudnnAttentionPlan> plan = CudnnAttentionPlan::make(problem, *plans.handle, said);
      return {std::move(plan), std::move(said)};
    });
    if (!known.plan) require_no_failure(context);  // a device that has failed has no plans either
    found = plans.by_text.emplace(key, std::move(known)).first;
  }
  why = found->second.why;
  return found->second.plan ? &*found->second.plan : nullptr;
}

std::int64_t cudnn_attention_workspace(const CudnnAttentionPlan& plan) {
  return plan.workspace_bytes();
}

void cudnn_attention_run(Context& context, const CudnnAttentionPlan& plan,
                         const CudnnAttentionOperands& operands) {
  run_by_cudnn(context, plan.problem().text(), plan.workspace_bytes(),
               [&](const CudnnHandle& handle, void* workspace) { plan.run(handle, operands, workspace); });
}

}  // namespace jigsaw::inline kernels::cuda
