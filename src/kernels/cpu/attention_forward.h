#pragma once
#include "array/raw_memory.h"
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/head_queues.h"
#include "kernels/front/attention_kernels.h"

namespace jigsaw::inline kernels::cpu {

/// Heads or parts of them, ranges of queries, on one thread.
template <int kLanes>
class AttentionForward {
  using L = Lanes<kLanes>;
  using Vector = typename L::Vector;

 public:
  static std::int64_t scratch_floats(const AttentionProblem& p) {
    const std::int64_t padded = padded_head_size(p.size);
    return p.key_blocks() * kKeys * 2 * padded + 2 * kQueries * (padded + kKeys) + kQueries * (1 + kLanes);
  }

  AttentionForward(const AttentionProblem& p, AttentionResult& result, Scratch scratch)
      : p_(p),
        to_(HeadRows{result.output.reshaped({p.batches, p.queries, 1, p.heads, p.size}), 0}),
        log_sum_exp_(result.log_sum_exp.data<float>()),
        padded_(padded_head_size(p.size)),
        keys_(scratch.take(p.key_blocks() * kKeys * p.size)),
        values_(scratch.take(p.key_blocks() * kKeys * padded_)),
        queries_(scratch.take(kQueries * padded_)),
        weights_(scratch.take(kQueries * kKeys)),
        factors_(scratch.take(kQueries * kKeys)),
        output_(scratch.take(kQueries * padded_)),
        bases_(scratch.take(kQueries)),
        sums_(scratch.take(kQueries * kLanes)) {}

  void run(const HeadQueues::Item& item) {
    if (item.head != packed_) pack(item.head);
    packed_ = item.head;
    for (std::int64_t b = item.begin; b < item.end; ++b) block(item.head, b * kQueries);
  }

 private:
  void pack(std::int64_t head) {
    for (std::int64_t key = 0; key < p_.keys; key += kKeys) {
      const std::int64_t count = std::min(kKeys, p_.keys - key);
      float* const values = values_ + key * padded_;
      p_.k.load(head / p_.heads, head % p_.heads, key, count, 1.0F, values, padded_);
      transpose_keys(values, count, p_.size, padded_, L::rounded_up(count), keys_ + key * p_.size);
      p_.v.load(head / p_.heads, head % p_.heads, key, count, 1.0F, values, padded_);
    }
  }

