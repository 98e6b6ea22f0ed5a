#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda_context.h"
#include "support/test_device.h"

namespace jigsaw::testing {

/// The backends that run anywhere, and CUDA where there is a device: INSTANTIATE_TEST_SUITE_P(Backends, X,
/// testing::kernel_backends(), testing::backend_name).
inline auto kernel_backends() {
  std::vector<Backend> backends = {Backend::kReference, Backend::kCpu};
  if (cuda_device_count() > 0) backends.push_back(Backend::kCuda);
  return ::testing::ValuesIn(backends);
}

inline Context kernel_context(Backend backend, int threads) {
  if (backend != Backend::kCuda) return Context::make_host(backend, threads);
  Context context = make_cuda_context(0);
  cuda_test_runtime() = context;
  return context;
}

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& parameter) {
  return parameter.param == Backend::kCpu ? "cpu" : parameter.param == Backend::kCuda ? "cuda" : "reference";
}

}  // namespace jigsaw::testing
