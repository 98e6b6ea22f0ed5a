#include <atomic>
#include <cuda/std/chrono>
#include <new>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/stall_clock.h"

namespace jigsaw::inline kernels::cuda {

namespace {

__device__ std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(::cuda::std::chrono::duration_cast<::cuda::std::chrono::nanoseconds>(
                                        ::cuda::std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

/// Each by one thread.
__global__ void begin_stall(std::uint64_t* times) {
  if (threadIdx.x == 0) times[0] = nanoseconds();
}
/// The host reads `told` meanwhile.
__global__ void end_stall(std::uint64_t* times, volatile std::uint64_t* told) {
  if (threadIdx.x != 0) return;
  const std::uint64_t now = nanoseconds();
  // Two clocks may differ by a tick.
  if (now > times[0]) times[1] += now - times[0];
  *told = times[1];
}

cudaLaunchConfig_t one_thread(cudaStream_t stream) {
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(1);
  configuration.blockDim = dim3(1);
  configuration.stream = stream;
  return configuration;
}

}  // namespace

StallClock::StallClock(cudaStream_t stream) : stream_(stream) {
  constexpr std::size_t kBytes = 2 * sizeof(std::uint64_t);
  void* memory = nullptr;
  check(cudaMalloc(&memory, kBytes), "take memory for a clock");
  times_.reset(static_cast<std::uint64_t*>(memory));
  check(cudaHostAlloc(&memory, sizeof(std::uint64_t), cudaHostAllocMapped), "take pinned memory");
  told_.reset(new (memory) std::uint64_t{0});
  check(cudaMemsetAsync(times_.get(), 0, kBytes, stream), "set a clock");
}

cudaError_t StallClock::begin() const {
  const cudaLaunchConfig_t configuration = one_thread(stream_);
  return cudaLaunchKernelEx(&configuration, begin_stall, times_.get());
}

cudaError_t StallClock::end() const {
  const cudaLaunchConfig_t configuration = one_thread(stream_);
  return cudaLaunchKernelEx(&configuration, end_stall, times_.get(), told_.get());
}

double StallClock::take_seconds() {
  const std::uint64_t now = std::atomic_ref(*told_).load(std::memory_order_acquire);
  const std::uint64_t before = taken_;
  taken_ = now;
  return 1e-9 * static_cast<double>(now - before);
}

}  // namespace jigsaw::inline kernels::cuda
