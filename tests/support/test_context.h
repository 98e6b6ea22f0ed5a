#pragma once
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda_context.h"
#include "support/test_device.h"

namespace jigsaw::testing {

/// A context on the first GPU, through which this thread then looks at arrays. Ranks that are threads share
/// the GPU.
inline Context cuda_test_context() {
  Context context = make_cuda_context(0);
  cuda_test_runtime() = context;
  return context;
}

/// A context on the device that JIGSAW_TEST_DEVICE names, "simulated" or "cuda" (ctest runs some tests so
/// once more), or else on the host; with kernels of a host backend, but on CUDA its own.
inline Context test_context(Backend kernels, int threads) {
  const char* const given = std::getenv("JIGSAW_TEST_DEVICE");
  const std::string device = given == nullptr ? "" : given;
  if (device == "cuda") return cuda_test_context();
  if (device == "simulated") return SimulatedDevice::make_context(kernels, threads);
  if (!device.empty())
    fail(concat("JIGSAW_TEST_DEVICE is \"", device, "\": neither \"simulated\" nor \"cuda\""));
  return Context::make_host(kernels, threads);
}

}  // namespace jigsaw::testing
