#pragma once
#include "kernels/cuda/device.cuh"

namespace jigsaw::inline kernels::cuda {

/// Runs of points whose sums are formed apart, then added in order: without atomics results repeat. How many
/// there are depends on the number of points alone.
inline std::int64_t slabs_of(std::int64_t points) {
  constexpr std::int64_t kSlab = 512, kMost = 128;
  const std::int64_t slabs = (points + kSlab - 1) / kSlab;
  return slabs < 1 ? 1 : slabs < kMost ? slabs : kMost;
}

/// What is summed is [samples, points, channels].
struct Columns {
  std::int64_t samples, points, channels;
  std::int64_t slabs;

  /// Of the partial sums [N, slabs, samples, channels].
  __device__ std::int64_t place(std::int64_t number, std::int64_t slab, std::int64_t column) const {
    return (number * slabs + slab) * samples * channels + column;
  }
};

/// A block takes one slab of up to kThreads channels; where there are fewer, its threads share the points.
template <int N, typename F>
__global__ void slab_sums(Columns all, F f, double* partial) {
  __shared__ double sums[N][kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int width = all.channels < kThreads ? static_cast<int>(all.channels) : kThreads;
  const int lanes = kThreads / width, lane = thread / width;
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * kThreads + thread % width;
  const std::int64_t slab = blockIdx.y;
  const bool works = lane < lanes && channel < all.channels;
  for (std::int64_t sample = blockIdx.z; sample < all.samples; sample += gridDim.z) {
    double own[N] = {};
    const std::int64_t end = all.points * (slab + 1) / all.slabs;
    for (std::int64_t point = all.points * slab / all.slabs + lane; works && point < end; point += lanes)
      f(sample, point, channel, own);
    for (int n = 0; n < N; ++n) sums[n][thread] = own[n];
    __syncthreads();
    for (int n = 0; works && lane == 0 && n < N; ++n) {
      double total = 0;
      for (int other = 0; other < lanes; ++other) total += sums[n][other * width + thread];
      partial[all.place(n, slab, sample * all.channels + channel)] = total;
    }
    __syncthreads();
  }
}

template <int N, typename G>
struct SlabTotals {
  Columns all;
  const double* partial;
  G g;
  __device__ void operator()(std::int64_t column) const {
    double totals[N] = {};
    for (int n = 0; n < N; ++n) {
      for (std::int64_t slab = 0; slab < all.slabs; ++slab) totals[n] += partial[all.place(n, slab, column)];
    }
    g(column, totals);
  }
};

/// Sums in float64 over the points: f(sample, point, channel, sums) adds an element's part to N sums, and
/// g(sample · channels + channel, sums) gets what they are.
template <int N, typename F, typename G>
void column_sums(Context& context, std::int64_t samples, std::int64_t points, std::int64_t channels,
                 const F& f, const G& g) {
  constexpr std::int64_t kMostInZ = 65535;
  if (samples == 0 || channels == 0) return;
  const Columns all{samples, points, channels, slabs_of(points)};
  Array partial(context, {N, all.slabs, samples, channels}, DType::kFloat64, Purpose::kWorkspace);
  const dim3 blocks(static_cast<unsigned>((channels + kThreads - 1) / kThreads),
                    static_cast<unsigned>(all.slabs),
                    static_cast<unsigned>(samples < kMostInZ ? samples : kMostInZ));
  start_kernel(context, blocks, slab_sums<N, F>, all, f, partial.data<double>());
  for_elements(context, samples * channels, SlabTotals<N, G>{all, partial.data<double>(), g});
}

}  // namespace jigsaw::inline kernels::cuda
