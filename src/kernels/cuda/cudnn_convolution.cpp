#include "kernels/cuda/cudnn_convolution.h"

#include <map>
#include <memory>
#include <optional>

#include "kernels/cuda/cudnn_plan.h"
#include "kernels/cuda/cudnn_run.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Plans of a rank.
struct Plans {
  std::shared_ptr<CudnnHandle> handle;  ///< which they need till they go
  std::map<std::string, std::optional<CudnnPlan>> by_text;
};

}  // namespace

const CudnnPlan* cudnn_plan(Context& context, const CudnnProblem& problem) {
  Plans& plans = context.state<Plans>();
  const std::string key = problem.text();
  if (!plans.handle) plans.handle = context.shared_state<CudnnHandle>();
  auto found = plans.by_text.find(key);
  if (found == plans.by_text.end())
    found = plans.by_text.emplace(key, CudnnPlan::make(problem, *plans.handle)).first;
  return found->second ? &*found->second : nullptr;
}

void cudnn_run(Context& context, const CudnnPlan& plan, const CudnnOperands& operands) {
  run_by_cudnn(
      context, plan.problem().text(), plan.workspace_bytes(),
      [&](const CudnnHandle& handle, void* workspace) { return plan.run(handle, operands, workspace); });
}

}  // namespace jigsaw::inline kernels::cuda
