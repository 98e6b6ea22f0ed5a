#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "array/raw_memory.h"
#include "base/error.h"
#include "kernels/attention.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vector_tile.h"

namespace jigsaw::inline kernels::cpu {

// Scores are kept in logarithms to base 2, so that a weight is one exp2: queries are scaled by
// scale · log2(e) as they are loaded.

/// A block of weights: queries (a multiple of Lanes::kDown) by keys (a multiple of all lanes).
inline constexpr std::int64_t kQueries = 96, kKeys = 192;
inline constexpr float kLog2E = 1.4426950408889634F, kLn2 = 0.6931471805599453F;
/// Below every score that counts.
inline constexpr float kLowest = -1e30F;
inline constexpr float kHidden = -std::numeric_limits<float>::infinity();

inline std::int64_t blocks_of(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block;
}

/// Asks for `count` elements that are needed soon, while there is arithmetic to do: the operands of a head of
/// some thousand tokens are larger than the caches near the core, and products that wait for them lose a
/// tenth of their time or more.
template <int kFor = 0, typename T>
void prefetch(const T* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 64 / sizeof(T)) __builtin_prefetch(from + i, kFor);
}

/// HeadRows as the kernels read them: as float32, in rows of `padded` numbers.
class RowsOfHead {
 public:
  RowsOfHead() = default;
  explicit RowsOfHead(const HeadRows& rows)
      : base_(rows.array.raw()),
        dtype_(rows.array.dtype()),
        stride_(rows.stride()),
        batch_(rows.tokens() * rows.stride()),
        first_(rows.slot * rows.heads() * rows.head_size()),
        size_(rows.head_size()) {}

  /// to[token, i] = factor · element, zero beyond the head's size.
  void load(std::int64_t batch, std::int64_t head, std::int64_t token, std::int64_t count, float factor,
            float* to, std::int64_t padded) const {
    visit_fast(dtype_, [&](auto zero) {
      const auto* from = reinterpret_cast<const decltype(zero)*>(base_) + at(batch, head, token);
      for (std::int64_t t = 0; t < count; ++t, from += stride_, to += padded) {
        if (t + kAhead < count) prefetch(from + kAhead * stride_, size_);
        for (std::int64_t i = 0; i < size_; ++i) to[i] = static_cast<float>(from[i]) * factor;
        for (std::int64_t i = size_; i < padded; ++i) to[i] = 0;
      }
    });
  }

 protected:
  std::int64_t at(std::int64_t batch, std::int64_t head, std::int64_t token) const {
    return batch * batch_ + token * stride_ + first_ + head * size_;
  }

  /// Rows lie far apart, where no prefetcher of the processor looks.
  static constexpr std::int64_t kAhead = 8;

  const std::byte* base_ = nullptr;
  DType dtype_ = DType::kFloat32;
  std::int64_t stride_ = 0, batch_ = 0, first_ = 0, size_ = 0;
};

/// The same, to be written.
class WritableRows : public RowsOfHead {
 public:
  explicit WritableRows(HeadRows rows) : RowsOfHead(rows), memory_(rows.array.raw()) {}

  void store(std::int64_t batch, std::int64_t head, std::int64_t token, std::int64_t count, float factor,
             const float* from, std::int64_t padded) const {
    visit_fast(dtype_, [&](auto zero) {
      using T = decltype(zero);
      T* to = reinterpret_cast<T*>(memory_) + at(batch, head, token);
      for (std::int64_t t = 0; t < count; ++t, from += padded, to += stride_) {
        if (t + kAhead < count) prefetch<1>(to + kAhead * stride_, size_);
        for (std::int64_t i = 0; i < size_; ++i) to[i] = rounded<T>(from[i] * factor);
      }
    });
  }

 private:
  std::byte* memory_;
};

/// What every thread needs to know of one call.
struct AttentionProblem {
  AttentionProblem(const HeadRows& q_, const HeadRows& k_, const HeadRows& v_,
                   const AttentionOptions& options_)
      : q(q_),
        k(k_),
        v(v_),
        options(options_),
        batches(q_.batches()),
        heads(q_.heads()),
        queries(q_.tokens()),
        keys(k_.tokens()),
        size(q_.head_size()) {}

  RowsOfHead q, k, v;
  const AttentionOptions& options;
  std::int64_t batches, heads, queries, keys, size;

  float query_factor() const { return static_cast<float>(options.scale) * kLog2E; }
  std::int64_t query_blocks() const { return blocks_of(queries, kQueries); }
  std::int64_t key_blocks() const { return blocks_of(keys, kKeys); }
};

/// A block of scores or weights of one head: rows of kKeys floats.
struct WeightBlock {
  std::int64_t batch, head, query, key;  ///< the first ones
  std::int64_t rows, columns;
};

