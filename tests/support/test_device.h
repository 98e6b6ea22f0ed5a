#pragma once
#include <optional>

#include "array/host_view.h"
#include "array/transfer.h"
#include "support/simulated_device/simulated_device.h"

namespace jigsaw::testing {

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