  void block(std::int64_t head, std::int64_t query) {
    const std::int64_t rows = std::min(kQueries, p_.queries - query);
    p_.q.load(head / p_.heads, head % p_.heads, query, rows, p_.query_factor(), queries_, padded_);
    std::fill_n(output_, blocks_of(rows, L::kDown) * L::kDown * padded_, 0.0F);
    std::fill_n(bases_, rows, kLowest);
    std::fill_n(sums_, rows * kLanes, 0.0F);
    for (std::int64_t key = 0; key < p_.keys; key += kKeys) {
      const WeightBlock at{
          head / p_.heads, head % p_.heads, query, key, rows, std::min(kKeys, p_.keys - key)};
      for (std::int64_t row = 0; row < rows; row += kTogether) weigh(at, row);
      if (p_.options.dropout) {
        dropout_block(*p_.options.dropout, at, factors_);
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t i = 0; i < at.columns; ++i)
            weights_[row * kKeys + i] *= factors_[row * kKeys + i];
        }
      }
      L::product({weights_, kKeys, 1}, rows, at.columns, values_ + key * padded_, padded_, padded_, output_,
                 padded_, {.c = true});
    }
    finish(head, query, rows);
  }

  /// Weights of kTogether queries, the block's from `row` on, relative to the queries' bases. A base is the
  /// largest score of the first keys; the bases are raised, and what was summed before is scaled, only where
  /// a weight of one of these queries would outgrow 2^kGrowth.
  void weigh(const WeightBlock& whole, std::int64_t row) {
    WeightBlock at = whole;
    at.query += row, at.rows = std::min(kTogether, whole.rows - row);
    Vector sums[kTogether];
    bool fits = false;
    if (at.key > 0) {
      score(at, row, bases_ + row);
      fits = exponentiate(at, row, sums);
    }
    if (!fits) {
      score(at, row, nullptr);
      raise(at, row);
      exponentiate(at, row, sums);
    }
    // After the last block comes the first, for the next queries of the head.
    const std::int64_t next = at.key + kKeys < p_.keys ? at.key + kKeys : 0;
    for (std::int64_t i = 0; i < at.rows; ++i) {
      reinterpret_cast<Vector*>(sums_)[row + i] += sums[i];
      prefetch_share(next, row + i);
    }
  }

  /// Scores less the bases, or less nothing.
  void score(const WeightBlock& at, std::int64_t row, const float* bases) {
    L::product({queries_ + row * padded_, padded_, 1}, at.rows, p_.size, keys_ + at.key * p_.size, kKeys,
               L::rounded_up(at.columns), weights_ + row * kKeys, kKeys,
               {.minus = adds_to_scores(p_.options) ? nullptr : bases});
    finish_scores<kLanes>(p_, at, bases, weights_ + row * kKeys);
  }

  /// Makes the largest score of each query its base, where that is larger, and scores relative to it.
  void raise(const WeightBlock& at, std::int64_t first) {
    const std::int64_t vectors = L::rounded_up(at.columns) / kLanes;
    for (std::int64_t row = first; row < first + at.rows; ++row) {
      auto* const scores = reinterpret_cast<Vector*>(weights_ + row * kKeys);
      Vector most = Vector{} + bases_[row];
      for (std::int64_t i = 0; i < vectors; ++i) most = scores[i] > most ? scores[i] : most;
      const float base = L::largest(most);
      for (std::int64_t i = 0; i < vectors; ++i) scores[i] -= base;
      Vector before[1] = {Vector{} + (bases_[row] - base)};
      L::exp2(before);
      reinterpret_cast<Vector*>(sums_)[row] *= before[0];
      auto* const output = reinterpret_cast<Vector*>(output_ + row * padded_);
      for (std::int64_t i = 0; i < padded_ / kLanes; ++i) output[i] *= before[0];
      bases_[row] = base;
    }
  }

  /// Relative scores to weights, and their sums by lanes; false if one is too large.
  bool exponentiate(const WeightBlock& at, std::int64_t row, Vector* sums) {
    Vector most{};
    for (std::int64_t r = 0; r < at.rows; ++r) {
      auto* const weights = reinterpret_cast<Vector*>(weights_ + (row + r) * kKeys);
      Vector sum{};
      L::by_fours(L::rounded_up(at.columns) / kLanes, [&](std::int64_t first, auto count) {
        Vector x[count];
        for (int i = 0; i < count; ++i) {
          x[i] = weights[first + i];
          most = x[i] > most ? x[i] : most;
        }
        L::exp2(x);
        for (int i = 0; i < count; ++i) {
          sum += x[i];
          weights[first + i] = x[i];
        }
      });
      sums[r] = sum;
    }
    return L::largest(most) <= kGrowth;
  }

  /// A query's share of the memory of the block of keys from `key` on, in which keys lie transposed.
  void prefetch_share(std::int64_t key, std::int64_t row) {
    static_assert(kKeys % kQueries == 0);
    constexpr std::int64_t kShare = kKeys / kQueries;
    prefetch(keys_ + (key + row * kShare) * p_.size, kShare * p_.size);
    prefetch(values_ + (key + row * kShare) * padded_, kShare * padded_);
  }

  void finish(std::int64_t head, std::int64_t query, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float sum = L::sum(reinterpret_cast<const Vector*>(sums_)[row]);
      log_sum_exp_[head * p_.queries + query + row] = sum > 0    ? bases_[row] * kLn2 + std::log(sum)
                                                      : sum == 0 ? kHidden
                                                                 : sum;
      to_.store(head / p_.heads, head % p_.heads, query + row, 1, sum == 0 ? 0.0F : 1.0F / sum,
                output_ + row * padded_, padded_);
    }
  }

  /// Whole tiles, whose scores stay in the nearest cache.
  static constexpr std::int64_t kTogether = 24;
  static_assert(kTogether % L::kDown == 0);
  /// Far from overflow, and rarely reached.
  static constexpr float kGrowth = 16;

  const AttentionProblem& p_;
  WritableRows to_;
  float* log_sum_exp_;
  std::int64_t padded_, packed_ = -1;  ///< the head at hand
  float *keys_, *values_, *queries_, *weights_, *factors_, *output_, *bases_;
  float* sums_;  ///< of weights, [queries, lanes]: folded when the block is finished
};

}  // namespace jigsaw::inline kernels::cpu
