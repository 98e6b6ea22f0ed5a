#include "kernels/cuda/cudnn_run.h"

#include "array/array.h"
#include "array/raw_memory.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda_context.h"

namespace jigsaw::inline kernels::cuda {

void run_by_cudnn(Context& context, const std::string& work, std::int64_t workspace_bytes,
                  const std::function<cudnnStatus_t(const CudnnHandle&, void* workspace)>& run) {
  const CudnnHandle& handle = context.state<CudnnHandle>();
  Array workspace;
  if (workspace_bytes > 0)
    workspace = Array(context, {(workspace_bytes + 3) / 4}, DType::kFloat32, Purpose::kWorkspace);
  check(cudnnSetStream(handle.get(), stream_of(context)), "use a stream");
  const cudnnStatus_t status = run(handle, workspace.defined() ? workspace.raw() : nullptr);
  const bool waits = launches_wait(context);
  if (status == CUDNN_STATUS_SUCCESS && !waits) return;
  if (status != CUDNN_STATUS_SUCCESS)
    library_failed(context, work, [&] { check(status, ("run " + work).c_str()); });
  launched(context, cudaSuccess, work.c_str());
}

}  // namespace jigsaw::inline kernels::cuda

jigsaw::CudnnLibrary jigsaw::cudnn_library() {
  return {true, CUDNN_MAJOR, static_cast<int>(cudnnGetVersion())};
}
