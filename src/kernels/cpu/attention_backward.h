#pragma once
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/head_queues.h"
#include "kernels/front/attention_kernels.h"

namespace jigsaw::inline kernels::cpu {

/// Where the backward's results go, and what it reads besides the operands.
struct AttentionBackwardOperands {
  RowsOfHead dy;
  WritableRows dq, dk, dv;
  const float *log_sum_exp, *row_sums;
  const HeadQueues& queues;  ///< of blocks of keys
  float* dq_parts;  ///< [parts, heads that are cut, whole queries, padded]: their summands of dq, or null
};

/// Heads or parts of them, ranges of keys, on one thread.
template <int kLanes>
class AttentionBackward {
  using L = Lanes<kLanes>;
  using Vector = typename L::Vector;

 public:
  /// With the rows that make the last tile whole.
  static std::int64_t whole_queries(const AttentionProblem& p) {
    return blocks_of(p.queries, L::kDown) * L::kDown;
  }

  static std::int64_t scratch_floats(const AttentionProblem& p) {
    const std::int64_t padded = padded_head_size(p.size), queries = whole_queries(p);
    return 3 * queries * padded + 2 * queries + 5 * kKeys * padded + 3 * kQueries * kKeys;
  }

  AttentionBackward(const AttentionProblem& p, const AttentionBackwardOperands& to, float* dbias,
                    Scratch scratch)
      : p_(p),
        to_(to),
        dbias_(dbias),
        padded_(padded_head_size(p.size)),
        queries_(scratch.take(whole_queries(p) * padded_)),
        dy_(scratch.take(whole_queries(p) * padded_)),
        own_dq_(scratch.take(whole_queries(p) * padded_)),
        log_sums_(scratch.take(whole_queries(p))),
        row_sums_(scratch.take(whole_queries(p))),
        keys_(scratch.take(kKeys * padded_)),
        keys_across_(scratch.take(kKeys * padded_)),
        values_across_(scratch.take(kKeys * padded_)),
        dk_(scratch.take(kKeys * padded_)),
        dv_(scratch.take(kKeys * padded_)),
        weights_(scratch.take(kQueries * kKeys)),
        slopes_(scratch.take(kQueries * kKeys)),
        factors_(scratch.take(kQueries * kKeys)) {}

  void run(const HeadQueues::Item& item) {
    if (item.head != packed_) pack(item.head);
    packed_ = item.head;
    const bool whole = item.cut_head < 0;
    const std::int64_t count = whole_queries(p_) * padded_;
    dq_ = whole ? own_dq_ : to_.dq_parts + (item.part * to_.queues.cut_heads() + item.cut_head) * count;
    std::fill_n(dq_, count, 0.0F);
    for (std::int64_t b = item.begin; b < item.end; ++b) key_block(item.head, b * kKeys);
    if (whole) {
      to_.dq.store(item.head / p_.heads, item.head % p_.heads, 0, p_.queries,
                   static_cast<float>(p_.options.scale), dq_, padded_);
    }
  }

 private:
  void pack(std::int64_t head) {
    const std::int64_t whole = whole_queries(p_), rest = (whole - p_.queries) * padded_;
    p_.q.load(head / p_.heads, head % p_.heads, 0, p_.queries, p_.query_factor(), queries_, padded_);
    to_.dy.load(head / p_.heads, head % p_.heads, 0, p_.queries, 1.0F, dy_, padded_);
    std::fill_n(queries_ + p_.queries * padded_, rest, 0.0F);
    std::fill_n(dy_ + p_.queries * padded_, rest, 0.0F);
    for (std::int64_t query = 0; query < whole; ++query) {
      const std::int64_t row = head * p_.queries + query;
      const float log_sum = query < p_.queries ? to_.log_sum_exp[row] * kLog2E : kHidden;
      // A query that sees no key has no weights.
      log_sums_[query] = log_sum == kHidden ? -kHidden : log_sum;
      row_sums_[query] = query < p_.queries ? to_.row_sums[row] : 0.0F;
    }
  }

  void key_block(std::int64_t head, std::int64_t key) {
    const std::int64_t batch = head / p_.heads, columns = std::min(kKeys, p_.keys - key);
    p_.v.load(batch, head % p_.heads, key, columns, 1.0F, keys_, padded_);
    transpose_keys(keys_, columns, p_.size, padded_, L::rounded_up(columns), values_across_);
    p_.k.load(batch, head % p_.heads, key, columns, 1.0F, keys_, padded_);
    transpose_keys(keys_, columns, p_.size, padded_, L::rounded_up(columns), keys_across_);
    std::fill_n(dk_, blocks_of(columns, L::kDown) * L::kDown * padded_, 0.0F);
    std::fill_n(dv_, blocks_of(columns, L::kDown) * L::kDown * padded_, 0.0F);
    for (std::int64_t query = 0; query < p_.queries; query += kQueries) {
      query_block({batch, head % p_.heads, query, key, std::min(kQueries, p_.queries - query), columns});
    }
    to_.dk.store(batch, head % p_.heads, key, columns, kLn2, dk_, padded_);  // of queries in base 2
    to_.dv.store(batch, head % p_.heads, key, columns, 1.0F, dv_, padded_);
  }

