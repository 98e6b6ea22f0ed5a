#include "kernels/cuda/cudnn_run.h"

#include "array/array.h"
#include "array/raw_memory.h"
#include "kernels/cuda/error.h"

namespace jigsaw::inline kernels::cuda {

void run_by_cudnn(Context& context, const std::string& work, std::int64_t workspace_bytes,
                  const std::function<void(const CudnnHandle&, void* workspace)>& run) {
  const CudnnHandle& handle = *library_state<CudnnHandle>(context);
  Array workspace;
  if (workspace_bytes > 0)
    workspace = Array(context, {(workspace_bytes + 3) / 4}, DType::kFloat32, Purpose::kWorkspace);
  cudaStream_t const stream = stream_of(context);
  by_library(context, work, [&] {
    check(cudnnSetStream(handle.get(), stream), "take a stream");
    run(handle, workspace.defined() ? workspace.raw() : nullptr);
  });
  if (launches_wait(context)) launched(context, cudaSuccess, work.c_str());
}

}  // namespace jigsaw::inline kernels::cuda
