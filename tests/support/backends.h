#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda_context.h"
#include "support/test_context.h"

namespace jigsaw::testing {

/// The backends that run anywhere, and CUDA where there is a device: INSTANTIATE_TEST_SUITE_P(Backends, X,
/// testing::kernel_backends(), testing::backend_name).
inline auto kernel_backends() {
  std::vector<Backend> backends = {Backend::kReference, Backend::kCpu};
  if (cuda_device_count() > 0) backends.push_back(Backend::kCuda);
  return ::testing::ValuesIn(backends);
}

inline Context kernel_context(Backend backend, int threads) {
  return backend == Backend::kCuda ? cuda_test_context() : Context::make_host(backend, threads);
}

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& parameter) {
  return parameter.param == Backend::kCpu ? "cpu" : parameter.param == Backend::kCuda ? "cuda" : "reference";
}

}  // namespace jigsaw::testing
