#pragma once
#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace jigsaw::inline kernels::cuda {

/// The most bytes that a thread loads or stores at once.
constexpr std::size_t kPacketBytes = 16;

/// Elements that a thread processes together in an elementwise function of arrays of these types.
template <typename... E>
constexpr int kPacket = static_cast<int>(kPacketBytes / std::max({sizeof(E)...}));

template <typename E, int kCount>
struct alignas(std::min(kPacketBytes, sizeof(E) * kCount)) Packet {
  E elements[kCount];
};

/// Elements from number `i` on, in the type of a computation, and back.
template <int kCount, typename E, typename R>
__device__ void read_packet(const E* from, std::int64_t i, R (&values)[kCount]) {
  const auto packet = *reinterpret_cast<const Packet<E, kCount>*>(from + i);
  for (int k = 0; k < kCount; ++k) values[k] = load<R>(packet.elements[k]);
}
template <int kCount, typename E, typename R>
__device__ void write_packet(E* to, std::int64_t i, const R (&values)[kCount]) {
  Packet<E, kCount> packet;
  for (int k = 0; k < kCount; ++k) packet.elements[k] = stored<E>(values[k]);
  *reinterpret_cast<Packet<E, kCount>*>(to + i) = packet;
}

/// The same of elements whose type only the array knows.
template <int kCount, typename R>
__device__ void read_packet(const AnyElements& from, std::int64_t i, R (&values)[kCount]) {
  if (from.type == DType::kFloat64) return read_packet(reinterpret_cast<const double*>(from.from), i, values);
  if (from.type == DType::kFloat32) return read_packet(reinterpret_cast<const float*>(from.from), i, values);
  read_packet(reinterpret_cast<const __nv_bfloat16*>(from.from), i, values);
}
template <int kCount, typename R>
__device__ void write_packet(const AnyElements& to, std::int64_t i, const R (&values)[kCount]) {
  if (to.type == DType::kFloat64) return write_packet(reinterpret_cast<double*>(to.to), i, values);
  if (to.type == DType::kFloat32) return write_packet(reinterpret_cast<float*>(to.to), i, values);
  write_packet(reinterpret_cast<__nv_bfloat16*>(to.to), i, values);
}

/// Whether packets of all arrays lie where they can be read; null: there is no array.
template <int kCount, typename... E>
bool begin_packets(const E*... arrays) {
  return ((reinterpret_cast<std::uintptr_t>(arrays) % alignof(Packet<E, kCount>) == 0) && ...);
}

template <int kCount>
bool begin_packets(const AnyElements& array) {
  const std::size_t bytes = static_cast<std::size_t>(size_of(array.type)) * kCount;
  return reinterpret_cast<std::uintptr_t>(array.from) % std::min(kPacketBytes, bytes) == 0;
}

template <int kCount, typename F>
__global__ void run_packets(std::int64_t count, F f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x, packets = count / kCount,
                     pieces = packets + count % kCount;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pieces;
       i += step) {
    if (i < packets) {
      f.template at<kCount>(i * kCount);
    } else {
      f.template at<1>(packets * (kCount - 1) + i);
    }
  }
}

/// Covers the elements [0, count): f.at<F::kCount>(i) takes F::kCount of them from i on, f.at<1>(i) one that
/// is left at the end, or each where the function does not fit() packets.
template <typename F>
void for_packets(const Context& context, std::int64_t count, const F& f) {
  const auto start = [&](auto* kernel, std::int64_t pieces) {
    start_kernel(context, blocks_for((pieces + kThreads - 1) / kThreads), kernel, count, f);
  };
  if (count == 0) return;
  if (!f.fits()) return start(run_packets<1, F>, count);
  start(run_packets<F::kCount, F>, count / F::kCount + count % F::kCount);
}

}  // namespace jigsaw::inline kernels::cuda
