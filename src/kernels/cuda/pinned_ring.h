#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <span>

namespace jigsaw::inline kernels::cuda {

/// Page-locked memory of the host through which numbers go up to a device: they are copied into it at once
/// and from it by the device when their turn comes, so that the host waits for none of the work before them.
/// Blocks are taken again, the oldest first, when the device has read them, and new ones are made up to
/// kMostBlocks, or as many as the host gives; past that the host waits for the oldest.
class PinnedRing {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{8} << 20, kMostBlocks = 128;

  PinnedRing() = default;
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  /// Puts a copy to the device's memory into the stream; `from` may be written again when it returns.
  /// @param threads  that copy into a block at the same time: one does a fifth of what the bus carries.
  /// @return  what CUDA says, which may be an error of work before it.
  cudaError_t upload(cudaStream_t stream, std::span<const std::byte> from, std::byte* to, int threads);

 private:
  struct Block {
    std::byte* memory = nullptr;
    std::size_t used = 0;
    cudaStream_t stream = nullptr;  ///< of its copies
    cudaEvent_t read = nullptr;     ///< behind the last of them, once the block is not filled any more
  };

  cudaError_t add_block();
  /// Lets the last block be one with room for some bytes, for copies in this stream: that which was filled,
  /// if it is; else, empty, the oldest, if the device has read it, or a new one, or the oldest once it has
  /// been read.
  cudaError_t make_room(cudaStream_t stream);

  std::deque<Block> blocks_;  ///< the last one is filled, those before it are read, the oldest first
};

}  // namespace jigsaw::inline kernels::cuda
