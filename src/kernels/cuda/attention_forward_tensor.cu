#include "kernels/cuda/attention_passes.cuh"
#include "kernels/cuda/attention_tensor_tiles.cuh"

namespace jigsaw::inline kernels::cuda {

namespace {

/// A running sum of exponentials.
struct ExponentialSum {
  float largest = -INFINITY, sum = 0;  ///< of exp(score − largest)

  __device__ float log_sum() const { return sum == 0 ? -INFINITY : largest + log(sum); }
  /// The softmax weight of a score.
  __device__ float weight(float score) const { return sum == 0 ? 0.0F : exp(score - largest) / sum; }

  __device__ void add(const float (&scores)[kKeysOfThread]) {
    float top = largest;
    for (const float score : scores) top = score > top ? score : top;
    if (top > largest) sum *= exp(largest - top);
    for (const float score : scores) sum += score == -INFINITY ? 0.0F : exp(score - top);  // a NaN shows
    largest = top;
  }
  /// Combines the sums of all threads of a query; each gets the same result.
  __device__ void add_up(int query, int of_query, PairTile<float>& scratch) {
    float* const tops = scratch.x[query];
    float* const sums = tops + kThreadsOfQuery;
    tops[of_query] = largest;
    sums[of_query] = sum;
    __syncthreads();
    for (int n = 0; n < kThreadsOfQuery; ++n) largest = tops[n] > largest ? tops[n] : largest;
    sum = 0;
    for (int n = 0; n < kThreadsOfQuery; ++n)
      sum += tops[n] == largest ? sums[n] : sums[n] * exp(tops[n] - largest);
  }
};

/// A block takes a tile of queries twice over all keys: for their log-sum-exp, and for the output, whose
/// weights then need no other scale.
template <int kWidth>
__global__ void __launch_bounds__(kThreads, kTensorBlocks<kWidth>) attend(ForwardPass<BFloat16> all) {
  __shared__ TokenTile<kWidth> queries, staged;
  __shared__ PairTile<float> products;
  __shared__ PairTile<__nv_bfloat16> weights;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, i = thread / kThreadsOfQuery,
            j = thread % kThreadsOfQuery * kKeysOfThread;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTensorTile, query = first + i;
  for (std::int64_t head = blockIdx.y; head < all.q.places.heads; head += gridDim.y)
    for (std::int64_t batch = blockIdx.z; batch < all.q.places.batches; batch += gridDim.z) {
      const HeadScoring<float> scoring = all.scoring.of_head(batch, head);
      queries.stage(all.q, batch, first, head);
      const auto score = [&](std::int64_t key, float(&scores)[kKeysOfThread]) {
        __syncthreads();
        staged.stage(all.k, batch, key, head);
        __syncthreads();
        if (warp < 4) multiply_rows(queries, staged, warp, products);
        __syncthreads();
        for (int k = 0; k < kKeysOfThread; ++k)
          scores[k] = all.scoring.score(scoring, query, key + j + k, products.x[i][j + k]);
      };
      float scores[kKeysOfThread], factors[kKeysOfThread];
      ExponentialSum sum;
      for (std::int64_t key = 0; key < all.k.tokens(); key += kTensorTile) {
        score(key, scores);
        sum.add(scores);
      }
      __syncthreads();
      sum.add_up(i, j / kKeysOfThread, products);
      if (j == 0) all.put_log_sum_exp(batch, head, query, sum.log_sum());
      TokenSums<kWidth> output;
      for (std::int64_t key = 0; key < all.k.tokens(); key += kTensorTile) {
        score(key, scores);
        all.scoring.factors(scoring, query, key + j, factors);
        for (int k = 0; k < kKeysOfThread; ++k) {
          weights.x[i][j + k] = stored<__nv_bfloat16>(sum.weight(scores[k]) * factors[k]);
        }
        staged.stage(all.v, batch, key, head);
        __syncthreads();
        output.add(weights, staged);
      }
      output.put(all.output, batch, first, head, 1.0F, products);
    }
}

}  // namespace

void attend_on_tensor_cores(Context& context, const ForwardPass<BFloat16>& all) {
  const HeadPlaces& places = all.q.places;
  const dim3 blocks = blocks_of_heads(tiles_of(places.tokens, kTensorTile), places.heads, places.batches);
  visit_head_width(places.d, [&](auto width) { start_kernel(context, blocks, attend<width.value>, all); });
}

}  // namespace jigsaw::inline kernels::cuda
