#include "array/raw_memory.h"
#include "kernels/cuda/attention_passes.h"
#include "kernels/cuda/attention_tiles.cuh"

namespace jigsaw::inline kernels::cuda {

namespace {

template <typename T>
struct ForwardPass {
  Heads<T> q, k, v;
  Scoring<Accumulator<T>> scoring;
  HeadResults output;
  Accumulator<T>* log_sum_exp;
  std::int64_t tiles;  ///< of queries, for each head of each batch

  __device__ std::int64_t pieces() const { return q.places.batches * q.places.heads * tiles; }
};

/// A block takes a tile of queries over all keys; sums are kept relative to the largest score so far
/// (FlashAttention-2, Dao 2023). Each thread makes up to kHeadEach numbers of the output of its query.
template <typename T>
__global__ void attend(ForwardPass<T> all) {
  using R = Accumulator<T>;
  __shared__ R scores[kAttentionTile][kAttentionTile + 1], weights[kAttentionTile][kAttentionTile + 1];
  const int thread = static_cast<int>(threadIdx.x), i = thread / kAttentionTile, j = thread % kAttentionTile;
  for (std::int64_t piece = blockIdx.x; piece < all.pieces(); piece += gridDim.x) {
    const std::int64_t first = piece % all.tiles * kAttentionTile, query = first + i,
                       head = piece / all.tiles % all.q.places.heads,
                       batch = piece / all.tiles / all.q.places.heads;
    const HeadDropout dropout = all.scoring.dropout_of(batch, head);
    R largest = -static_cast<R>(INFINITY), sum = 0, output[kHeadEach] = {};
    for (std::int64_t key = 0; key < all.k.tokens(); key += kAttentionTile) {
      const R dot = tile_dots<R>(all.q, first, all.k, key, batch, head);
      scores[i][j] = all.scoring.score(batch, head, query, key + j, dot);
      __syncthreads();
      R top = largest;
      for (int n = 0; n < kAttentionTile; ++n) top = scores[i][n] > top ? scores[i][n] : top;
      const R kept = top > largest ? exp(largest - top) : R(1);
      const R score = scores[i][j];  // a NaN shows in the sum
      const R weight = score == -static_cast<R>(INFINITY) ? R(0) : exp(score - top);
      sum = sum * kept + weight;
      weights[i][j] = weight * all.scoring.factor(dropout, query, key + j);
      __syncthreads();
      for (int c = 0; c < kHeadEach; ++c) {
        R value = output[c] * kept;
        for (int n = 0; n < kAttentionTile && j + c * kAttentionTile < all.v.places.d; ++n) {
          value += weights[i][n] * all.v.template get<R>(batch, key + n, head, j + c * kAttentionTile);
        }
        output[c] = value;
      }
      largest = top;
    }
    __syncthreads();
    scores[i][j] = sum;
    __syncthreads();
    R total = 0;
    for (int n = 0; n < kAttentionTile; ++n) total += scores[i][n];
    for (int c = 0; c < kHeadEach; ++c) {
      all.output.put(batch, query, head, j + c * kAttentionTile, total == R(0) ? R(0) : output[c] / total);
    }
    if (j == 0 && query < all.q.tokens()) {
      all.log_sum_exp[(batch * all.q.places.heads + head) * all.q.tokens() + query] =
          total == R(0) ? -static_cast<R>(INFINITY) : largest + log(total);
    }
    __syncthreads();
  }
}

}  // namespace

void attention_forward_pass(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                            const AttentionOptions& options, AttentionResult& result) {
  const std::int64_t tiles = (q.tokens() + kAttentionTile - 1) / kAttentionTile;
  const std::int64_t pieces = q.batches() * q.heads() * tiles;
  if (pieces == 0) return;
  visit(q.array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using R = Accumulator<T>;
    const HeadPlaces places = heads_of<T>(result.output).places;
    start_kernel(context, blocks_for(pieces), attend<T>,
                 ForwardPass<T>{heads_of<T>(q),
                                heads_of<T>(k),
                                heads_of<T>(v),
                                scoring_of<R>(context, q, k, options),
                                {places, any_elements(result.output)},
                                result.log_sum_exp.data<R>(),
                                tiles});
  });
}

}  // namespace jigsaw::inline kernels::cuda
