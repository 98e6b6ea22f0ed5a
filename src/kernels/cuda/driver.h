#pragma once
#include <cuda_runtime_api.h>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/error.h"

namespace jigsaw::inline kernels::cuda {

/// A function of the driver, null where the driver lacks it. Programs are not linked with the driver, so that
/// they start on machines without one.
template <typename Function>
Function* find_driver_function(const char* name) {
  constexpr unsigned kVersion = 12000;  // whose signatures these are
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &found),
        "look for a function of the driver");
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function*>(function) : nullptr;
}

/// Throws Error where the driver has not that function.
template <typename Function>
Function* driver_function(const char* name) {
  auto* const function = find_driver_function<Function>(name);
  if (function == nullptr) fail(concat("the CUDA driver has no function ", name));
  return function;
}

}  // namespace jigsaw::inline kernels::cuda
