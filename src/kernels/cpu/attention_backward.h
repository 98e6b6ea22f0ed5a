#pragma once
#include "kernels/attention_kernels.h"
#include "kernels/cpu/attention_tiles.h"

namespace jigsaw::cpu {

/// Where the backward's results go, and what it reads besides the operands.
struct AttentionBackwardOperands {
  RowsOfHead dy, dq, dk, dv;
  const float *log_sum_exp, *row_sums;
  std::int64_t parts;  ///< ranges of keys that threads take apart
  float* dq_parts;     ///< [parts, heads, queries, padded]: their summands of dq; null for one part
};

/// Ranges of keys of one head after the other, on one thread.
template <int kLanes>
class AttentionBackward {
  using L = Lanes<kLanes>;
  using Vector = typename L::Vector;

 public:
  static std::int64_t scratch_floats(const AttentionProblem& p) {
    const std::int64_t padded = padded_head_size(p.size), queries = blocks_of(p.queries, L::kDown) * L::kDown;
    return 3 * queries * padded + 2 * queries + 5 * kKeys * padded + 3 * kQueries * kKeys;
  }

  AttentionBackward(const AttentionProblem& p, const AttentionBackwardOperands& to, float* dbias,
                    Scratch scratch)
      : p_(p),
        to_(to),
        dbias_(dbias),
        padded_(padded_head_size(p.size)),
        queries_(scratch.take(whole_queries() * padded_)),
        dy_(scratch.take(whole_queries() * padded_)),
        dq_(scratch.take(whole_queries() * padded_)),
        log_sums_(scratch.take(whole_queries())),
        row_sums_(scratch.take(whole_queries())),
        keys_(scratch.take(kKeys * padded_)),
        keys_across_(scratch.take(kKeys * padded_)),
        values_across_(scratch.take(kKeys * padded_)),
        dk_(scratch.take(kKeys * padded_)),
        dv_(scratch.take(kKeys * padded_)),
        weights_(scratch.take(kQueries * kKeys)),
        slopes_(scratch.take(kQueries * kKeys)),
        factors_(scratch.take(kQueries * kKeys)) {}

  /// Items are parts of heads, those of a head one after the other.
  void run(std::int64_t begin, std::int64_t end) {
    std::int64_t packed = -1;
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t head = item / to_.parts, part = item % to_.parts, blocks = p_.key_blocks();
      if (head != packed) pack(head);
      packed = head;
      std::fill_n(dq_, whole_queries() * padded_, 0.0F);
      for (std::int64_t b = blocks * part / to_.parts; b < blocks * (part + 1) / to_.parts; ++b) {
        key_block(head, b * kKeys);
      }
      if (to_.dq_parts == nullptr) {
        to_.dq.store(head / p_.heads, head % p_.heads, 0, p_.queries, static_cast<float>(p_.options.scale),
                     dq_, padded_);
      } else {
        const std::int64_t count = p_.queries * padded_;
        std::copy_n(dq_, count, to_.dq_parts + (part * p_.batches * p_.heads + head) * count);
      }
    }
  }

 private:
  /// With the rows that make the last tile whole.
  std::int64_t whole_queries() const { return blocks_of(p_.queries, L::kDown) * L::kDown; }

  void pack(std::int64_t head) {
    const std::int64_t whole = whole_queries(), rest = (whole - p_.queries) * padded_;
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
    L::product({queries, padded_, 1}, at.rows, p_.size, keys_across_, kKeys, columns, weights_, kKeys, false);
    finish_scores<kLanes>(p_, at, weights_);
    L::product({dy, padded_, 1}, at.rows, p_.size, values_across_, kKeys, columns, slopes_, kKeys, false);
    if (p_.options.dropout) {
      dropout_block(*p_.options.dropout, at, factors_);
      slopes<true>(at, columns);
    } else {
      slopes<false>(at, columns);
    }
    if (dbias_ != nullptr) add_bias_slopes(at);
    L::product({weights_, 1, kKeys}, at.columns, at.rows, dy, padded_, padded_, dv_, padded_, true);
    L::product({slopes_, 1, kKeys}, at.columns, at.rows, queries, padded_, padded_, dk_, padded_, true);
    L::product({slopes_, kKeys, 1}, at.rows, at.columns, keys_, padded_, padded_, dq_ + at.query * padded_,
               padded_, true);
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

  /// Scores to weights, and the gradient of weights to that of scores.
  template <bool kDropout>
  void row_slopes(const WeightBlock& at, std::int64_t row, std::int64_t columns) {
    auto* const weights = reinterpret_cast<Vector*>(weights_ + row * kKeys);
    auto* const slopes = reinterpret_cast<Vector*>(slopes_ + row * kKeys);
    const auto* const factors = reinterpret_cast<const Vector*>(factors_ + row * kKeys);
    const float log_sum = log_sums_[at.query + row], row_sum = row_sums_[at.query + row];
    for (std::int64_t i = 0; i < columns / kLanes; ++i) {
      Vector weight = weights[i] - log_sum;
      L::exp2(weight);
      if constexpr (kDropout) {
        slopes[i] = weight * (slopes[i] * factors[i] - row_sum);
        weights[i] = weight * factors[i];
      } else {
        slopes[i] = weight * (slopes[i] - row_sum);
        weights[i] = weight;
      }
    }
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
  std::int64_t padded_;
  float *queries_, *dy_, *dq_, *log_sums_, *row_sums_, *keys_, *keys_across_, *values_across_, *dk_, *dv_,
      *weights_, *slopes_, *factors_;
};

}  // namespace jigsaw::cpu
