#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace jigsaw::inline kernels::cuda {

/// How long a stream stands still in waits, by the clock of the device, which adds it up: also where the wait
/// is part of work that is recorded, each time that this runs.
class StallClock {
 public:
  /// @param stream  in which the waits will be.
  explicit StallClock(cudaStream_t stream);
  ~StallClock();
  StallClock(const StallClock&) = delete;
  StallClock& operator=(const StallClock&) = delete;

  /// Put in before and behind a wait of the stream.
  cudaError_t begin() const;
  cudaError_t end() const;
  /// Since the last call, as far as the stream has come.
  double take_seconds();

 private:
  cudaStream_t stream_;
  std::uint64_t* times_ = nullptr;  ///< on the device: when the wait began, and the sum, in ns
  std::uint64_t* told_ = nullptr;   ///< the sum, in page-locked memory of the host
  std::uint64_t taken_ = 0;
};

}  // namespace jigsaw::inline kernels::cuda
