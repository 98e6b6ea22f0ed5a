#pragma once
#include "kernels/attention.h"
#include "kernels/cuda/random.cuh"

namespace jigsaw::inline kernels::cuda {

// A block works on tiles of queries × keys, a pair a thread; a head's numbers are staged in shared memory, in
// chunks. Sums are formed in float32 (float64 for float64), each by one thread and in order, without atomics.
constexpr int kAttentionTile = 16, kLargestHead = 256;
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
  /// By 32-bit divisions: a GPU makes a 64-bit one out of many instructions.
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

/// What one head of one batch reads besides: its planes of bias and mask, and where its part of the dropout's
/// mask stands, its sample and the element of its first query and key.
template <typename R>
struct HeadScoring {
  const R *bias = nullptr, *mask = nullptr;
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

  __device__ HeadScoring<R> of_head(std::int64_t batch, std::int64_t head) const {
    HeadScoring<R> own;
    if (bias != nullptr) own.bias = bias + head * queries * keys;
    if (mask != nullptr) own.mask = mask + batch % masks * queries * keys;
    if (!drops) return own;
    const std::int64_t group = batch % groups,
                       row = (first_head + head) * total_queries + query_numbers.of_group(group);
    own.sample = static_cast<std::uint64_t>(batch / groups);
    own.first = row * total_keys + key_numbers.of_group(group);
    return own;
  }
  /// −∞ beyond the queries and keys that there are.
  __device__ R score(const HeadScoring<R>& head, std::int64_t query, std::int64_t key, R dot) const {
    if (query >= queries || key >= keys) return -static_cast<R>(INFINITY);
    const std::int64_t row = query * keys + key;
    R score = static_cast<R>(scale) * dot;
    if (head.bias != nullptr) score += head.bias[row];
    if (head.mask != nullptr) score += head.mask[row];
    return score;
  }
  __device__ R factor(const HeadScoring<R>& head, std::int64_t query, std::int64_t key) const {
    R one[1];
    factors(head, query, key, one);
    return one[0];
  }
  /// Of neighbouring keys, from `key` on.
  template <int kCount>
  __device__ void factors(const HeadScoring<R>& head, std::int64_t query, std::int64_t key,
                          R (&factors)[kCount]) const {
    for (R& factor : factors) factor = R(1);
    if (!drops || query >= queries) return;
    const std::int64_t row = head.first + query_numbers.within_group(query) * total_keys;
    std::uint32_t bits[4];
    std::int64_t drawn = -1;  // whose bits these are
    for (int k = 0; k < kCount && key + k < keys; ++k) {
      const std::int64_t element = row + key_numbers.within_group(key + k);
      if (element / 4 != drawn) {
        drawn = element / 4;
        draw.group(head.sample, static_cast<std::uint64_t>(drawn), bits);
      }
      factors[k] = draw.factor_of<R>(bits, static_cast<int>(element % 4));
    }
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

// Rows of shared memory are 16 bytes longer than a power of two, so that a thread reads 16 bytes at once and
// rows lie in different banks.
template <typename R>
constexpr int kPad = 16 / sizeof(R);

/// A number for each pair of a tile.
template <typename R>
using TilePairs = R[kAttentionTile][kAttentionTile + kPad<R>];

/// A chunk of the heads of a tile's tokens, in shared memory. Of heads of up to 16 · kEach numbers each of a
/// row's 16 threads has kEach, of which up to four lie side by side in a chunk.
template <typename R, int kEach>
struct HeadTile {
  static constexpr int kOwn = kEach < 4 ? kEach : 4, kWidth = kAttentionTile * kOwn, kChunks = kEach / kOwn;

  R x[kAttentionTile][kWidth + kPad<R>];

  /// All threads of the block put a chunk of the tokens from `first` on; 0 beyond the tokens and the head.
  template <typename T>
  __device__ void stage(const Heads<T>& heads, std::int64_t batch, std::int64_t first, std::int64_t head,
                        int chunk) {
    constexpr int kRows = kThreads / kWidth;  // at a time
    const int thread = static_cast<int>(threadIdx.x), column = thread % kWidth, above = thread / kWidth;
    const std::int64_t c = chunk * kWidth + column, tokens = heads.tokens() - first;
    const int rows = c >= heads.places.d       ? 0
                     : tokens < kAttentionTile ? static_cast<int>(tokens)
                                               : kAttentionTile;
    const Element<T>* from = heads.x + heads.places.at(batch, first + above, head) + c;
    for (int row = 0; row < kAttentionTile; row += kRows, from += kRows * heads.places.stride)
      x[row + above][column] = row + above < rows ? load<R>(*from) : R(0);
  }
  /// `sum` and the dot product of row i and another's row j.
  __device__ R dot(int i, const HeadTile& other, int j, R sum) const {
#pragma unroll 8
    for (int n = 0; n < kWidth; ++n) sum += x[i][n] * other.x[j][n];
    return sum;
  }
  /// Adds the rows times row i of the weights to the sums of the chunk's columns that thread j of a row has.
  __device__ void add_rows(const TilePairs<R>& weights, int i, int j, R* sums) const {
#pragma unroll 4
    for (int n = 0; n < kAttentionTile; ++n)
      for (int c = 0; c < kOwn; ++c) sums[c] += weights[i][n] * x[n][j * kOwn + c];
  }
  /// The column of a head that number e of thread j is.
  __device__ static int column(int j, int e) {
    return e / kOwn * kWidth + j * kOwn + e % kOwn;
  }
};

/// Blocks that are to fit a multiprocessor's registers at a time.
template <typename T, int kEach>
constexpr int kBlocks = kEach <= 4 && sizeof(Accumulator<T>) == sizeof(float) ? 4 : 1;

/// Tiles of so many tokens.
inline std::int64_t tiles_of(std::int64_t tokens, int tile = kAttentionTile) {
  return (tokens + tile - 1) / tile;
}

/// A block for each tile of a head of a batch; kernels stride over the heads and batches beyond.
inline dim3 blocks_of_heads(std::int64_t tiles, std::int64_t heads, std::int64_t batches) {
  constexpr std::int64_t kMost = 65535;
  return {static_cast<unsigned>(tiles), static_cast<unsigned>(heads < kMost ? heads : kMost),
          static_cast<unsigned>(batches < kMost ? batches : kMost)};
}

/// Heads of bf16 of up to so many numbers are for tensor cores (attention_tensor_tiles.cuh).
constexpr std::int64_t kLargestTensorHead = 128;

/// Calls f with the least kEach, 2, 4, 8 or 16, that is enough for heads of d numbers of type T, as an
/// integral constant.
template <typename T, typename F>
void visit_head_size(std::int64_t d, const F& f) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    static_assert(kLargestHead / 2 == kLargestTensorHead);
    f(std::integral_constant<int, kLargestHead / kAttentionTile>());
  } else if (d <= 2 * kAttentionTile) {
    f(std::integral_constant<int, 2>());
  } else if (d <= 4 * kAttentionTile) {
    f(std::integral_constant<int, 4>());
  } else if (d <= 8 * kAttentionTile) {
    f(std::integral_constant<int, 8>());
  } else {
    f(std::integral_constant<int, kLargestHead / kAttentionTile>());
  }
}

}  // namespace jigsaw::inline kernels::cuda