/// to[i, key] = from[key, i]: keys as the second operand of a product of queries and keys; zero up to
/// `columns`. In squares, whose rows and columns both stay in the nearest cache.
inline void transpose_keys(const float* from, std::int64_t keys, std::int64_t size, std::int64_t padded,
                           std::int64_t columns, float* to) {
  constexpr std::int64_t kSide = 16;
  for (std::int64_t left = 0; left < columns; left += kSide) {
    for (std::int64_t top = 0; top < size; top += kSide) {
      for (std::int64_t i = top; i < std::min(top + kSide, size); ++i) {
        for (std::int64_t key = left; key < std::min(left + kSide, columns); ++key) {
          to[i * kKeys + key] = key < keys ? from[key * padded + i] : 0;
        }
      }
    }
  }
}

/// Whether scores are more than products.
inline bool adds_to_scores(const AttentionOptions& options) {
  return options.bias.defined() || options.mask.defined();
}

/// Adds bias and mask less the base of each query, if there are any: they may be large, and the base with
/// them. And hides what lies beyond the last key.
template <int kLanes>
void finish_scores(const AttentionProblem& p, const WeightBlock& at, const float* bases, float* scores) {
  const AttentionOptions& options = p.options;
  const auto row_of = [&](const Array& added, std::int64_t group, std::int64_t row) -> const float* {
    if (!added.defined()) return nullptr;
    return added.data<float>() + (group * p.queries + at.query + row) * p.keys + at.key;
  };
  for (std::int64_t row = 0; row < at.rows && adds_to_scores(options); ++row) {
    const float* const bias = row_of(options.bias, at.head, row);
    const float* const mask =
        options.mask.defined() ? row_of(options.mask, at.batch % options.mask.shape()[0], row) : nullptr;
    const float base = bases != nullptr ? bases[row] : 0.0F;
    float* const to = scores + row * kKeys;
    for (std::int64_t i = 0; i < at.columns; ++i) {
      const float added = (bias != nullptr ? bias[i] : 0.0F) + (mask != nullptr ? mask[i] : 0.0F);
      to[i] += added * kLog2E - base;
    }
  }
  const std::int64_t end = Lanes<kLanes>::rounded_up(at.columns);
  for (std::int64_t row = 0; row < at.rows; ++row) {
    for (std::int64_t i = at.columns; i < end; ++i) scores[row * kKeys + i] = kHidden;
  }
}

/// Numbers of a group's tokens from `first` on.
inline void token_numbers(const TokenPlaces& places, std::int64_t group, std::int64_t first,
                          std::int64_t count, std::int64_t* numbers) {
  const std::int64_t width = places.window.back();
  for (std::int64_t i = 0; i < count;) {
    // Those of one row of a window follow one another.
    const std::int64_t end = std::min(count, i + width - (first + i) % width);
    for (std::int64_t number = places.number(group, first + i); i < end; ++i) numbers[i] = number++;
  }
}

/// What dropout multiplies the block's weights by.
inline void dropout_block(const AttentionDropout& dropout, const WeightBlock& at, float* factors) {
  const RandomPosition position = dropout.position_of(at.batch);
  const std::int64_t group = at.batch % dropout.groups();
  std::int64_t queries[kQueries], keys[kKeys];
  token_numbers(dropout.queries, group, at.query, at.rows, queries);
  token_numbers(dropout.keys, group, at.key, at.columns, keys);
  // Keys that follow one another in the whole grid do so in the mask.
  std::int64_t ends[kKeys], runs = 0;
  for (std::int64_t i = 1; i <= at.columns; ++i) {
    if (i == at.columns || keys[i] != keys[i - 1] + 1) ends[runs++] = i;
  }
  const std::int64_t head = dropout.row(at.head, 0), width = dropout.keys.grid.count();
  for (std::int64_t row = 0; row < at.rows; ++row) {
    const std::int64_t first = head + queries[row] * width;
    for (std::int64_t run = 0, i = 0; run < runs; i = ends[run++]) {
      dropout_factors(dropout.stream, position, first + keys[i], ends[run] - i, dropout.probability,
                      factors + row * kKeys + i);
    }
  }
}

/// Floats a thread has for itself, cut into parts that begin on a vector's boundary.
class Scratch {
 public:
  Scratch(float* begin, std::int64_t count) : next_(begin), left_(count) {}
  float* take(std::int64_t count) {
    const std::int64_t whole = rounded(count);
    require(whole <= left_, "attention: the scratch memory is too small");
    float* const taken = next_;
    next_ += whole, left_ -= whole;
    return taken;
  }
  static std::int64_t rounded(std::int64_t count) { return (count + 15) / 16 * 16; }

 private:
  float* next_;
  std::int64_t left_;
};

/// Numbers of a row of a head: whole vectors, whatever their width.
inline std::int64_t padded_head_size(std::int64_t size) {
  return (size + 15) / 16 * 16;
}

}  // namespace jigsaw::inline kernels::cpu
