#include "kernels/cuda/stream_counter.h"

#include <cuda.h>

#include <atomic>

#include "kernels/cuda/driver.h"

namespace jigsaw::inline kernels::cuda {

StreamCounter::StreamCounter() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(std::uint32_t), cudaHostAllocMapped), "take pinned memory");
  reached_.reset(static_cast<std::uint32_t*>(memory), [](std::uint32_t* pinned) { cudaFreeHost(pinned); });
  *reached_ = 0;
}

bool StreamCounter::count(cudaStream_t stream) {
  static const auto write = find_driver_function<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32");
  if (!counts_) return false;
  counts_ = write != nullptr && write(stream, reinterpret_cast<CUdeviceptr>(reached_.get()), ++last_,
                                      CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
  return counts_;
}

std::uint32_t StreamCounter::reached() const {
  return std::atomic_ref(*reached_).load(std::memory_order_acquire);
}

}  // namespace jigsaw::inline kernels::cuda
