#include "kernels/cuda/cudnn_convolution.h"

#include <map>
#include <optional>

#include "kernels/cuda/cudnn_plan.h"
#include "kernels/cuda/cudnn_run.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Plans of a rank, by the problem's text.
using Plans = std::map<std::string, std::optional<CudnnPlan>>;

}  // namespace

const CudnnPlan* cudnn_plan(Context& context, const CudnnProblem& problem) {
  Plans& plans = context.state<Plans>();
  const std::string key = problem.text();
  auto found = plans.find(key);
  if (found == plans.end())
    found = plans.emplace(key, CudnnPlan::make(problem, context.state<CudnnHandle>())).first;
  return found->second ? &*found->second : nullptr;
}

void cudnn_run(Context& context, const CudnnPlan& plan, const CudnnOperands& operands) {
  run_by_cudnn(
      context, plan.problem().text(), plan.workspace_bytes(),
      [&](const CudnnHandle& handle, void* workspace) { return plan.run(handle, operands, workspace); });
}

}  // namespace jigsaw::inline kernels::cuda
