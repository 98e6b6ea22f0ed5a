#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <math.h>

#include <cstdint>
#include <type_traits>

#include "array/raw_memory.h"
#include "kernels/cuda/error.h"
#include "kernels/divisor.h"

namespace jigsaw::inline kernels::cuda {

/// The type a kernel reads an element as: BFloat16 has no device functions, CUDA's own type has.
template <typename T>
using Element = std::conditional_t<std::is_same_v<T, BFloat16>, __nv_bfloat16, T>;

template <typename T>
const Element<T>* elements(const Array& array) {
  return reinterpret_cast<const Element<T>*>(array.raw());
}
template <typename T>
Element<T>* elements(Array& array) {
  return reinterpret_cast<Element<T>*>(array.raw());
}

/// An element in the type R of a computation, and back.
template <typename R, typename E>
__device__ R load(E value) {
  if constexpr (std::is_same_v<E, __nv_bfloat16>) {
    return static_cast<R>(__bfloat162float(value));
  } else {
    return static_cast<R>(value);
  }
}
template <typename E, typename R>
__device__ E stored(R value) {
  if constexpr (std::is_same_v<E, __nv_bfloat16>) {
    return __float2bfloat16(static_cast<float>(value));
  } else {
    return static_cast<E>(value);
  }
}

/// Elements whose type only the array knows: for operands of which there are few, so that kernels need not be
/// compiled for each.
struct AnyElements {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  DType type = DType::kFloat32;

  template <typename R>
  __device__ R get(std::int64_t i) const {
    if (type == DType::kFloat64) return static_cast<R>(reinterpret_cast<const double*>(from)[i]);
    if (type == DType::kFloat32) return static_cast<R>(reinterpret_cast<const float*>(from)[i]);
    return load<R>(reinterpret_cast<const __nv_bfloat16*>(from)[i]);
  }
  template <typename R>
  __device__ void put(std::int64_t i, R value) const {
    if (type == DType::kFloat64) {
      reinterpret_cast<double*>(to)[i] = static_cast<double>(value);
    } else if (type == DType::kFloat32) {
      reinterpret_cast<float*>(to)[i] = static_cast<float>(value);
    } else {
      reinterpret_cast<__nv_bfloat16*>(to)[i] = stored<__nv_bfloat16>(value);
    }
  }
};
inline AnyElements any_elements(const Array& array) {
  return {array.raw(), nullptr, array.dtype()};
}
inline AnyElements any_elements(Array& array) {
  return {array.raw(), array.raw(), array.dtype()};
}

/// n / divisor.by, of n ≥ 0.
__device__ inline std::int64_t quotient(std::int64_t n, const Divisor& divisor) {
  if (n >> 31 != 0) return n / divisor.by;
  const auto low = static_cast<std::uint32_t>(n);
  return (static_cast<std::uint32_t>(std::uint64_t{low} * divisor.magic >> 32) + low) >> divisor.shift;
}
/// n modulo the divisor; n becomes the quotient.
__device__ inline std::int64_t take_digit(std::int64_t& n, const Divisor& divisor) {
  const std::int64_t whole = n;
  n = quotient(whole, divisor);
  return whole - n * divisor.by;
}

constexpr int kThreads = 256;

/// Σ of N numbers over groups of `width` neighbouring threads of a block, a power of two from 16 on, in a
/// fixed order; all of a group get it. All threads of the block call it.
template <typename R, int N>
__device__ void group_sums(int width, R (&values)[N]) {
  constexpr int kPart = 16, kParts = kThreads / kPart;
  __shared__ R own[N][kThreads + kParts], parts[N][kParts];  // parts of 16 begin in different banks
  const int thread = static_cast<int>(threadIdx.x);
  for (int n = 0; n < N; ++n) own[n][thread + thread / kPart] = values[n];
  __syncthreads();
  for (int n = 0; n < N && thread < kParts; ++n) {
    R sum = 0;
    for (int other = 0; other < kPart; ++other) sum += own[n][thread * (kPart + 1) + other];
    parts[n][thread] = sum;
  }
  __syncthreads();
  for (int n = 0; n < N; ++n) {
    values[n] = 0;
    for (int part = 0; part < width / kPart; ++part)
      values[n] += parts[n][thread / width * (width / kPart) + part];
  }
}

/// Over all threads of a block.
template <typename R>
__device__ R block_sum(R value) {
  R sums[] = {value};
  group_sums(kThreads, sums);
  return sums[0];
}

/// Blocks for so many independent pieces of work; kernels stride over what is beyond.
inline unsigned blocks_for(std::int64_t pieces) {
  constexpr std::int64_t kMost = 1 << 16;
  return static_cast<unsigned>(pieces < kMost ? pieces : kMost);
}

/// Starts a kernel in blocks of kThreads threads, on the context's stream. There is at least one block.
template <typename... Parameters, typename... Arguments>
void start_kernel(const Context& context, dim3 blocks, void (*kernel)(Parameters...),
                  const Arguments&... arguments) {
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = blocks;
  configuration.blockDim = dim3(kThreads);
  configuration.stream = stream_of(context);
  const cudaError_t status = cudaLaunchKernelEx(&configuration, kernel, arguments...);
  if (status == cudaSuccess && !launches_wait(context)) return;
  const char* name = "";
  cudaFuncGetName(&name, kernel);
  launched(context, status, name);
}

template <typename F>
__global__ void run_elements(std::int64_t count, F f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    f(i);
}

/// Calls f(i) on the device for i in [0, count), on the context's stream.
template <typename F>
void for_elements(const Context& context, std::int64_t count, const F& f) {
  if (count == 0) return;
  start_kernel(context, blocks_for((count + kThreads - 1) / kThreads), run_elements<F>, count, f);
}

}  // namespace jigsaw::inline kernels::cuda
