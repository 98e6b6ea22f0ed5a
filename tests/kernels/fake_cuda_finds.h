#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cuda_runtime.h"
#include "kernels/cuda/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/fake_cuda/fake_cuda.h"

namespace jigsaw::testing {

/// Of a block of the kernels that tests start.
inline constexpr unsigned kThreads = 64;

/// A context on a device of the fake CUDA runtime.
class FakeCudaFinds : public ::testing::Test {
 protected:
  void TearDown() override {
    fake_cuda::fail_next(cudaSuccess);
    fake_cuda::machine().pinned = fake_cuda::Machine().pinned;
  }

  Array numbers(std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    return array_of(context_, {count}, DType::kFloat32, values);
  }
  template <typename... Parameters, typename... Arguments>
  void start(unsigned blocks, void (*kernel)(Parameters...), Arguments... arguments) {
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = dim3(blocks);
    configuration.blockDim = dim3(kThreads);
    configuration.stream = cuda::stream_of(context_);
    cuda::check(cudaLaunchKernelEx(&configuration, kernel, arguments...), "start a kernel");
  }

  Context context_ = kernel_context(Backend::kCuda, 1);
};

}  // namespace jigsaw::testing
