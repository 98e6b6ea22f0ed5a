#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "array/array.h"
#include "array/box.h"
#include "array/random.h"

namespace jigsaw::inline kernels {

/// One of the operands that lie side by side in a contiguous array [B, tokens, slots, heads, d], as the
/// queries, keys and values of a packed projection do: they need no copies.
struct HeadRows {
  Array array;
  int slot = 0;

  std::int64_t batches() const { return array.shape()[0]; }
  std::int64_t tokens() const { return array.shape()[1]; }
  std::int64_t heads() const { return array.shape()[3]; }
  std::int64_t head_size() const { return array.shape()[4]; }
  /// Elements from one token to the next.
  std::int64_t stride() const { return array.shape().count(2, 5); }
  /// Element number of the head's first number of a token.
  std::int64_t at(std::int64_t batch, std::int64_t token, std::int64_t head) const {
    return (batch * tokens() + token) * stride() + (slot * heads() + head) * head_size();
  }
};

template <typename F>
void for_each_array(HeadRows& all, const F& f) {
  f(all.array);
}

/// Which tokens of a grid stand here: those of a box, in groups. A group is a window; windows follow one
/// another, and in each its points, in row-major order. Where nothing is cut into windows the box is one.
struct TokenPlaces {
  Shape grid;    ///< extents of the whole grid
  Box box;       ///< of the grid
  Shape window;  ///< extents of a window, by which those of the box can be divided

  std::int64_t groups() const {
    std::int64_t groups = 1;
    for (int dim = 0; dim < window.rank(); ++dim) groups *= windows(dim);
    return groups;
  }
  /// Windows beside one another along a dim.
  std::int64_t windows(int dim) const { return window[dim] > 0 ? box.extent[dim] / window[dim] : 1; }
  /// Of a group.
  std::int64_t tokens() const { return window.count(); }
  /// Number of a group's token in the whole grid, row-major.
  std::int64_t number(std::int64_t group, std::int64_t token) const {
    std::int64_t number = 0, stride = 1;
    for (int dim = grid.rank() - 1; dim >= 0; --dim) {
      const std::int64_t first = box.begin[dim] + group % windows(dim) * window[dim];
      number += stride * (first + token % window[dim]);
      group /= windows(dim), token /= window[dim], stride *= grid[dim];
    }
    return number;
  }
};

/// Dropout of attention weights by a mask that is a function of (sample, head, query, key), hence equal on
/// every mesh. Element of the mask: (head · queries of the grid + query) · keys of the grid + key, all
/// global.
struct AttentionDropout {
  double probability = 0;
  RandomStream stream;
  RandomPosition position;      ///< sample: of the first one here
  std::int64_t first_head = 0;  ///< global number of the first head here
  TokenPlaces queries, keys;    ///< in as many groups

  /// Batches that are one sample, as its windows are: batch b is group b mod groups of sample b / groups.
  std::int64_t groups() const { return queries.groups(); }
  RandomPosition position_of(std::int64_t batch) const {
    RandomPosition result = position;
    result.sample += static_cast<std::uint64_t>(batch / groups());
    return result;
  }
  /// Where the mask's row of a query begins.
  std::int64_t row(std::int64_t head, std::int64_t query) const {
    return ((first_head + head) * queries.grid.count() + query) * keys.grid.count();
  }
};

/// What attention does besides: weights = dropout(softmax(scale · q·k + bias + mask)).
struct AttentionOptions {
  double scale = 1;
  Array bias;  ///< [heads, queries, keys], or undefined; f32 (f64 for f64)
  Array mask;  ///< [groups, queries, keys], for sample b that of group b mod groups, or undefined; −∞ hides a
               ///< key
  std::optional<AttentionDropout> dropout;
};

template <typename F>
void for_each_array(AttentionOptions& all, const F& f) {
  f(all.bias);
  f(all.mask);
}

/// The result over a set of keys, and the logarithm of the sum of the exponentials over it, by which results
/// over several sets combine.
struct AttentionResult {
  Array output;       ///< [B, queries, heads, d]
  Array log_sum_exp;  ///< [B, heads, queries], f32 (f64 for f64); −∞ where no key is seen, and the output is
                      ///< zero
};

template <typename F>
void for_each_array(AttentionResult& all, const F& f) {
  f(all.output);
  f(all.log_sum_exp);
}

/// torch.nn.functional.scaled_dot_product_attention in blocks, with running sums relative to a base that
/// follows the largest score: the matrix of weights never stands in memory (FlashAttention-2, Dao 2023, arXiv
/// 2307.08691).
/// @param q, k, v  of one type: any head size up to 256; any numbers of queries and keys, zero included.
///                 Computed in f32 (f64).
/// @param output   type of the result.
AttentionResult attention_forward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                  const AttentionOptions& options, DType output);

/// The result over the keys of both. Outputs are f32 (f64); the first is written.
void attention_combine(Context& context, AttentionResult& into, const AttentionResult& more);

/// Σ over d of dy · y, [B, heads, queries], f32 (f64): what backward needs of the result.
/// @param y, dy  [B, queries, heads, d].
Array attention_row_sums(Context& context, const Array& y, const Array& dy);

/// Gradients over one set of keys, the weights formed again from the log-sum-exp over *all* keys.
/// @param y           [B, queries, heads, d], of q's type: the result over all keys.
/// @param dy          of the same shape and type.
/// @param row_sums    attention_row_sums of the result over all keys; undefined: a backend that reads them
///                    forms them.
/// @param dq, dk, dv  results, of the shapes of q, k, v and any of their own types; written.
/// @param dbias       shape of the bias, f32 (f64); written; undefined if not wanted.
void attention_backward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                        const Array& y, const Array& dy, const Array& log_sum_exp, const Array& row_sums,
                        const AttentionOptions& options, HeadRows dq, HeadRows dk, HeadRows dv, Array dbias);

/// Rotary positions (Su et al. 2021, arXiv 2104.09864) along several axes: a head's d numbers are cut evenly
/// into one section per axis; of a section of m numbers, i and i + m/2 (i < m/2) are rotated together, by the
/// point's coordinate times base^(−2i/m).
struct Rotation {
  Shape space;                       ///< extents of the piece along each axis
  std::vector<std::int64_t> origin;  ///< coordinates of its first point
  double base = 10000;
  bool inverse = false;  ///< rotates back: the adjoint
};
/// @param x  [B, tokens, slots, heads, d], tokens being the points of the space in row-major order. Slots 0
///           and 1, queries and keys, are rotated, the others copied.
Array attention_rotate(Context& context, const Array& x, const Rotation& rotation);

}  // namespace jigsaw::inline kernels
