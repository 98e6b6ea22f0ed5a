#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "array/current_work.h"
#include "kernels/cuda/stream_counter.h"

namespace jigsaw::inline kernels::cuda {

/// How far a stream has come, in operations: the stream itself writes the number of each that begins into
/// memory of the host, which can still be read when the device has failed.
class Progress {
 public:
  /// @param work  what the rank works on.
  explicit Progress(std::shared_ptr<const CurrentWork> work) : work_(std::move(work)) {}

  /// Before work is put into the stream.
  void mark(cudaStream_t stream);
  /// What the stream was at: CurrentWork::text() of that time.
  std::string text() const;

 private:
  std::shared_ptr<const CurrentWork> work_;
  StreamCounter counter_;
  bool marks_ = true;  ///< the driver can; else the operation that the host has come to is all that is known
  std::int64_t changes_ = -1;                                  ///< of the work that was marked last
  std::deque<std::pair<std::uint32_t, std::string>> to_come_;  ///< what was begun and not left
};

}  // namespace jigsaw::inline kernels::cuda
