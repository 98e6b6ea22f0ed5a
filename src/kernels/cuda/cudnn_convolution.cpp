#include "kernels/cuda/cudnn_convolution.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda/cudnn_plan.h"
#include "kernels/cuda/cudnn_run.h"
#include "kernels/cuda/error.h"

namespace jigsaw::inline kernels::cuda {

namespace {

struct KnownPlan {
  std::optional<CudnnPlan> plan;
  std::string why;  ///< there is none
};
/// Plans of a rank.
struct Plans {
  std::shared_ptr<CudnnHandle> handle;  ///< which they need till they go
  std::map<std::string, KnownPlan> by_text;
};

}  // namespace

const CudnnPlan* cudnn_plan(Context& context, const CudnnProblem& problem, std::string& why) {
  Plans& plans = *library_state<Plans>(context);
  const std::string key = problem.text();
  auto found = plans.by_text.find(key);
  if (found == plans.by_text.end()) {
    if (!plans.handle) plans.handle = library_state<CudnnHandle>(context);
    KnownPlan known = by_library(context, key, [&]() -> KnownPlan {
      std::string said;
      std::optional<CudnnPlan> plan = CudnnPlan::make(problem, *plans.handle, &said);
      return {std::move(plan), std::move(said)};
    });
    if (!known.plan) require_no_failure(context);  // a device that has failed has no plans either
    found = plans.by_text.emplace(key, std::move(known)).first;
  }
  why = found->second.why;
  return found->second.plan ? &*found->second.plan : nullptr;
}

void cudnn_run(Context& context, const CudnnPlan& plan, const CudnnOperands& operands) {
  run_by_cudnn(context, plan.problem().text(), plan.workspace_bytes(),
               [&](const CudnnHandle& handle, void* workspace) { plan.run(handle, operands, workspace); });
}

}  // namespace jigsaw::inline kernels::cuda
