#include "kernels/cuda/attention_passes.cuh"
#include "kernels/cuda/attention_tensor_tiles.cuh"

namespace jigsaw::inline kernels::cuda {

namespace {

template <int kWidth>
struct SideTile {
  TokenTile<kWidth> x, up;

  __device__ void stage(const Side<BFloat16>& side, std::int64_t batch, std::int64_t first,
                        std::int64_t head) {
    x.stage(side.x, batch, first, head);
    up.stage(side.up, batch, first, head);
  }
};
/// For each pair of query and key of a tile, the dot products q·k (x) and dy·v (up).
struct SideProducts {
  PairTile<float> x, up;

  template <int kWidth>
  __device__ void multiply(const SideTile<kWidth>& a, const SideTile<kWidth>& b) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (warp < 4) {
      multiply_rows(a.x, b.x, warp, x);
    } else {
      multiply_rows(a.up, b.up, warp - 4, up);
    }
  }
};

/// dq, or dk and dv: a block takes a tile of queries over all keys, or one of keys over all queries.
template <int kWidth, bool kOfKeys>
__global__ void __launch_bounds__(kThreads, kOfKeys ? 2 : kTensorBlocks<kWidth>)
    gradients(BackwardPass<BFloat16> all) {
  static_assert(2 * sizeof(SideTile<kWidth>) + sizeof(SideProducts) + 2 * sizeof(PairTile<__nv_bfloat16>) <=
                48 << 10);  // what a block may have
  __shared__ SideTile<kWidth> own, other;
  __shared__ SideProducts products;
  __shared__ PairTile<__nv_bfloat16> slopes, weights;
  const Side<BFloat16>&mine = kOfKeys ? all.keys : all.queries, &others = kOfKeys ? all.queries : all.keys;
  const int thread = static_cast<int>(threadIdx.x), i = thread / kThreadsOfQuery,
            j = thread % kThreadsOfQuery * kKeysOfThread;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTensorTile, heads = all.places().heads;
  for (std::int64_t head = blockIdx.y; head < heads; head += gridDim.y)
    for (std::int64_t batch = blockIdx.z; batch < all.places().batches; batch += gridDim.z) {
      const HeadScoring<float> scoring = all.scoring.of_head(batch, head);
      own.stage(mine, batch, first, head);
      TokenSums<kWidth> of_x, of_up;
      for (std::int64_t token = 0; token < others.x.tokens(); token += kTensorTile) {
        const std::int64_t query = (kOfKeys ? token : first) + i, key = (kOfKeys ? first : token) + j;
        float factors[kKeysOfThread];
        all.scoring.factors(scoring, query, key, factors);
        __syncthreads();
        other.stage(others, batch, token, head);
        __syncthreads();
        products.multiply(own, other);
        __syncthreads();
        const QueryRow<float> row = all.row_of(batch, head, query);
        for (int k = 0; k < kKeysOfThread; ++k) {
          const int a = kOfKeys ? j + k : i, b = kOfKeys ? i : j + k;
          const Pair<float> pair =
              pair_of(row, all.scoring.score(scoring, query, key + k, products.x.x[a][b]), factors[k],
                      products.up.x[a][b]);
          slopes.x[a][b] = stored<__nv_bfloat16>(pair.slope);
          if constexpr (kOfKeys) weights.x[a][b] = stored<__nv_bfloat16>(pair.weight);
        }
        __syncthreads();
        of_x.add(slopes, other.x);
        if constexpr (kOfKeys) of_up.add(weights, other.up);
      }
      const auto scale = static_cast<float>(all.scoring.scale);
      of_x.put(kOfKeys ? all.dk : all.dq, batch, first, head, scale, products.x);
      if constexpr (kOfKeys) of_up.put(all.dv, batch, first, head, 1.0F, products.up);
    }
}

/// dbias, or the slabs' sums [slabs, heads, queries, keys]: a block takes a tile of queries and keys over a
/// slab of the batches, whose sum is formed in float64.
template <int kWidth>
__global__ void __launch_bounds__(kThreads, kTensorBlocks<kWidth>)
    bias_gradients(BackwardPass<BFloat16> all, unsigned key_tiles, AnyElements sums) {
  __shared__ SideTile<kWidth> queries, keys;
  __shared__ SideProducts products;
  const int thread = static_cast<int>(threadIdx.x), i = thread / kThreadsOfQuery,
            j = thread % kThreadsOfQuery * kKeysOfThread;
  const std::int64_t first_query = std::int64_t{blockIdx.x / key_tiles} * kTensorTile,
                     first_key = std::int64_t{blockIdx.x % key_tiles} * kTensorTile, query = first_query + i,
                     key = first_key + j, heads = all.places().heads, batches = all.places().batches,
                     slab = blockIdx.z, slabs = gridDim.z, query_count = all.queries.x.tokens(),
                     key_count = all.keys.x.tokens();
  for (std::int64_t head = blockIdx.y; head < heads; head += gridDim.y) {
    double sum[kKeysOfThread] = {};
    for (std::int64_t batch = batches * slab / slabs; batch < batches * (slab + 1) / slabs; ++batch) {
      const HeadScoring<float> scoring = all.scoring.of_head(batch, head);
      __syncthreads();
      queries.stage(all.queries, batch, first_query, head);
      keys.stage(all.keys, batch, first_key, head);
      __syncthreads();
      products.multiply(queries, keys);
      const QueryRow<float> row = all.row_of(batch, head, query);
      float factors[kKeysOfThread];
      all.scoring.factors(scoring, query, key, factors);
      __syncthreads();
      for (int k = 0; k < kKeysOfThread; ++k) {
        const Pair<float> pair =
            pair_of(row, all.scoring.score(scoring, query, key + k, products.x.x[i][j + k]), factors[k],
                    products.up.x[i][j + k]);
        sum[k] += static_cast<double>(pair.slope);
      }
    }
    for (int k = 0; k < kKeysOfThread && query < query_count && key + k < key_count; ++k)
      sums.put(((slab * heads + head) * query_count + query) * key_count + key + k, sum[k]);
  }
}

}  // namespace

void gradients_on_tensor_cores(Context& context, const BackwardPass<BFloat16>& all, Array& dbias) {
  visit_head_width(all.queries.x.places.d, [&](auto width) {
    constexpr int kWidth = width.value;
    const auto start = [&](const HeadPlaces& places, auto* kernel) {
      if (places.batches * places.heads * places.tokens == 0) return;
      start_kernel(context,
                   blocks_of_heads(tiles_of(places.tokens, kTensorTile), places.heads, places.batches),
                   kernel, all);
    };
    start(all.queries.x.places, gradients<kWidth, false>);
    start(all.keys.x.places, gradients<kWidth, true>);
    if (dbias.defined() && dbias.count() > 0)
      form_bias_gradients(context, all, dbias, kTensorTile, bias_gradients<kWidth>);
  });
}

}  // namespace jigsaw::inline kernels::cuda
