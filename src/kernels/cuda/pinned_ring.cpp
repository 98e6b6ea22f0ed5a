#include "kernels/cuda/pinned_ring.h"

#include <algorithm>
#include <cstring>

namespace jigsaw::inline kernels::cuda {

PinnedRing::~PinnedRing() {
  for (const Block& block : blocks_) {
    cudaEventDestroy(block.read);
    cudaFreeHost(block.memory);
  }
}

cudaError_t PinnedRing::make_room(cudaStream_t stream) {
  if (!blocks_.empty()) {
    Block& filled = blocks_.back();
    if (filled.stream == stream && filled.used < kBlockBytes) return cudaSuccess;
    if (const cudaError_t status = cudaEventRecord(filled.read, filled.stream); status != cudaSuccess)
      return status;
    Block& oldest = blocks_.front();
    cudaError_t status = cudaEventQuery(oldest.read);
    const bool may_grow = blocks_.size() < kMostBlocks;
    if (status == cudaErrorNotReady && !may_grow) status = cudaStreamSynchronize(oldest.stream);
    if (status != cudaErrorNotReady) {
      if (status != cudaSuccess) return status;
      Block free = oldest;
      blocks_.pop_front();
      free.used = 0;
      free.stream = stream;
      blocks_.push_back(free);
      return cudaSuccess;
    }
    cudaGetLastError();  // that it is not ready
  }
  Block block;
  block.stream = stream;
  if (const cudaError_t status = cudaEventCreateWithFlags(&block.read, cudaEventDisableTiming);
      status != cudaSuccess)
    return status;
  void* memory = nullptr;
  if (const cudaError_t status = cudaHostAlloc(&memory, kBlockBytes, cudaHostAllocDefault);
      status != cudaSuccess) {
    cudaEventDestroy(block.read);
    return status;
  }
  block.memory = static_cast<std::byte*>(memory);
  blocks_.push_back(block);
  return cudaSuccess;
}

cudaError_t PinnedRing::upload(cudaStream_t stream, std::span<const std::byte> from, std::byte* to) {
  constexpr std::size_t kAlignment = 256;
  while (!from.empty()) {
    if (const cudaError_t status = make_room(stream); status != cudaSuccess) return status;
    Block& block = blocks_.back();
    const std::size_t count = std::min(from.size(), kBlockBytes - block.used);
    std::memcpy(block.memory + block.used, from.data(), count);
    if (const cudaError_t status =
            cudaMemcpyAsync(to, block.memory + block.used, count, cudaMemcpyHostToDevice, stream);
        status != cudaSuccess)
      return status;
    block.used = std::min(kBlockBytes, (block.used + count + kAlignment - 1) / kAlignment * kAlignment);
    from = from.subspan(count);
    to += count;
  }
  return cudaSuccess;
}

}  // namespace jigsaw::inline kernels::cuda
