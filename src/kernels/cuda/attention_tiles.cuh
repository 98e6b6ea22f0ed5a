#pragma once
#include "kernels/attention.h"
#include "kernels/cuda/random.cuh"

namespace jigsaw::inline kernels::cuda {

// A block works on tiles of queries × keys, a pair a thread; a head's numbers are staged in chunks. Sums are
// formed in float32 (float64 for float64), each by one thread and in order, without atomics.
constexpr int kAttentionTile = 16, kHeadChunk = 32, kLargestHead = 256,
              kHeadEach = kLargestHead / kAttentionTile;
static_assert(kAttentionTile * kAttentionTile == kThreads);

/// Where the numbers of an operand's heads lie in [B, tokens, slots, heads, d].
struct HeadPlaces {
  std::int64_t batches = 0, tokens = 0, heads = 0, d = 0, stride = 0, slot = 0;

  __device__ std::int64_t at(std::int64_t batch, std::int64_t token, std::int64_t head) const {
    return (batch * tokens + token) * stride + (slot * heads + head) * d;
  }
};
inline HeadPlaces places_of(const HeadRows& rows) {
  return {rows.batches(), rows.tokens(), rows.heads(), rows.head_size(), rows.stride(), rows.slot};
}

template <typename T>
struct Heads {
  HeadPlaces places;
  const Element<T>* x;

  __device__ std::int64_t tokens() const { return places.tokens; }
  /// Number c of a token's head; 0 beyond either.
  template <typename R>
  __device__ R get(std::int64_t batch, std::int64_t token, std::int64_t head, std::int64_t c) const {
    return token < places.tokens && c < places.d ? load<R>(x[places.at(batch, token, head) + c]) : R(0);
  }
};
template <typename T>
Heads<T> heads_of(const HeadRows& rows) {
  return {places_of(rows), elements<T>(rows.array)};
}
/// [B, tokens, heads, d].
template <typename T>
Heads<T> heads_of(const Array& y) {
  const Shape& s = y.shape();
  return {{s[0], s[1], s[2], s[3], s[2] * s[3], 0}, elements<T>(y)};
}

/// A head's numbers that are written, of any type.
struct HeadResults {
  HeadPlaces places;
  AnyElements to;

  template <typename R>
  __device__ void put(std::int64_t batch, std::int64_t token, std::int64_t head, std::int64_t c,
                      R value) const {
    if (token < places.tokens && c < places.d) to.put(places.at(batch, token, head) + c, value);
  }
};

/// TokenPlaces for a GPU: a token's number is that of its group's first, and how far it lies beyond that.
struct TokenNumbers {
  int dims = 0;
  std::int64_t first = 0;  ///< of the box
  std::int64_t windows[Shape::kMaxRank] = {}, window[Shape::kMaxRank] = {}, stride[Shape::kMaxRank] = {};

  TokenNumbers() = default;
  explicit TokenNumbers(const TokenPlaces& places) : dims(places.grid.rank()) {
    const Shape strides = places.grid.strides();
    for (int dim = 0; dim < dims; ++dim) {
      windows[dim] = places.windows(dim);
      window[dim] = places.window[dim];
      stride[dim] = strides[dim];
      first += places.box.begin[dim] * strides[dim];
    }
  }

  __device__ std::int64_t of_group(std::int64_t group) const {
    std::int64_t number = first;
    for (int dim = dims - 1; dim >= 0; --dim) {
      number += group % windows[dim] * window[dim] * stride[dim];
      group /= windows[dim];
    }
    return number;
  }
  /// By divisions of 32 bits: those of 64 a GPU makes out of many instructions.
  __device__ std::int64_t within_group(std::int64_t token) const {
    std::int64_t distance = 0;
    auto rest = static_cast<std::uint32_t>(token);
    for (int dim = dims - 1; dim > 0; --dim) {
      const std::uint32_t extent = static_cast<std::uint32_t>(window[dim]), above = rest / extent;
      distance += (rest - above * extent) * stride[dim];
      rest = above;
    }
    return distance + rest * stride[0];
  }
};

/// Where a head's part of the dropout's mask stands: its sample, and the element of its first query and key.
struct HeadDropout {
  std::uint64_t sample = 0;
  std::int64_t first = 0;
};

/// How queries and keys score, and what dropout multiplies their weights by.
template <typename R>
struct Scoring {
  double scale = 1;
  const R *bias = nullptr, *mask = nullptr;
  std::int64_t masks = 1, queries = 0, keys = 0;
  bool drops = false;
  DropoutDraw draw;
  std::int64_t groups = 1, first_head = 0, total_queries = 0, total_keys = 0;
  TokenNumbers query_numbers, key_numbers;

