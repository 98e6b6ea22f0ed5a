#pragma once
// Whole runs of ranks on the host, on a simulated device, or with CUDA's kernels.
#include <gtest/gtest.h>

#include <string>

#include "base/log.h"
#include "comm/thread/run_ranks.h"
#include "kernels/cuda_context.h"
#include "support/simulated_device/simulated_device.h"

namespace jigsaw::testing {

enum class Where { kHost, kSimulated, kCuda };

inline Context make_context(Where where) {
  switch (where) {
    case Where::kSimulated:
      return SimulatedDevice::make_context(Backend::kCpu, 1);
    case Where::kCuda:
      return make_cuda_context(0);
    case Where::kHost:
      break;
  }
  return Context::make_host(Backend::kCpu, 1);
}

/// Calls body(world, log) on ranks that are threads; what they print is shown where they fail.
template <typename F>
void on_ranks(const char* name, int ranks, Where where, const F& body) {
  ::testing::internal::CaptureStdout();
  std::string failed;
  try {
    run_ranks(
        ranks, {}, [&](int) { return make_context(where); },
        [&](Communicator& world) {
          ASSERT_EQ(world.size(), ranks);
          Log log(world.rank() == 0);
          body(world, log);
        });
  } catch (const std::exception& error) {
    failed = error.what();
  }
  const std::string said = ::testing::internal::GetCapturedStdout();
  if (!failed.empty()) ADD_FAILURE() << name << ": " << failed << "\n" << said;
}

}  // namespace jigsaw::testing
