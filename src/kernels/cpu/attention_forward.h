#pragma once
#include "kernels/attention_kernels.h"
#include "kernels/cpu/attention_tiles.h"

namespace jigsaw::cpu {

/// Blocks of queries of one head after the other, on one thread.
template <int kLanes>
class AttentionForward {
  using L = Lanes<kLanes>;
  using Vector = typename L::Vector;

 public:
  static std::int64_t scratch_floats(const AttentionProblem& p) {
    const std::int64_t padded = padded_head_size(p.size);
    return p.key_blocks() * kKeys * 2 * padded + 2 * kQueries * (padded + kKeys) + kQueries * (1 + kLanes);
  }

  AttentionForward(const AttentionProblem& p, const AttentionResult& result, Scratch scratch)
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
        largest_(scratch.take(kQueries)),
        sums_(scratch.take(kQueries * kLanes)) {}

  /// Items are blocks of queries, those of a head one after the other.
  void run(std::int64_t begin, std::int64_t end) {
    std::int64_t packed = -1;
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t head = item / p_.query_blocks();
      if (head != packed) pack(head);
      packed = head;
      block(head, item % p_.query_blocks() * kQueries);
    }
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
    std::fill_n(largest_, rows, kLowest);
    std::fill_n(sums_, rows * kLanes, 0.0F);
    for (std::int64_t key = 0; key < p_.keys; key += kKeys) {
      const WeightBlock at{
          head / p_.heads, head % p_.heads, query, key, rows, std::min(kKeys, p_.keys - key)};
      const std::int64_t columns = L::rounded_up(at.columns);
      L::product({queries_, padded_, 1}, rows, p_.size, keys_ + key * p_.size, kKeys, columns, weights_,
                 kKeys, false);
      finish_scores<kLanes>(p_, at, weights_);
      // After the last block comes the first, for the next queries of the head.
      const std::int64_t next = key + kKeys < p_.keys ? key + kKeys : 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        take_row(row, columns);
        prefetch_share(next, row);
      }
      if (p_.options.dropout) {
        dropout_block(*p_.options.dropout, at, factors_);
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t i = 0; i < at.columns; ++i)
            weights_[row * kKeys + i] *= factors_[row * kKeys + i];
        }
      }
      L::product({weights_, kKeys, 1}, rows, at.columns, values_ + key * padded_, padded_, padded_, output_,
                 padded_, true);
    }
    finish(head, query, rows);
  }

  /// A query's share of the memory of the block of keys from `key` on, in which keys lie transposed.
  void prefetch_share(std::int64_t key, std::int64_t row) {
    static_assert(kKeys % kQueries == 0);
    constexpr std::int64_t kShare = kKeys / kQueries;
    prefetch(keys_ + (key + row * kShare) * p_.size, kShare * p_.size);
    prefetch(values_ + (key + row * kShare) * padded_, kShare * padded_);
  }

  /// Scores to weights relative to the largest so far, to which what was summed before is scaled.
  void take_row(std::int64_t row, std::int64_t columns) {
    auto* const weights = reinterpret_cast<Vector*>(weights_ + row * kKeys);
    const std::int64_t vectors = columns / kLanes;
    Vector most = Vector{} + largest_[row];
    for (std::int64_t i = 0; i < vectors; ++i) most = weights[i] > most ? weights[i] : most;
    const float largest = L::largest(most);
    auto& sum = reinterpret_cast<Vector*>(sums_)[row];
    if (largest > largest_[row]) {
      Vector before = Vector{} + (largest_[row] - largest);
      L::exp2(before);
      sum *= before;
      auto* const output = reinterpret_cast<Vector*>(output_ + row * padded_);
      for (std::int64_t i = 0; i < padded_ / kLanes; ++i) output[i] *= before;
      largest_[row] = largest;
    }
    Vector added{};
    for (std::int64_t i = 0; i < vectors; ++i) {
      Vector weight = weights[i] - largest;
      L::exp2(weight);
      added += weight;
      weights[i] = weight;
    }
    sum += added;
  }

  void finish(std::int64_t head, std::int64_t query, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float sum = L::sum(reinterpret_cast<const Vector*>(sums_)[row]);
      log_sum_exp_[head * p_.queries + query + row] = sum > 0    ? largest_[row] * kLn2 + std::log(sum)
                                                      : sum == 0 ? kHidden
                                                                 : sum;
      to_.store(head / p_.heads, head % p_.heads, query + row, 1, sum == 0 ? 0.0F : 1.0F / sum,
                output_ + row * padded_, padded_);
    }
  }

  const AttentionProblem& p_;
  RowsOfHead to_;
  float* log_sum_exp_;
  std::int64_t padded_;
  float *keys_, *values_, *queries_, *weights_, *factors_, *output_, *largest_;
  float* sums_;  ///< of weights, [queries, lanes]: folded when the block is finished
};

}  // namespace jigsaw::cpu
