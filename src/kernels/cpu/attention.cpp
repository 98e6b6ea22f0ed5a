#include <array>

#include "kernels/attention_kernels.h"
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/lane_sum.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/thread_sums.h"
#include "kernels/cpu/vectorize.h"

namespace jigsaw::cpu {

namespace {

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
std::int64_t padded_size(std::int64_t size) {
  return (size + 15) / 16 * 16;
}

// ---- forward

/// Blocks of queries of one head after the other, on one thread.
template <int kLanes>
class ForwardThread {
  using L = Lanes<kLanes>;
  using Vector = typename L::Vector;

 public:
  static std::int64_t scratch_floats(const AttentionProblem& p) {
    const std::int64_t padded = padded_size(p.size);
    return p.key_blocks() * kKeys * 2 * padded + 2 * kQueries * (padded + kKeys) + kQueries * (1 + kLanes);
  }

  ForwardThread(const AttentionProblem& p, const AttentionResult& result, Scratch scratch)
      : p_(p),
        to_(HeadRows{result.output.reshaped({p.batches, p.queries, 1, p.heads, p.size}), 0}),
        log_sum_exp_(result.log_sum_exp.data<float>()),
        padded_(padded_size(p.size)),
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
      const std::int64_t next = key + kKeys < p_.keys ? key + kKeys : 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        take_row(row, columns);
        prefetch_keys(next + row * kKeysPerQuery);
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

  static constexpr std::int64_t kKeysPerQuery = kKeys / kQueries;

  /// A query's share of the next block.
  void prefetch_keys(std::int64_t key) {
    prefetch(keys_ + key * p_.size, kKeysPerQuery * p_.size);
    prefetch(values_ + key * padded_, kKeysPerQuery * padded_);
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
  float *keys_, *values_, *queries_, *weights_, *factors_, *output_, *largest_, *sums_;
};

// ---- backward

/// Where the backward's results go, and what it reads besides the operands.
struct BackwardOperands {
  RowsOfHead dy, dq, dk, dv;
  const float *log_sum_exp, *row_sums;
  std::int64_t parts;  ///< ranges of keys that threads take apart
  float* dq_parts;     ///< [parts, heads, queries, padded]: their summands of dq; null for one part
};

/// Ranges of keys of one head after the other, on one thread.
template <int kLanes>
class BackwardThread {
  using L = Lanes<kLanes>;
  using Vector = typename L::Vector;

 public:
  static std::int64_t scratch_floats(const AttentionProblem& p) {
    const std::int64_t padded = padded_size(p.size), queries = blocks_of(p.queries, L::kDown) * L::kDown;
    return 3 * queries * padded + 2 * queries + 5 * kKeys * padded + 3 * kQueries * kKeys;
  }

  BackwardThread(const AttentionProblem& p, const BackwardOperands& to, float* dbias, Scratch scratch)
      : p_(p),
        to_(to),
        dbias_(dbias),
        padded_(padded_size(p.size)),
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