  void query_block(const WeightBlock& at) {
    const float *const queries = queries_ + at.query * padded_, *const dy = dy_ + at.query * padded_;
    const std::int64_t columns = L::rounded_up(at.columns);
    const bool dropout = p_.options.dropout.has_value();
    L::product({queries, padded_, 1}, at.rows, p_.size, keys_across_, kKeys, columns, weights_, kKeys,
               {.minus = adds_to_scores(p_.options) ? nullptr : log_sums_ + at.query});
    finish_scores<kLanes>(p_, at, log_sums_ + at.query, weights_);
    L::product({dy, padded_, 1}, at.rows, p_.size, values_across_, kKeys, columns, slopes_, kKeys,
               {.minus = dropout ? nullptr : row_sums_ + at.query});
    if (dropout) {
      dropout_block(*p_.options.dropout, at, factors_);
      slopes<true>(at, columns);
    } else {
      slopes<false>(at, columns);
    }
    if (dbias_ != nullptr) add_bias_slopes(at);
    L::product({weights_, 1, kKeys}, at.columns, at.rows, dy, padded_, padded_, dv_, padded_, {.c = true});
    L::product({slopes_, 1, kKeys}, at.columns, at.rows, queries, padded_, padded_, dk_, padded_,
               {.c = true});
    L::product({slopes_, kKeys, 1}, at.rows, at.columns, keys_, padded_, padded_, dq_ + at.query * padded_,
               padded_, {.c = true});
  }

  /// row_slopes() of the block, while the next block's queries are on their way.
  template <bool kDropout>
  void slopes(const WeightBlock& at, std::int64_t columns) {
    // After the last block comes the first, for the next keys of the head.
    const std::int64_t next = at.query + kQueries < p_.queries ? at.query + kQueries : 0;
    for (std::int64_t row = 0; row < at.rows; ++row) {
      row_slopes<kDropout>(at, row, columns);
      if (next + row < p_.queries) prefetch_query(next + row);
    }
  }

  /// Logarithms of weights to weights, and the gradient of weights, its row's sum already subtracted where no
  /// dropout comes first, to that of scores.
  template <bool kDropout>
  void row_slopes(const WeightBlock& at, std::int64_t row, std::int64_t columns) {
    auto* const weights = reinterpret_cast<Vector*>(weights_ + row * kKeys);
    auto* const slopes = reinterpret_cast<Vector*>(slopes_ + row * kKeys);
    const auto* const factors = reinterpret_cast<const Vector*>(factors_ + row * kKeys);
    const float row_sum = row_sums_[at.query + row];
    L::by_fours(columns / kLanes, [&](std::int64_t first, auto count) {
      Vector weight[count];
      for (int i = 0; i < count; ++i) weight[i] = weights[first + i];
      L::exp2(weight);
      for (int i = 0; i < count; ++i) {
        Vector& slope = slopes[first + i];
        if constexpr (kDropout) {
          slope = weight[i] * (slope * factors[first + i] - row_sum);
          weights[first + i] = weight[i] * factors[first + i];
        } else {
          slope = weight[i] * slope;
          weights[first + i] = weight[i];
        }
      }
    });
  }

  void prefetch_query(std::int64_t query) {
    for (const float* rows : {queries_, dy_, dq_}) prefetch(rows + query * padded_, padded_);
  }

  void add_bias_slopes(const WeightBlock& at) {
    for (std::int64_t row = 0; row < at.rows; ++row) {
      float* const sums = dbias_ + (at.head * p_.queries + at.query + row) * p_.keys + at.key;
      const float* const slopes = slopes_ + row * kKeys;
      for (std::int64_t i = 0; i < at.columns; ++i) sums[i] += slopes[i];
    }
  }

  const AttentionProblem& p_;
  const AttentionBackwardOperands& to_;
  float* dbias_;
  std::int64_t padded_, packed_ = -1;  ///< the head at hand
  float *queries_, *dy_, *own_dq_, *dq_ = nullptr, *log_sums_, *row_sums_, *keys_, *keys_across_,
                                   *values_across_, *dk_, *dv_, *weights_, *slopes_, *factors_;
};

}  // namespace jigsaw::inline kernels::cpu
