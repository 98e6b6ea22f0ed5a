#include "kernels/cuda/attention_passes.cuh"
#include "kernels/cuda/attention_passes.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// A tile of one side's tokens, in shared memory.
template <typename R, int kEach>
struct SideTile {
  HeadTile<R, kEach> x, up;

  template <typename T>
  __device__ void stage(const Side<T>& side, std::int64_t batch, std::int64_t first, std::int64_t head,
                        int chunk) {
    x.stage(side.x, batch, first, head, chunk);
    up.stage(side.up, batch, first, head, chunk);
  }
};

/// dq, or dk and dv: a block takes a tile of queries over all keys, or one of keys over all queries.
template <typename T, int kEach, bool kOfKeys>
__global__ void __launch_bounds__(kThreads, kBlocks<T, kEach>) gradients(BackwardPass<T> all) {
  using R = Accumulator<T>;
  using Tile = HeadTile<R, kEach>;
  __shared__ SideTile<R, kEach> own, other;
  __shared__ TilePairs<R> slopes, weights;
  const Side<T>&mine = kOfKeys ? all.keys : all.queries, &others = kOfKeys ? all.queries : all.keys;
  const int thread = static_cast<int>(threadIdx.x), i = thread / kAttentionTile, j = thread % kAttentionTile;
  const std::int64_t first = std::int64_t{blockIdx.x} * kAttentionTile, heads = all.places().heads;
  for (std::int64_t head = blockIdx.y; head < heads; head += gridDim.y)
    for (std::int64_t batch = blockIdx.z; batch < all.places().batches; batch += gridDim.z) {
      const HeadScoring<R> scoring = all.scoring.of_head(batch, head);
      if (Tile::kChunks == 1) own.stage(mine, batch, first, head, 0);
      R of_x[kEach] = {}, of_up[kEach] = {};
      for (std::int64_t token = 0; token < others.x.tokens(); token += kAttentionTile) {
        R dot = 0, up = 0;
        for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
          __syncthreads();
          if (Tile::kChunks > 1) own.stage(mine, batch, first, head, chunk);
          other.stage(others, batch, token, head, chunk);
          __syncthreads();
          dot = own.x.dot(i, other.x, j, dot);
          up = own.up.dot(i, other.up, j, up);
        }
        const std::int64_t query = kOfKeys ? token + j : first + i, key = kOfKeys ? first + i : token + j;
        const Pair<R> pair =
            pair_of(all.row_of(batch, head, query), all.scoring.score(scoring, query, key, dot),
                    all.scoring.factor(scoring, query, key), up);
        slopes[i][j] = pair.slope;
        if constexpr (kOfKeys) weights[i][j] = pair.weight;
#pragma unroll
        for (int chunk = Tile::kChunks - 1; chunk >= 0; --chunk) {  // the last one lies there
          __syncthreads();
          if (chunk < Tile::kChunks - 1) {
            other.x.stage(others.x, batch, token, head, chunk);
            if constexpr (kOfKeys) other.up.stage(others.up, batch, token, head, chunk);
            __syncthreads();
          }
          other.x.add_rows(slopes, i, j, of_x + chunk * Tile::kOwn);
          if constexpr (kOfKeys) other.up.add_rows(weights, i, j, of_up + chunk * Tile::kOwn);
        }
      }
      for (int e = 0; e < kEach; ++e) {
        const HeadResults& dx = kOfKeys ? all.dk : all.dq;
        dx.put(batch, first + i, head, Tile::column(j, e), static_cast<R>(all.scoring.scale) * of_x[e]);
        if constexpr (kOfKeys) all.dv.put(batch, first + i, head, Tile::column(j, e), of_up[e]);
      }
    }
}

/// dbias, or the slabs' sums [slabs, heads, queries, keys]: a block takes a tile of queries and keys over a
/// slab of the batches, whose sum is formed in float64.
template <typename T, int kEach>
__global__ void __launch_bounds__(kThreads, kBlocks<T, kEach>)
    bias_gradients(BackwardPass<T> all, unsigned key_tiles, AnyElements sums) {
  using R = Accumulator<T>;
  using Tile = HeadTile<R, kEach>;
  __shared__ SideTile<R, kEach> queries, keys;
  const int thread = static_cast<int>(threadIdx.x), i = thread / kAttentionTile, j = thread % kAttentionTile;
  const std::int64_t first_query = std::int64_t{blockIdx.x / key_tiles} * kAttentionTile,
                     first_key = std::int64_t{blockIdx.x % key_tiles} * kAttentionTile,
                     query = first_query + i, key = first_key + j, heads = all.places().heads,
                     batches = all.places().batches, slab = blockIdx.z, slabs = gridDim.z,
                     query_count = all.queries.x.tokens(), key_count = all.keys.x.tokens();
  for (std::int64_t head = blockIdx.y; head < heads; head += gridDim.y) {
    double sum = 0;
    for (std::int64_t batch = batches * slab / slabs; batch < batches * (slab + 1) / slabs; ++batch) {
      R dot = 0, up = 0;
      for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
        __syncthreads();
        queries.stage(all.queries, batch, first_query, head, chunk);
        keys.stage(all.keys, batch, first_key, head, chunk);
        __syncthreads();
        dot = queries.x.dot(i, keys.x, j, dot);
        up = queries.up.dot(i, keys.up, j, up);
      }
      const HeadScoring<R> scoring = all.scoring.of_head(batch, head);
      const Pair<R> pair =
          pair_of(all.row_of(batch, head, query), all.scoring.score(scoring, query, key, dot),
                  all.scoring.factor(scoring, query, key), up);
      sum += static_cast<double>(pair.slope);
    }
    if (query < query_count && key < key_count)
      sums.put(((slab * heads + head) * query_count + query) * key_count + key, sum);
  }
}

HeadResults results_of(HeadRows& rows) {
  return {places_of(rows), any_elements(rows.array)};
}

}  // namespace

void attention_backward_pass(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                             const Array& dy, const Array& log_sum_exp, const Array& row_sums,
                             const AttentionOptions& options, HeadRows& dq, HeadRows& dk, HeadRows& dv,
                             Array& dbias) {
  visit(q.array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using R = Accumulator<T>;
    const BackwardPass<T> all{{heads_of<T>(q), heads_of<T>(dy)},
                              {heads_of<T>(k), heads_of<T>(v)},
                              scoring_of<R>(context, q, k, options),
                              log_sum_exp.data<R>(),
                              row_sums.data<R>(),
                              results_of(dq),
                              results_of(dk),
                              results_of(dv)};
    if constexpr (std::is_same_v<T, BFloat16>)
      if (q.head_size() <= kLargestTensorHead) return gradients_on_tensor_cores(context, all, dbias);
    visit_head_size<T>(q.head_size(), [&](auto each) {
      constexpr int kEach = each.value;
      const auto start = [&](const HeadRows& rows, auto kernel) {
        if (rows.batches() * rows.heads() * rows.tokens() == 0) return;
        start_kernel(context, blocks_of_heads(tiles_of(rows.tokens()), rows.heads(), rows.batches()), kernel,
                     all);
      };
      start(q, gradients<T, kEach, false>);
      start(k, gradients<T, kEach, true>);
      if (dbias.defined() && dbias.count() > 0)
        form_bias_gradients(context, all, dbias, kAttentionTile, bias_gradients<T, kEach>);
    });
  });
}

}  // namespace jigsaw::inline kernels::cuda