  /// −∞ beyond the queries and keys that there are.
  __device__ R score(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key,
                     R dot) const {
    if (query >= queries || key >= keys) return -static_cast<R>(INFINITY);
    const std::int64_t row = query * keys + key;
    R score = static_cast<R>(scale) * dot;
    if (bias != nullptr) score += bias[head * queries * keys + row];
    if (mask != nullptr) score += mask[batch % masks * queries * keys + row];
    return score;
  }
  __device__ HeadDropout dropout_of(std::int64_t batch, std::int64_t head) const {
    if (!drops) return {};
    const std::int64_t group = batch % groups,
                       row = (first_head + head) * total_queries + query_numbers.of_group(group);
    return {static_cast<std::uint64_t>(batch / groups), row * total_keys + key_numbers.of_group(group)};
  }
  __device__ R factor(const HeadDropout& head, std::int64_t query, std::int64_t key) const {
    if (!drops || query >= queries || key >= keys) return R(1);
    const std::int64_t element =
        head.first + query_numbers.within_group(query) * total_keys + key_numbers.within_group(key);
    return static_cast<R>(draw.factor(head.sample, static_cast<std::uint64_t>(element)));
  }
};

template <typename R>
Scoring<R> scoring_of(Context& context, const HeadRows& q, const HeadRows& k,
                      const AttentionOptions& options) {
  Scoring<R> scoring;
  scoring.scale = options.scale;
  scoring.queries = q.tokens();
  scoring.keys = k.tokens();
  if (options.bias.defined()) scoring.bias = options.bias.data<R>();
  if (options.mask.defined()) {
    scoring.mask = options.mask.data<R>();
    scoring.masks = options.mask.shape()[0];
  }
  if (!options.dropout) return scoring;
  const AttentionDropout& dropout = *options.dropout;
  scoring.drops = true;
  scoring.draw = dropout_draw(context, dropout.probability, dropout.stream, dropout.position);
  scoring.groups = dropout.groups();
  scoring.first_head = dropout.first_head;
  scoring.total_queries = dropout.queries.grid.count();
  scoring.total_keys = dropout.keys.grid.count();
  scoring.query_numbers = TokenNumbers(dropout.queries);
  scoring.key_numbers = TokenNumbers(dropout.keys);
  return scoring;
}

/// The head's dot product of token first_a + i of a and first_b + j of b, for the block's thread (i, j). All
/// threads of the block call it.
template <typename R, typename T>
__device__ R tile_dots(const Heads<T>& a, std::int64_t first_a, const Heads<T>& b, std::int64_t first_b,
                       std::int64_t batch, std::int64_t head) {
  __shared__ R as[kAttentionTile][kHeadChunk + 1], bs[kAttentionTile][kHeadChunk + 1];
  const int thread = static_cast<int>(threadIdx.x), i = thread / kAttentionTile, j = thread % kAttentionTile;
  R sum = 0;
  for (std::int64_t first = 0; first < a.places.d; first += kHeadChunk) {
    for (int e = thread; e < kAttentionTile * kHeadChunk; e += kThreads) {
      const int row = e / kHeadChunk, column = e % kHeadChunk;
      as[row][column] = a.template get<R>(batch, first_a + row, head, first + column);
      bs[row][column] = b.template get<R>(batch, first_b + row, head, first + column);
    }
    __syncthreads();
    for (int n = 0; n < kHeadChunk; ++n) sum += as[i][n] * bs[j][n];
    __syncthreads();
  }
  return sum;
}

}  // namespace jigsaw::inline kernels::cuda
