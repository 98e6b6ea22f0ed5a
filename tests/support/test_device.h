#pragma once
#include <cstdlib>
#include <optional>
#include <string_view>

#include "array/host_view.h"
#include "array/transfer.h"
#include "support/simulated_device/simulated_device.h"

namespace jigsaw::testing {

/// Whether tests run on a simulated device (ctest runs some of them so once more).
inline bool on_simulated_device() {
  const char* const device = std::getenv("JIGSAW_TEST_DEVICE");
  return device != nullptr && std::string_view(device) == "simulated";
}

/// A context on the device that the test runs on, with kernels of a host backend.
inline Context test_context(Backend kernels, int threads) {
  return on_simulated_device() ? SimulatedDevice::make_context(kernels, threads)
                               : Context::make_host(kernels, threads);
}

/// The CUDA context that a test, or this rank of one, made last, through which it looks at arrays.
inline std::optional<Context>& cuda_test_runtime() {
  static thread_local std::optional<Context> context;
  return context;
}

/// The array on the host, wherever it stands.
inline Array on_host(const Array& array) {
  if (array.device() == Device::kCuda) return download(*cuda_test_runtime(), array);
  if (array.device() != Device::kSimulated || !array.defined()) return array;
  Array host(SimulatedDevice::holding(array.identity())->host(), array.shape(), array.dtype());
  HostView<std::byte> bytes(host);
  if (!bytes.empty())
    SimulatedDevice::holding(array.identity())
        ->download(Stream::kCompute, static_cast<const std::byte*>(array.identity()), bytes);
  return host;
}

}  // namespace jigsaw::testing
