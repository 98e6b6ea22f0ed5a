#pragma once
#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "array/raw_memory.h"
#include "kernels/cuda/error.h"

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

constexpr int kThreads = 256;

/// Σ over the threads of a block, in a fixed order; all threads get it.
template <typename R>
__device__ R block_sum(R value) {
  __shared__ R sums[kThreads];
  const unsigned thread = threadIdx.x;
  sums[thread] = value;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  const R total = sums[0];
  __syncthreads();
  return total;
}

template <typename F>
__global__ void run_elements(std::int64_t count, F f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    f(i);
}

/// Blocks for so many independent pieces of work; kernels stride over what is beyond.
inline unsigned blocks_for(std::int64_t pieces) {
  constexpr std::int64_t kMost = 1 << 16;
  return static_cast<unsigned>(pieces < kMost ? pieces : kMost);
}

/// Calls f(i) on the device for i in [0, count), on the context's stream.
template <typename F>
void for_elements(const Context& context, std::int64_t count, const F& f) {
  if (count == 0) return;
  run_elements<<<blocks_for((count + kThreads - 1) / kThreads), kThreads, 0, stream_of(context)>>>(count, f);
  check(cudaGetLastError(), "start a kernel");
}

}  // namespace jigsaw::inline kernels::cuda
