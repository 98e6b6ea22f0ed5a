#include "kernels/cuda/cudnn_convolution.h"

#include <map>

#include "array/raw_memory.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/cudnn_plan.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda_context.h"

namespace jigsaw::inline kernels::cuda {

namespace {

std::string text_of(std::size_t version) {
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

/// What the convolutions of a rank keep between calls.
struct CudnnState {
  CudnnState() {
    if (cudnnGetVersion() >= CUDNN_VERSION) return;
    throw ConfigError(concat("cuDNN ", text_of(CUDNN_VERSION),
                             " or newer is needed, and the library here is ", cudnn_version()));
  }

  const std::optional<CudnnPlan>& plan(const CudnnProblem& problem) {
    const std::string key = problem.text();
    auto found = plans.find(key);
    if (found == plans.end()) found = plans.emplace(key, CudnnPlan::make(problem, handle)).first;
    return found->second;
  }

  CudnnHandle handle;
  std::map<std::string, std::optional<CudnnPlan>> plans;
};

}  // namespace

bool cudnn_solves(Context& context, const CudnnProblem& problem) {
  return context.state<CudnnState>().plan(problem).has_value();
}

void cudnn_run(Context& context, const CudnnProblem& problem, const CudnnOperands& operands) {
  auto& state = context.state<CudnnState>();
  const std::optional<CudnnPlan>& plan = state.plan(problem);
  require(plan.has_value(), "a convolution is run that cuDNN does not solve");
  Array workspace;
  if (plan->workspace_bytes() > 0)
    workspace = Array(context, {(plan->workspace_bytes() + 3) / 4}, DType::kFloat32, Purpose::kWorkspace);
  check(cudnnSetStream(state.handle.get(), stream_of(context)), "use a stream");
  const cudnnStatus_t status =
      plan->run(state.handle, operands, workspace.defined() ? workspace.raw() : nullptr);
  const std::string text = problem.text();
  // What work before it has done may come to light here.
  if (status != CUDNN_STATUS_SUCCESS) launched(context, cudaPeekAtLastError(), text.c_str());
  check(status, "run a convolution");
  if (launches_wait(context)) launched(context, cudaSuccess, text.c_str());
}

}  // namespace jigsaw::inline kernels::cuda

std::string jigsaw::cudnn_version() {
  return cuda::text_of(cudnnGetVersion());
}
