#pragma once
#include <functional>

#include "comm/thread/run_ranks.h"
#include "support/test_device.h"

namespace jigsaw::testing {

/// run_ranks() on the device that the test runs on, with reference kernels and one thread each.
inline void run_test_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  run_ranks(
      ranks, {}, [](int) { return test_context(Backend::kReference, 1); }, body);
}

}  // namespace jigsaw::testing
