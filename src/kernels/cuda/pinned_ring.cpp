#include "kernels/cuda/pinned_ring.h"

#include <algorithm>
#include <cstring>

#include "array/parallel.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// By as many threads as have enough to do.
void copy_by_threads(std::span<const std::byte> from, std::byte* to, int threads) {
  constexpr std::size_t kLeast = std::size_t{512} << 10;
  constexpr std::int64_t kLine = 64;
  const int parts = std::clamp(static_cast<int>(from.size() / kLeast), 1, std::max(threads, 1));
  for_ranges(parts, std::ssize(from), kLine, [&](std::int64_t begin, std::int64_t end, int) {
    std::memcpy(to + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

PinnedRing::~PinnedRing() {
  for (const Block& block : blocks_) {
    cudaEventDestroy(block.read);
    cudaFreeHost(block.memory);
  }
}

cudaError_t PinnedRing::add_block() {
  Block block;
  cudaError_t status = cudaEventCreateWithFlags(&block.read, cudaEventDisableTiming);
  if (status != cudaSuccess) return status;
  void* memory = nullptr;
  status = cudaHostAlloc(&memory, kBlockBytes, cudaHostAllocDefault);
  if (status != cudaSuccess) {
    cudaEventDestroy(block.read);
    return status;
  }
  block.memory = static_cast<std::byte*>(memory);
  blocks_.push_back(block);
  return cudaSuccess;
}

cudaError_t PinnedRing::make_room(cudaStream_t stream) {
  if (blocks_.empty()) {
    if (const cudaError_t status = add_block(); status != cudaSuccess) return status;
  } else {
    Block& filled = blocks_.back();
    if (filled.stream == stream && filled.used < kBlockBytes) return cudaSuccess;
    cudaError_t status = cudaEventRecord(filled.read, filled.stream);
    if (status != cudaSuccess) return status;
    status = cudaEventQuery(blocks_.front().read);
    if (status != cudaSuccess && status != cudaErrorNotReady) return status;
    if (status == cudaSuccess || blocks_.size() == kMostBlocks || add_block() != cudaSuccess) {
      // A host that gives no more is waited for, too.
      if (status != cudaSuccess) status = cudaEventSynchronize(blocks_.front().read);
      if (status != cudaSuccess) return status;
      blocks_.push_back(blocks_.front());
      blocks_.pop_front();
    }
    cudaGetLastError();  // that it was not ready, or there was no more
  }
  blocks_.back().used = 0;
  blocks_.back().stream = stream;
  return cudaSuccess;
}

cudaError_t PinnedRing::upload(cudaStream_t stream, std::span<const std::byte> from, std::byte* to,
                               int threads) {
  constexpr std::size_t kAlignment = 256;
  while (!from.empty()) {
    if (const cudaError_t status = make_room(stream); status != cudaSuccess) return status;
    Block& block = blocks_.back();
    const std::size_t count = std::min(from.size(), kBlockBytes - block.used);
    copy_by_threads(from.first(count), block.memory + block.used, threads);
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
