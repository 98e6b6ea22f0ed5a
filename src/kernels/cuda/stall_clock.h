#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace jigsaw::inline kernels::cuda {

/// How long a stream stands still in waits, by the clock of the device, which adds it up: also where the wait
/// is part of work that is recorded, each time that this runs.
class StallClock {
 public:
  /// @param stream  in which the waits will be.
  explicit StallClock(cudaStream_t stream);

  /// Put in before and behind a wait of the stream.
  cudaError_t begin() const;
  cudaError_t end() const;
  /// Since the last call, as far as the stream has come.
  double take_seconds();

 private:
  struct Free {
    void operator()(std::uint64_t* memory) const { cudaFree(memory); }
  };
  struct FreeHost {
    void operator()(std::uint64_t* memory) const { cudaFreeHost(memory); }
  };

  cudaStream_t stream_;
  std::unique_ptr<std::uint64_t, Free> times_;     ///< on the device: when the wait began, and the sum, in ns
  std::unique_ptr<std::uint64_t, FreeHost> told_;  ///< the sum, in page-locked memory of the host
  std::uint64_t taken_ = 0;
};

}  // namespace jigsaw::inline kernels::cuda
