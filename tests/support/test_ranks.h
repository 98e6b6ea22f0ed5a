#pragma once
#include <functional>

#include "comm/thread/run_ranks.h"
#include "support/test_context.h"

namespace jigsaw::testing {

using RankBody = std::function<void(Communicator&)>;
/// How tests run ranks, in programs that are linked with another way than threads on the host
/// (tests/comm/nccl/nccl_test_ranks.cpp); else empty.
using RunRanks = std::function<void(int ranks, const ThreadOptions& options, const RankBody& body)>;
inline RunRanks& other_ranks() {
  static RunRanks run;
  return run;
}

/// run_ranks() on the device that the test runs on, with kernels of a host backend (on CUDA its own) and one
/// thread each.
inline void run_test_ranks(int ranks, const ThreadOptions& options, Backend kernels, const RankBody& body) {
  if (other_ranks()) return other_ranks()(ranks, options, body);
  run_ranks(
      ranks, options, [kernels](int) { return test_context(kernels, 1); }, body);
}
inline void run_test_ranks(int ranks, const RankBody& body) {
  run_test_ranks(ranks, {}, Backend::kReference, body);
}

}  // namespace jigsaw::testing