  /// Scores to weights, and the gradient of weights to that of scores.
  template <bool kDropout>
  void slopes(const WeightBlock& at, std::int64_t columns) {
    const std::int64_t next = at.query + kQueries < p_.queries ? at.query + kQueries : 0;
    for (std::int64_t row = 0; row < at.rows; ++row) {
      row_slopes<kDropout>(at, row, columns);
      if (next + row < p_.queries) prefetch_query(next + row);
    }
  }

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
  const BackwardOperands& to_;
  float* dbias_;
  std::int64_t padded_;
  float *queries_, *dy_, *dq_, *log_sums_, *row_sums_, *keys_, *keys_across_, *values_across_, *dk_, *dv_,
      *weights_, *slopes_, *factors_;
};

/// Ranges of keys into which each head is cut so that all threads have equal work.
std::int64_t parts_of(const AttentionProblem& p, int threads) {
  const std::int64_t heads = p.batches * p.heads;
  std::int64_t best = 1;
  double least = 0;
  for (std::int64_t parts = 1; parts <= std::min<std::int64_t>(threads, p.key_blocks()); ++parts) {
    const std::int64_t rounds = blocks_of(heads * parts, threads);
    const double seconds = static_cast<double>(rounds) / static_cast<double>(parts);
    if (parts == 1 || seconds < 0.9 * least) best = parts, least = seconds;
  }
  return best;
}

HeadRows as_rows(const Array& y) {
  const Shape& s = y.shape();
  return {y.reshaped({s[0], s[1], 1, s[2], s[3]}), 0};
}

void fill_zero(const HeadRows& rows) {
  const RowsOfHead to(rows);
  const std::vector<float> zeros(static_cast<std::size_t>(rows.head_size()), 0.0F);
  for (std::int64_t row = 0; row < rows.batches() * rows.heads() * rows.tokens(); ++row) {
    const std::int64_t head = row / rows.tokens();
    to.store(head / rows.heads(), head % rows.heads(), row % rows.tokens(), 1, 1.0F, zeros.data(),
             rows.head_size());
  }
}

class Attention : public AttentionKernels {
 public:
  void forward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
               const AttentionOptions& options, AttentionResult& result) const override {
    const AttentionProblem p(q, k, v, options);
    const std::int64_t items = p.batches * p.heads * p.query_blocks();
    if (items == 0) return;
    const int threads = threads_for(context, items, kQueries * p.keys * p.size);
    const Workspace workspace(context, threads, ForwardThread<16>::scratch_floats(p));
    for_ranges(threads, items, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      vectorized_lanes([&, begin, end, thread](auto lanes) {
        ForwardThread<lanes.value>(p, result, workspace.of(thread)).run(begin, end);
      });
    });
  }

  void combine(Context& context, AttentionResult& into, const AttentionResult& more) const override {
    const Shape& shape = into.output.shape();
    const std::int64_t heads = shape[2], queries = shape[1], size = shape[3], rows = shape.count(0, 3);
    float *const output = into.output.data<float>(), *const sums = into.log_sum_exp.data<float>();
    const float *const added = more.output.data<float>(), *const more_sums = more.log_sum_exp.data<float>();
    for_ranges(threads_for(context, rows, size), rows, heads, [&](std::int64_t begin, std::int64_t end, int) {
      vectorized([=] {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t head = row % heads, token = row / heads;
          const std::int64_t at = (token / queries * heads + head) * queries + token % queries;
          const float here = sums[at], there = more_sums[at], largest = std::max(here, there);
          if (!(largest > kHidden)) continue;
          const float sum = std::exp(here - largest) + std::exp(there - largest);
          const float keep = std::exp(here - largest) / sum, add = std::exp(there - largest) / sum;
          for (std::int64_t i = row * size; i < (row + 1) * size; ++i)
            output[i] = keep * output[i] + add * added[i];
          sums[at] = largest + std::log(sum);
        }
      });
    });
  }

