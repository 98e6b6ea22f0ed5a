#pragma once
#include <algorithm>

#include "array/raw_memory.h"
#include "kernels/cuda/attention_tiles.cuh"

namespace jigsaw::inline kernels::cuda {

// What the passes of attention_passes.h read and write, whichever units form the products.

template <typename T>
struct ForwardPass {
  Heads<T> q, k, v;
  Scoring<Accumulator<T>> scoring;
  HeadResults output;
  Accumulator<T>* log_sum_exp;

  __device__ void put_log_sum_exp(std::int64_t batch, std::int64_t head, std::int64_t query,
                                  Accumulator<T> value) const {
    if (query < q.tokens()) log_sum_exp[(batch * q.places.heads + head) * q.tokens() + query] = value;
  }
};

/// The tokens of one side of the pairs, and what each is multiplied by in the gradients of the weights:
/// queries with dy, or keys with values.
template <typename T>
struct Side {
  Heads<T> x, up;
};

/// What all pairs of one query share: its log-sum-exp, −∞ where it sees no key, and its row sum.
template <typename R>
struct QueryRow {
  R log_sum_exp = -static_cast<R>(INFINITY), sum = 0;
};

template <typename T>
struct BackwardPass {
  using R = Accumulator<T>;
  Side<T> queries, keys;
  Scoring<R> scoring;
  const R *log_sum_exp, *row_sums;
  HeadResults dq, dk, dv;

  __device__ HeadPlaces places() const { return queries.x.places; }
  __device__ QueryRow<R> row_of(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    if (query >= places().tokens) return {};
    const std::int64_t row = (batch * places().heads + head) * places().tokens + query;
    return {log_sum_exp[row], row_sums[row]};
  }
};

/// A pair of query and key: its weight after dropout, and the gradient of its score.
template <typename R>
struct Pair {
  R weight, slope;
};

/// @param score  −∞ beyond the keys that there are.
/// @param up     the product of the query's dy with the key's value.
template <typename R>
__device__ Pair<R> pair_of(const QueryRow<R>& row, R score, R factor, R up) {
  if (row.log_sum_exp == -static_cast<R>(INFINITY)) return {R(0), R(0)};
  const R weight = exp(score - row.log_sum_exp);
  return {weight * factor, weight * (factor * up - row.sum)};
}

/// Slabs of batches whose sums are formed apart, as many as fill a GPU: their number depends on the shape
/// alone.
inline std::int64_t batch_slabs(std::int64_t batches, std::int64_t pieces) {
  constexpr std::int64_t kBlocks = 4096;
  return std::clamp<std::int64_t>(kBlocks / pieces, 1, std::max<std::int64_t>(batches, 1));
}

/// Adds up the slabs, in order.
struct AddSlabs {
  const double* partial;
  std::int64_t count, slabs;
  AnyElements dbias;
  __device__ void operator()(std::int64_t i) const {
    double sum = 0;
    for (std::int64_t slab = 0; slab < slabs; ++slab) sum += partial[slab * count + i];
    dbias.put(i, sum);
  }
};

/// dbias by a kernel (pass, key tiles, sums) that forms sums over slabs of the batches, [slabs, heads,
/// queries, keys]: block x takes a tile of queries and one of keys, z a slab.
template <typename T, typename Kernel>
void form_bias_gradients(Context& context, const BackwardPass<T>& all, Array& dbias, int tile,
                         Kernel* kernel) {
  const Shape& shape = dbias.shape();
  const std::int64_t key_tiles = tiles_of(shape[2], tile), tiles = tiles_of(shape[1], tile) * key_tiles,
                     slabs = batch_slabs(all.queries.x.places.batches, shape[0] * tiles);
  const auto start = [&](Array& sums) {
    start_kernel(context, blocks_of_heads(tiles, shape[0], slabs), kernel, all,
                 static_cast<unsigned>(key_tiles), any_elements(sums));
  };
  if (slabs == 1) return start(dbias);
  Array partial(context, {slabs, dbias.count()}, DType::kFloat64, Purpose::kWorkspace);
  start(partial);
  for_elements(context, dbias.count(),
               AddSlabs{partial.data<double>(), dbias.count(), slabs, any_elements(dbias)});
}

/// Of heads of up to kLargestTensorHead numbers (attention_tensor_tiles.cuh).
void attend_on_tensor_cores(Context& context, const ForwardPass<BFloat16>& all);
void gradients_on_tensor_cores(Context& context, const BackwardPass<BFloat16>& all, Array& dbias);

}  // namespace jigsaw::inline kernels::cuda
