#pragma once
#include <functional>

#include "comm/communicator.h"

namespace jigsaw::inline comm {

struct ThreadOptions {
  /// No wait lasts longer; then CommError names the rank, the call and who is missing.
  double time_limit_seconds = 60;
  /// A transfer is under way for latency + sent bytes / bandwidth from the last rank's start on. What one
  /// rank sends goes out one call after the other.
  double latency_seconds = 0;
  double bytes_per_second = 0;  ///< of each rank; 0: no limit
};

/// Runs `body` on `ranks` threads of this process, each with a communicator over all of them and a context
/// of its own (`communicator.context()`), host memory, and returns when all have ended. When a rank throws,
/// the pending and future calls of all others throw CommError, and the first error is thrown here. A rank
/// that waits for one whose body has returned gets a CommError, too.
void run_ranks(int ranks, const ThreadOptions& options, const std::function<Context(int rank)>& make_context,
               const std::function<void(Communicator&)>& body);

/// With reference kernels and one thread each.
void run_ranks(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace jigsaw::inline comm