  void row_sums(Context& context, const Array& y, const Array& dy, Array& sums) const override {
    const Shape& shape = y.shape();
    const std::int64_t heads = shape[2], queries = shape[1], size = shape[3], rows = shape.count(0, 3);
    float* const to = sums.data<float>();
    visit_fast(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *const a = y.data<T>(), *const b = dy.data<T>();
      for_ranges(threads_for(context, rows, size), rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
        vectorized([=] {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t head = row % heads, token = row / heads;
            to[(token / queries * heads + head) * queries + token % queries] =
                lane_sum<float>(size, [x = a + row * size, y = b + row * size](std::int64_t i) {
                  return static_cast<float>(x[i]) * static_cast<float>(y[i]);
                });
          }
        });
      });
    });
  }

  void backward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v, const Array& dy,
                const Array& log_sum_exp, const Array& row_sums, const AttentionOptions& options,
                const HeadRows& dq, const HeadRows& dk, const HeadRows& dv,
                const Array& dbias) const override {
    const AttentionProblem p(q, k, v, options);
    if (dbias.defined()) std::fill_n(dbias.data<float>(), dbias.count(), 0.0F);
    if (p.queries == 0 || p.keys == 0) {
      for (const HeadRows* rows : {&dq, &dk, &dv}) fill_zero(*rows);
      return;
    }
    const std::int64_t heads = p.batches * p.heads;
    if (heads == 0) return;
    const std::int64_t parts = parts_of(p, context.threads());
    const int threads = threads_for(context, heads * parts, p.queries * p.keys * p.size);
    const std::int64_t count = p.queries * padded_size(p.size);
    const Workspace workspace(context, threads, BackwardThread<16>::scratch_floats(p));
    const Array dq_parts =
        parts > 1 ? Array(context, {parts, heads, count}, DType::kFloat32, Purpose::kWorkspace) : Array();
    const ThreadSums bias_sums(context, dbias.defined() ? threads : 1, dbias.defined() ? dbias.count() : 1);
    const BackwardOperands to{RowsOfHead(as_rows(dy)),
                              RowsOfHead(dq),
                              RowsOfHead(dk),
                              RowsOfHead(dv),
                              log_sum_exp.data<float>(),
                              row_sums.data<float>(),
                              parts,
                              parts > 1 ? dq_parts.data<float>() : nullptr};
    for_ranges(threads, heads * parts, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      float* const own_bias_sums = dbias.defined() ? bias_sums.of(thread) : nullptr;
      vectorized_lanes([&, begin, end, thread](auto lanes) {
        BackwardThread<lanes.value>(p, to, own_bias_sums, workspace.of(thread)).run(begin, end);
      });
    });
    if (parts > 1) add_parts(threads, p, to);
    if (dbias.defined()) bias_sums.total(0, dbias.count(), dbias.data<float>());
  }

  void rotate(Context& context, const Array& x, const Shape& space, const std::vector<RotationTable>& tables,
              Array& y) const override {
    const Shape& shape = x.shape();
    const std::int64_t rows = shape[0] * shape[1], width = shape.count(2, 5);
    std::vector<std::vector<float>> cosines, sines;
    for (const RotationTable& table : tables) {
      cosines.emplace_back(table.cosine.begin(), table.cosine.end());
      sines.emplace_back(table.sine.begin(), table.sine.end());
    }
    const std::int64_t pairs = tables.front().pairs, axes = space.rank(), heads = 2 * shape[3], d = shape[4];
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_ranges(threads_for(context, rows, width), rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
        vectorized([&, begin, end] {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* const from = x.data<T>() + row * width;
            T* const to = y.data<T>() + row * width;
            std::int64_t point = row % shape[1];
            for (std::int64_t axis = axes - 1; axis >= 0; --axis) {
              const auto a = static_cast<std::size_t>(axis);
              const std::int64_t extent = space[static_cast<int>(axis)], at = point % extent * pairs;
              point /= extent;
              const float *const cosine = cosines[a].data() + at, *const sine = sines[a].data() + at;
              for (std::int64_t head = 0; head < heads; ++head) {
                const std::int64_t first = head * d + axis * 2 * pairs;
                rotate_section(from + first, cosine, sine, pairs, to + first);
              }
            }
            std::copy(from + heads * d, from + width, to + heads * d);
          }
        });
      });
    });
  }

 private:
  template <typename T>
  static void rotate_section(const T* x, const float* cosine, const float* sine, std::int64_t pairs, T* y) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const auto a = static_cast<float>(x[i]), b = static_cast<float>(x[pairs + i]);
      y[i] = rounded<T>(a * cosine[i] - b * sine[i]);
      y[pairs + i] = rounded<T>(b * cosine[i] + a * sine[i]);
    }
  }

  class Workspace {
   public:
    Workspace(Context& context, int threads, std::int64_t floats)
        : floats_(Scratch::rounded(floats) + 16 * 16),
          memory_(context, {threads, floats_}, DType::kFloat32, Purpose::kWorkspace) {}
    Scratch of(int thread) const { return {memory_.data<float>() + thread * floats_, floats_}; }

   private:
    std::int64_t floats_;
    Array memory_;
  };

  /// dq = scale · the sum over the parts, in their order.
  static void add_parts(int threads, const AttentionProblem& p, const BackwardOperands& to) {
    const std::int64_t rows = p.batches * p.heads * p.queries, padded = padded_size(p.size),
                       part = rows * padded;
    for_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) {
        float* const sum = to.dq_parts + row * padded;
        for (std::int64_t other = 1; other < to.parts; ++other) {
          for (std::int64_t i = 0; i < padded; ++i) sum[i] += sum[other * part + i];
        }
        const std::int64_t head = row / p.queries;
        to.dq.store(head / p.heads, head % p.heads, row % p.queries, 1, static_cast<float>(p.options.scale),
                    sum, padded);
      }
    });
  }
};

}  // namespace

template <>
const AttentionKernels& kernels() {
  static const Attention instance;
  return instance;
}

}  // namespace jigsaw::cpu
