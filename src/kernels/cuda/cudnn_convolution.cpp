#include "kernels/cuda/cudnn_convolution.h"

#include <map>

#include "array/raw_memory.h"
#include "kernels/cuda/cudnn_plan.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda_context.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// What the convolutions of a rank keep between calls.
struct CudnnState {
  const CudnnPlan* plan(const CudnnProblem& problem) {
    const std::string key = problem.text();
    auto found = plans.find(key);
    if (found == plans.end()) found = plans.emplace(key, CudnnPlan::make(problem, handle)).first;
    return found->second ? &*found->second : nullptr;
  }

  CudnnHandle handle;
  std::map<std::string, std::optional<CudnnPlan>> plans;
};

}  // namespace

const CudnnPlan* cudnn_plan(Context& context, const CudnnProblem& problem) {
  return context.state<CudnnState>().plan(problem);
}

void cudnn_run(Context& context, const CudnnPlan& plan, const CudnnOperands& operands) {
  const CudnnHandle& handle = context.state<CudnnState>().handle;
  Array workspace;
  if (plan.workspace_bytes() > 0)
    workspace = Array(context, {(plan.workspace_bytes() + 3) / 4}, DType::kFloat32, Purpose::kWorkspace);
  check(cudnnSetStream(handle.get(), stream_of(context)), "use a stream");
  const cudnnStatus_t status = plan.run(handle, operands, workspace.defined() ? workspace.raw() : nullptr);
  const bool waits = launches_wait(context);
  if (status == CUDNN_STATUS_SUCCESS && !waits) return;
  const std::string text = plan.problem().text();
  // What work before it has done may come to light here.
  if (status != CUDNN_STATUS_SUCCESS) launched(context, cudaPeekAtLastError(), text.c_str());
  check(status, "run a convolution");
  launched(context, cudaSuccess, text.c_str());
}

}  // namespace jigsaw::inline kernels::cuda

jigsaw::CudnnLibrary jigsaw::cudnn_library() {
  return {true, CUDNN_MAJOR, static_cast<int>(cudnnGetVersion())};
}
