#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "array/context.h"
#include "kernels/cuda/cudnn_handle.h"

namespace jigsaw::inline kernels::cuda {

/// Lets `run` put its work into the context's stream, with a workspace of so many bytes from the arena.
/// @param work  names it, for errors.
/// @param run   throws LibraryError where cuDNN fails.
void run_by_cudnn(Context& context, const std::string& work, std::int64_t workspace_bytes,
                  const std::function<void(const CudnnHandle&, void* workspace)>& run);

}  // namespace jigsaw::inline kernels::cuda
