#include <cuda.h>

#include <atomic>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/stream_counter.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// One thread of one block. The host reads it meanwhile.
__global__ void add_one(volatile std::uint32_t* count) {
  if (threadIdx.x == 0) *count = *count + 1;
}

}  // namespace

StreamCounter::StreamCounter() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(std::uint32_t), cudaHostAllocMapped), "take pinned memory");
  reached_.reset(static_cast<std::uint32_t*>(memory), [](std::uint32_t* pinned) { cudaFreeHost(pinned); });
  *reached_ = 0;
  // Loads the kernel, whose first launch may be recorded: older drivers do not load while they record.
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, add_one), "load a kernel");
}

bool StreamCounter::count(cudaStream_t stream) {
  static const auto write = find_driver_function<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32");
  counts_ = counts_ && write != nullptr;
  if (!counts_) return false;
  const CUresult status =
      write(stream, reinterpret_cast<CUdeviceptr>(reached_.get()), last_ + 1, CU_STREAM_WRITE_VALUE_DEFAULT);
  counts_ = status != CUDA_ERROR_NOT_SUPPORTED;
  if (status == CUDA_SUCCESS) ++last_;
  return status == CUDA_SUCCESS;
}

cudaError_t StreamCounter::record_count(cudaStream_t stream) const {
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(1);
  configuration.blockDim = dim3(1);
  configuration.stream = stream;
  return cudaLaunchKernelEx(&configuration, add_one, reached_.get());
}

std::uint32_t StreamCounter::reached() const {
  return std::atomic_ref(*reached_).load(std::memory_order_acquire);
}

}  // namespace jigsaw::inline kernels::cuda
