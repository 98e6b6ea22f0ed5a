#include "kernels/cuda/attention_passes.cuh"
#include "kernels/cuda/attention_passes.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// A block takes a tile of queries over all keys; sums are kept relative to the largest score so far
/// (FlashAttention-2, Dao 2023). Each thread makes up to kEach numbers of the output of its query.
template <typename T, int kEach>
__global__ void __launch_bounds__(kThreads, kBlocks<T, kEach>) attend(ForwardPass<T> all) {
  using R = Accumulator<T>;
  using Tile = HeadTile<R, kEach>;
  __shared__ Tile queries[Tile::kChunks], staged;
  __shared__ TilePairs<R> scores, weights;
  const int thread = static_cast<int>(threadIdx.x), i = thread / kAttentionTile, j = thread % kAttentionTile;
  const std::int64_t first = std::int64_t{blockIdx.x} * kAttentionTile, query = first + i;
  for (std::int64_t head = blockIdx.y; head < all.q.places.heads; head += gridDim.y)
    for (std::int64_t batch = blockIdx.z; batch < all.q.places.batches; batch += gridDim.z) {
      const HeadScoring<R> scoring = all.scoring.of_head(batch, head);
      for (int chunk = 0; chunk < Tile::kChunks; ++chunk)
        queries[chunk].stage(all.q, batch, first, head, chunk);
      R largest = -static_cast<R>(INFINITY), sum = 0, output[kEach] = {};
      for (std::int64_t key = 0; key < all.k.tokens(); key += kAttentionTile) {
        R dot = 0;
        for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
          __syncthreads();
          staged.stage(all.k, batch, key, head, chunk);
          __syncthreads();
          dot = queries[chunk].dot(i, staged, j, dot);
        }
        scores[i][j] = all.scoring.score(scoring, query, key + j, dot);
        __syncthreads();
        R top = largest;
        for (int n = 0; n < kAttentionTile; ++n) top = scores[i][n] > top ? scores[i][n] : top;
        const R kept = top > largest ? exp(largest - top) : R(1);
        const R score = scores[i][j];  // a NaN shows in the sum
        const R weight = score == -static_cast<R>(INFINITY) ? R(0) : exp(score - top);
        sum = sum * kept + weight;
        weights[i][j] = weight * all.scoring.factor(scoring, query, key + j);
        for (R& number : output) number *= kept;
        for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
          if (chunk > 0) __syncthreads();
          staged.stage(all.v, batch, key, head, chunk);
          __syncthreads();
          staged.add_rows(weights, i, j, output + chunk * Tile::kOwn);
        }
        largest = top;
      }
      scores[i][j] = sum;  // which all threads have read before the last barrier
      __syncthreads();
      R total = 0;
      for (int n = 0; n < kAttentionTile; ++n) total += scores[i][n];
      for (int e = 0; e < kEach; ++e) {
        all.output.put(batch, query, head, Tile::column(j, e), total == R(0) ? R(0) : output[e] / total);
      }
      if (j == 0)
        all.put_log_sum_exp(batch, head, query,
                            total == R(0) ? -static_cast<R>(INFINITY) : largest + log(total));
    }
}

}  // namespace

void attention_forward_pass(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                            const AttentionOptions& options, AttentionResult& result) {
  if (q.batches() * q.heads() * q.tokens() == 0) return;
  visit(q.array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using R = Accumulator<T>;
    const HeadPlaces places = heads_of<T>(result.output).places;
    const ForwardPass<T> all{heads_of<T>(q),
                             heads_of<T>(k),
                             heads_of<T>(v),
                             scoring_of<R>(context, q, k, options),
                             {places, any_elements(result.output)},
                             result.log_sum_exp.data<R>()};
    if constexpr (std::is_same_v<T, BFloat16>)
      if (q.head_size() <= kLargestTensorHead) return attend_on_tensor_cores(context, all);
    const dim3 blocks = blocks_of_heads(tiles_of(q.tokens()), q.heads(), q.batches());
    visit_head_size<T>(q.head_size(),
                       [&](auto each) { start_kernel(context, blocks, attend<T, each.value>, all); });
  });
}

}  // namespace jigsaw::inline kernels::cuda
