#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "array/device_runtime.h"

namespace jigsaw::inline kernels::cuda {

/// A number in memory of the host that a stream sets as it goes, so that any thread sees how far it has come,
/// also while the device hangs or after it has failed.
class StreamCounter {
 public:
  StreamCounter();

  /// Puts into the stream, always the same one, that the number becomes last(). False where the driver cannot
  /// do that, or earlier work has failed.
  bool count(cudaStream_t stream);
  /// Whether the driver can, as far as it is known.
  bool can_count() const { return counts_; }
  std::uint32_t last() const { return last_; }
  std::uint32_t reached() const;
  /// Of the last count().
  Milestone milestone() const { return {reached_, last_}; }

  /// The same for recorded work: the number grows by one each time that it runs, and the host calls advance()
  /// whenever it launches it.
  cudaError_t record_count(cudaStream_t stream) const;
  void advance(std::uint32_t counts) { last_ += counts; }
  bool counts(const Milestone& milestone) const { return milestone.counts_by(reached_); }

 private:
  std::shared_ptr<std::uint32_t> reached_;  ///< in pinned memory of the host
  std::uint32_t last_ = 0;
  bool counts_ = true;
};

}  // namespace jigsaw::inline kernels::cuda
