#include "array/raw_memory.h"
#include "kernels/cuda/attention_passes.h"
#include "kernels/cuda/attention_tiles.cuh"

namespace jigsaw::inline kernels::cuda {

namespace {

template <typename T>
struct BackwardPass {
  using R = Accumulator<T>;
  Heads<T> q, k, v, dy;
  Scoring<R> scoring;
  const R *log_sum_exp, *row_sums;
  HeadResults dq, dk, dv;
  AnyElements dbias;

  __device__ std::int64_t row(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    return (batch * q.places.heads + head) * q.tokens() + query;
  }
};

/// A pair of query and key: its weight after dropout, and the gradient of its score.
template <typename R>
struct Pair {
  R weight, slope;
};

/// The block's thread (i, j) gets the pair of query first_query + i and key first_key + j; nothing beyond.
template <typename T>
__device__ Pair<Accumulator<T>> pair_of(const BackwardPass<T>& all, std::int64_t batch, std::int64_t head,
                                        const HeadDropout& dropout, std::int64_t first_query,
                                        std::int64_t first_key) {
  using R = Accumulator<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t query = first_query + thread / kAttentionTile, key = first_key + thread % kAttentionTile;
  const R dot = tile_dots<R>(all.q, first_query, all.k, first_key, batch, head);
  const R up = tile_dots<R>(all.dy, first_query, all.v, first_key, batch, head);
  if (query >= all.q.tokens() || key >= all.k.tokens()) return {R(0), R(0)};
  const std::int64_t row = all.row(batch, head, query);
  const R known = all.log_sum_exp[row];
  if (known == -static_cast<R>(INFINITY)) return {R(0), R(0)};
  const R weight = exp(all.scoring.score(batch, head, query, key, dot) - known);
  const R factor = all.scoring.factor(dropout, query, key);
  return {weight * factor, weight * (factor * up - all.row_sums[row])};
}

/// dq: a block takes a tile of queries over all keys.
template <typename T>
__global__ void query_gradients(BackwardPass<T> all, std::int64_t tiles) {
  using R = Accumulator<T>;
  __shared__ R slopes[kAttentionTile][kAttentionTile + 1];
  const int thread = static_cast<int>(threadIdx.x), i = thread / kAttentionTile, j = thread % kAttentionTile;
  const std::int64_t heads = all.q.places.heads, pieces = all.q.places.batches * heads * tiles;
  for (std::int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::int64_t first = piece % tiles * kAttentionTile, head = piece / tiles % heads,
                       batch = piece / tiles / heads;
    const HeadDropout dropout = all.scoring.dropout_of(batch, head);
    R sums[kHeadEach] = {};
    for (std::int64_t key = 0; key < all.k.tokens(); key += kAttentionTile) {
      const Pair<R> pair = pair_of(all, batch, head, dropout, first, key);
      slopes[i][j] = pair.slope;
      __syncthreads();
      for (int c = 0; c < kHeadEach; ++c) {
        for (int n = 0; n < kAttentionTile && j + c * kAttentionTile < all.k.places.d; ++n)
          sums[c] += slopes[i][n] * all.k.template get<R>(batch, key + n, head, j + c * kAttentionTile);
      }
      __syncthreads();
    }
    for (int c = 0; c < kHeadEach; ++c) {
      all.dq.put(batch, first + i, head, j + c * kAttentionTile, static_cast<R>(all.scoring.scale) * sums[c]);
    }
  }
}

/// dk and dv: a block takes a tile of keys over all queries.
template <typename T>
__global__ void key_gradients(BackwardPass<T> all, std::int64_t tiles) {
  using R = Accumulator<T>;
  __shared__ R slopes[kAttentionTile][kAttentionTile + 1], weights[kAttentionTile][kAttentionTile + 1];
  const int thread = static_cast<int>(threadIdx.x), i = thread / kAttentionTile, j = thread % kAttentionTile;
  const std::int64_t heads = all.q.places.heads, pieces = all.q.places.batches * heads * tiles;
  for (std::int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::int64_t first = piece % tiles * kAttentionTile, head = piece / tiles % heads,
                       batch = piece / tiles / heads;
    const HeadDropout dropout = all.scoring.dropout_of(batch, head);
    R of_k[kHeadEach] = {}, of_v[kHeadEach] = {};
    for (std::int64_t query = 0; query < all.q.tokens(); query += kAttentionTile) {
      const Pair<R> pair = pair_of(all, batch, head, dropout, query, first);
      slopes[i][j] = pair.slope;
      weights[i][j] = pair.weight;
      __syncthreads();
      for (int c = 0; c < kHeadEach; ++c) {
        const std::int64_t column = j + c * kAttentionTile;
        for (int n = 0; n < kAttentionTile && column < all.q.places.d; ++n) {
          of_k[c] += slopes[n][i] * all.q.template get<R>(batch, query + n, head, column);
          of_v[c] += weights[n][i] * all.dy.template get<R>(batch, query + n, head, column);
        }
      }
      __syncthreads();
    }
    for (int c = 0; c < kHeadEach; ++c) {
      const std::int64_t column = j + c * kAttentionTile;
      all.dk.put(batch, first + i, head, column, static_cast<R>(all.scoring.scale) * of_k[c]);
      all.dv.put(batch, first + i, head, column, of_v[c]);
    }
  }
}

/// dbias: a block takes a tile of queries and keys over all batches, whose sum is formed in float64.
template <typename T>
__global__ void bias_gradients(BackwardPass<T> all, std::int64_t query_tiles, std::int64_t key_tiles) {
  const int thread = static_cast<int>(threadIdx.x), i = thread / kAttentionTile, j = thread % kAttentionTile;
  const std::int64_t pieces = all.q.places.heads * query_tiles * key_tiles;
  for (std::int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::int64_t first_key = piece % key_tiles * kAttentionTile,
                       first_query = piece / key_tiles % query_tiles * kAttentionTile,
                       head = piece / key_tiles / query_tiles;
    double sum = 0;
    for (std::int64_t batch = 0; batch < all.q.places.batches; ++batch) {
      const HeadDropout dropout = all.scoring.dropout_of(batch, head);
      sum += static_cast<double>(pair_of(all, batch, head, dropout, first_query, first_key).slope);
    }
    if (first_query + i < all.q.tokens() && first_key + j < all.k.tokens()) {
      all.dbias.put((head * all.q.tokens() + first_query + i) * all.k.tokens() + first_key + j, sum);
    }
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
  const std::int64_t query_tiles = (q.tokens() + kAttentionTile - 1) / kAttentionTile,
                     key_tiles = (k.tokens() + kAttentionTile - 1) / kAttentionTile,
                     heads = q.batches() * q.heads();
  visit(q.array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using R = Accumulator<T>;
    BackwardPass<T> all{heads_of<T>(q),
                        heads_of<T>(k),
                        heads_of<T>(v),
                        heads_of<T>(dy),
                        scoring_of<R>(context, q, k, options),
                        log_sum_exp.data<R>(),
                        row_sums.data<R>(),
                        results_of(dq),
                        results_of(dk),
                        results_of(dv),
                        {}};
    if (heads * query_tiles > 0)
      start_kernel(context, blocks_for(heads * query_tiles), query_gradients<T>, all, query_tiles);
    if (heads * key_tiles > 0)
      start_kernel(context, blocks_for(heads * key_tiles), key_gradients<T>, all, key_tiles);
    if (!dbias.defined() || dbias.count() == 0) return;
    all.dbias = any_elements(dbias);
    start_kernel(context, blocks_for(q.heads() * query_tiles * key_tiles), bias_gradients<T>, all,
                 query_tiles, key_tiles);
  });
}

}  // namespace jigsaw::inline kernels::cuda
