#include "kernels/cuda/ending.h"

#include <chrono>
#include <thread>

namespace jigsaw::inline kernels::cuda {

bool Ending::comes() {
  constexpr std::chrono::seconds kMostWait(5);
  if (hangs_) return false;
  const auto limit = std::chrono::steady_clock::now() + kMostWait;
  for (cudaStream_t stream : streams_) {
    cudaError_t status = cudaStreamQuery(stream);
    for (; status == cudaErrorNotReady && std::chrono::steady_clock::now() < limit;
         status = cudaStreamQuery(stream))
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (status == cudaErrorNotReady) hangs_ = true;
  }
  return !hangs_;
}

}  // namespace jigsaw::inline kernels::cuda
