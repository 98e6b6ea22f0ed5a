#pragma once
// What nvcc gives kernels, for a host compiler: see fake_cuda.h.
#include <math.h>

#include <tuple>
#include <typeinfo>
#include <utility>

#include "cuda_runtime_api.h"
#include "support/fake_cuda/fake_cuda.h"

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __shared__ static  // blocks run one after the other

struct uint3 {
  unsigned x, y, z;
};
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;
void __syncthreads();

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* configuration, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  std::tuple<Parameters...> kept(std::forward<Arguments>(arguments)...);
  return jigsaw::testing::fake_cuda::launch(*configuration, typeid(void(Parameters...)).name(),
                                            [kernel, kept] { std::apply(kernel, kept); });
}

/// Of its type, all that is known of a pointer.
template <typename F>
cudaError_t cudaFuncGetName(const char** name, F* /*kernel*/) {
  *name = typeid(F).name();
  return cudaSuccess;
}

/// There is code for Ampere and what came after.
template <typename F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* /*kernel*/) {
  *attributes = {};
  const auto& machine = jigsaw::testing::fake_cuda::machine();
  return machine.major >= 8 ? cudaSuccess : static_cast<cudaError_t>(machine.no_code);
}
