#pragma once
#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace jigsaw::inline kernels::cuda {

/// What is summed is [samples, points, channels], in slabs: runs of points whose sums are formed apart, then
/// added in order. Without atomics results repeat.
struct Columns {
  std::int64_t samples, points, channels;
  std::int64_t slabs;

  /// Of the partial sums [N, slabs, samples, channels].
  __device__ std::int64_t place(std::int64_t number, std::int64_t slab, std::int64_t column) const {
    return (number * slabs + slab) * samples * channels + column;
  }
};

/// How many slabs there are depends on the shape alone: as many as give all multiprocessors of a GPU work,
/// each with points enough for its threads to read ahead, and so few that their sums take little memory.
inline Columns columns_of(std::int64_t samples, std::int64_t points, std::int64_t channels) {
  constexpr std::int64_t kBlocks = 2048, kMost = 1024, kLeastPoints = 64, kPointsOfThread = 8;
  const std::int64_t each = samples * ((channels + kThreads - 1) / kThreads);
  const std::int64_t lanes = kThreads / std::min<std::int64_t>(channels, kThreads);
  const std::int64_t wanted =
      std::min(kBlocks / each, points / std::max(kLeastPoints, kPointsOfThread * lanes));
  return {samples, points, channels, std::clamp<std::int64_t>(wanted, 1, kMost)};
}

/// The threads of a block over `width` columns: `lanes` threads share the points of one.
struct Lanes {
  int width, lanes;  ///< all of them
  int lane, column;  ///< this thread's

  __device__ explicit Lanes(std::int64_t most)
      : width(most < kThreads ? static_cast<int>(most) : kThreads),
        lanes(kThreads / width),
        lane(static_cast<int>(threadIdx.x) / width),
        column(static_cast<int>(threadIdx.x) % width) {}
  __device__ bool works() const { return lane < lanes; }
};

/// Adds up the sums of lanes, in their order; those of the first become those of all.
template <int N>
__device__ void add_lanes(const Lanes& all, double (&own)[N]) {
  __shared__ double sums[N][kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  for (int n = 0; n < N; ++n) sums[n][thread] = own[n];
  __syncthreads();
  for (int n = 0; all.lane == 0 && n < N; ++n) {
    own[n] = 0;
    for (int other = 0; other < all.lanes; ++other) own[n] += sums[n][other * all.width + thread];
  }
  __syncthreads();
}

/// Adds the points from `point` on, each `step` beyond the one before, to the sums, in this order. Several
/// are read before the first is added, so that their loads are under way at a time.
template <int N, typename F>
__device__ void add_points(const F& f, std::int64_t sample, std::int64_t point, std::int64_t end,
                           std::int64_t step, std::int64_t channel, double (&sums)[N]) {
  constexpr int kAhead = sizeof(typename F::Part) <= 16 ? 8 : sizeof(typename F::Part) <= 32 ? 4 : 2;
  for (; point + (kAhead - 1) * step < end; point += kAhead * step) {
    typename F::Part parts[kAhead];
    for (int a = 0; a < kAhead; ++a) parts[a] = f.read(sample, point + a * step, channel);
    for (int a = 0; a < kAhead; ++a) f.add(parts[a], sums);
  }
  for (; point < end; point += step) f.add(f.read(sample, point, channel), sums);
}

/// A block takes one slab of up to kThreads channels.
template <int N, typename F>
__global__ void slab_sums(Columns all, F f, double* partial) {
  const Lanes threads(all.channels);
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * kThreads + threads.column;
  const std::int64_t slab = blockIdx.y;
  const std::int64_t begin = all.points * slab / all.slabs, end = all.points * (slab + 1) / all.slabs;
  const bool works = threads.works() && channel < all.channels;
  for (std::int64_t sample = blockIdx.z; sample < all.samples; sample += gridDim.z) {
    double own[N] = {};
    if (works) add_points(f, sample, begin + threads.lane, end, threads.lanes, channel, own);
    add_lanes(threads, own);
    for (int n = 0; works && threads.lane == 0 && n < N; ++n)
      partial[all.place(n, slab, sample * all.channels + channel)] = own[n];
  }
}

/// The sums of slabs, as points.
template <int N>
struct Slabs {
  Columns all;
  const double* partial;

  struct Part {
    double sums[N];
  };
  __device__ Part read(std::int64_t, std::int64_t slab, std::int64_t column) const {
    Part part;
    for (int n = 0; n < N; ++n) part.sums[n] = partial[all.place(n, slab, column)];
    return part;
  }
  __device__ void add(const Part& part, double (&sums)[N]) const {
    for (int n = 0; n < N; ++n) sums[n] += part.sums[n];
  }
};

/// A block takes `width` columns.
template <int N, typename G>
__global__ void slab_totals(Slabs<N> slabs, std::int64_t width, G g) {
  const Lanes threads(width);
  const std::int64_t columns = slabs.all.samples * slabs.all.channels;
  for (std::int64_t first = blockIdx.x * width; first < columns; first += gridDim.x * width) {
    const std::int64_t column = first + threads.column;
    const bool works = threads.works() && column < columns;
    double totals[N] = {};
    if (works) add_points(slabs, 0, threads.lane, slabs.all.slabs, threads.lanes, column, totals);
    add_lanes(threads, totals);
    if (works && threads.lane == 0) g(column, totals);
  }
}

/// Sums in float64 over the points: f.read(sample, point, channel) gives an F::Part, f.add(part, sums) adds
/// it to N sums, and g(sample · channels + channel, sums) gets what they are.
template <int N, typename F, typename G>
void column_sums(Context& context, std::int64_t samples, std::int64_t points, std::int64_t channels,
                 const F& f, const G& g) {
  constexpr std::int64_t kMostInZ = 65535, kSeveral = 8, kColumns = 32;
  if (samples == 0 || channels == 0) return;
  const Columns all = columns_of(samples, points, channels);
  Array partial(context, {N, all.slabs, samples, channels}, DType::kFloat64, Purpose::kWorkspace);
  const dim3 blocks(static_cast<unsigned>((channels + kThreads - 1) / kThreads),
                    static_cast<unsigned>(all.slabs),
                    static_cast<unsigned>(samples < kMostInZ ? samples : kMostInZ));
  start_kernel(context, blocks, slab_sums<N, F>, all, f, partial.data<double>());
  const std::int64_t columns = samples * channels,
                     width = std::min<std::int64_t>(columns, all.slabs < kSeveral ? kThreads : kColumns);
  start_kernel(context, blocks_for((columns + width - 1) / width), slab_totals<N, G>,
               Slabs<N>{all, partial.data<double>()}, width, g);
}

}  // namespace jigsaw::inline kernels::cuda
