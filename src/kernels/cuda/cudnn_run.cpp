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
  cudnnStatus_t status = cudnnSetStream(handle.get(), stream_of(context));
  if (status == CUDNN_STATUS_SUCCESS) status = run(handle, workspace.defined() ? workspace.raw() : nullptr);
  if (status != CUDNN_STATUS_SUCCESS) library_failed(context, work, failure_text(status, "run " + work));
  if (launches_wait(context)) launched(context, cudaSuccess, work.c_str());
}

}  // namespace jigsaw::inline kernels::cuda

jigsaw::CudnnLibrary jigsaw::cudnn_library() {
  constexpr int kMajor = 1000;
  return {.built = true,
          .built_for = CUDNN_MAJOR,
          .version = static_cast<int>(cudnnGetVersion()),
          .cuda = CUDART_VERSION / kMajor,
          .for_cuda = static_cast<int>(cudnnGetCudartVersion()) / kMajor};
}
