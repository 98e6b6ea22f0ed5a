#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/front/attention_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// An operand read as doubles; written in its own type.
double read(const Array& array, std::int64_t i) {
  return visit(array.dtype(),
               [&](auto zero) { return static_cast<double>(array.data<decltype(zero)>()[i]); });
}
void write(Array& array, std::int64_t i, double value) {
  visit(array.dtype(),
        [&](auto zero) { array.data<decltype(zero)>()[i] = static_cast<decltype(zero)>(value); });
}

/// One query of one head against all keys.
struct Query {
  const HeadRows &q, &k, &v;
  const AttentionOptions& options;
  std::int64_t batch, head, token;

  double dot(const HeadRows& a, std::int64_t a_at, const HeadRows& b, std::int64_t b_token) const {
    double sum = 0;
    const std::int64_t b_at = b.at(batch, b_token, head);
    for (std::int64_t i = 0; i < b.head_size(); ++i) sum += read(a.array, a_at + i) * read(b.array, b_at + i);
    return sum;
  }

  std::vector<double> scores() const {
    std::vector<double> scores(static_cast<std::size_t>(k.tokens()));
    for (std::int64_t key = 0; key < k.tokens(); ++key) {
      double& score = scores[static_cast<std::size_t>(key)];
      score = options.scale * dot(q, q.at(batch, token, head), k, key);
      const std::int64_t row = token * k.tokens() + key, plane = q.tokens() * k.tokens();
      if (options.bias.defined()) score += read(options.bias, head * plane + row);
      if (options.mask.defined()) score += read(options.mask, batch % options.mask.shape()[0] * plane + row);
    }
    return scores;
  }

  /// What dropout multiplies the weight by.
  double factor(std::int64_t key) const {
    if (!options.dropout) return 1;
    const AttentionDropout& dropout = *options.dropout;
    const std::int64_t group = batch % dropout.groups();
    const std::int64_t element =
        dropout.row(head, dropout.queries.number(group, token)) + dropout.keys.number(group, key);
    const bool kept = dropout.stream.uniform(dropout.position_of(batch),
                                             static_cast<std::uint64_t>(element)) >= dropout.probability;
    return kept ? 1 / (1 - dropout.probability) : 0;
  }
};

/// The score of a key that a query does not see, and the logarithm of sums over none.
constexpr double kHidden = -std::numeric_limits<double>::infinity();

template <typename F>
void for_queries(const HeadRows& q, const HeadRows& k, const HeadRows& v, const AttentionOptions& options,
                 const F& f) {
  for (std::int64_t batch = 0; batch < q.batches(); ++batch) {
    for (std::int64_t head = 0; head < q.heads(); ++head) {
      for (std::int64_t token = 0; token < q.tokens(); ++token) {
        f(Query{q, k, v, options, batch, head, token}, (batch * q.heads() + head) * q.tokens() + token);
      }
    }
  }
}

HeadRows as_rows(const Array& y) {
  const Shape& s = y.shape();
  return {y.reshaped({s[0], s[1], 1, s[2], s[3]}), 0};
}

class Attention : public AttentionKernels {
 public:
  void forward(Context&, const HeadRows& q, const HeadRows& k, const HeadRows& v,
               const AttentionOptions& options, AttentionResult& result) const override {
    HeadRows y = as_rows(result.output);
    for_queries(q, k, v, options, [&](const Query& query, std::int64_t row) {
      const std::vector<double> scores = query.scores();
      double largest = kHidden, sum = 0;
      for (const double score : scores) largest = std::max(largest, score);
      const bool seen = std::ranges::any_of(scores, [](double score) { return score != kHidden; });
      std::vector<double> output(static_cast<std::size_t>(q.head_size()), 0.0);
      for (std::int64_t key = 0; seen && key < k.tokens(); ++key) {
        const double weight = std::exp(scores[static_cast<std::size_t>(key)] - largest);
        sum += weight;
        const std::int64_t from = v.at(query.batch, key, query.head);
        const double kept = weight * query.factor(key);
        for (std::size_t i = 0; i < output.size(); ++i)
          output[i] += kept * read(v.array, from + static_cast<std::int64_t>(i));
      }
      write(result.log_sum_exp, row, seen ? largest + std::log(sum) : largest);
      const std::int64_t to = y.at(query.batch, query.token, query.head);
      for (std::size_t i = 0; i < output.size(); ++i)
        write(y.array, to + static_cast<std::int64_t>(i), seen ? output[i] / sum : 0.0);
    });
  }

  void combine(Context&, AttentionResult& into, const AttentionResult& more) const override {
    HeadRows a = as_rows(into.output);
    const HeadRows b = as_rows(more.output);
    for_queries(a, a, a, {}, [&](const Query& query, std::int64_t row) {
      const double here = read(into.log_sum_exp, row), there = read(more.log_sum_exp, row);
      if (here == kHidden && there == kHidden) return;
      const double largest = std::max(here, there);  // a NaN of either shows in the sum
      const double sum = std::exp(here - largest) + std::exp(there - largest);
      const double keep = std::exp(here - largest) / sum, add = std::exp(there - largest) / sum;
      const std::int64_t first = a.at(query.batch, query.token, query.head);
      for (std::int64_t i = first; i < first + a.head_size(); ++i) {
        write(a.array, i, keep * read(a.array, i) + add * read(b.array, i));
      }
      write(into.log_sum_exp, row, largest + std::log(sum));
    });
  }

  void row_sums(Context&, const Array& y, const Array& dy, Array& sums) const override {
    const HeadRows a = as_rows(y), b = as_rows(dy);
    for_queries(a, a, a, {}, [&](const Query& query, std::int64_t row) {
      write(sums, row, query.dot(a, a.at(query.batch, query.token, query.head), b, query.token));
    });
  }

  void backward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v, const Array& y,
                const Array& dy, const Array& log_sum_exp, Array row_sums, bool sums_are_formed,
                const AttentionOptions& options, HeadRows dq, HeadRows dk, HeadRows dv,
                Array dbias) const override {
    const std::int64_t d = q.head_size();
    const HeadRows dys = as_rows(dy);
    if (!sums_are_formed) this->row_sums(context, y, dy, row_sums);
    std::vector<double> dk_sums(static_cast<std::size_t>(k.tokens() * d)), dv_sums(dk_sums.size());
    std::vector<double> bias_sums(dbias.defined() ? static_cast<std::size_t>(dbias.count()) : 0);
    for_queries(q, k, v, options, [&](const Query& query, std::int64_t row) {
      const std::vector<double> scores = query.scores();
      const double lse = read(log_sum_exp, row), row_sum = read(row_sums, row);
      const std::int64_t q_at = q.at(query.batch, query.token, query.head);
      const std::int64_t dy_at = dys.at(query.batch, query.token, query.head);
      std::vector<double> dq_sums(static_cast<std::size_t>(d), 0.0);
      for (std::int64_t key = 0; key < k.tokens(); ++key) {
        if (lse == kHidden) continue;
        const double weight = std::exp(scores[static_cast<std::size_t>(key)] - lse);
        const double factor = query.factor(key);
        const double slope = weight * (factor * query.dot(dys, dy_at, v, key) - row_sum);
        const std::int64_t k_at = k.at(query.batch, key, query.head);
        for (std::int64_t i = 0; i < d; ++i) {
          const auto sum = static_cast<std::size_t>(key * d + i);
          dq_sums[static_cast<std::size_t>(i)] += options.scale * slope * read(k.array, k_at + i);
          dk_sums[sum] += options.scale * slope * read(q.array, q_at + i);
          dv_sums[sum] += weight * factor * read(dy, dy_at + i);
        }
        if (dbias.defined()) {
          bias_sums[static_cast<std::size_t>((query.head * q.tokens() + query.token) * k.tokens() + key)] +=
              slope;
        }
      }
      const std::int64_t dq_at = dq.at(query.batch, query.token, query.head);
      for (std::int64_t i = 0; i < d; ++i) write(dq.array, dq_at + i, dq_sums[static_cast<std::size_t>(i)]);
      if (query.token + 1 == q.tokens()) {
        write_keys(query, dk, dk_sums);
        write_keys(query, dv, dv_sums);
      }
    });
    // Without queries nothing has been written.
    if (q.tokens() == 0) {
      for_queries(k, k, k, options, [&](const Query& query, std::int64_t) {
        if (query.token > 0) return;
        write_keys(query, dk, dk_sums);
        write_keys(query, dv, dv_sums);
      });
    }
    for (std::size_t i = 0; i < bias_sums.size(); ++i)
      write(dbias, static_cast<std::int64_t>(i), bias_sums[i]);
  }

  void rotate(Context&, const Array& x, const Shape& space, const std::vector<RotationTable>& tables,
              Array& y) const override {
    const Shape& shape = x.shape();
    const std::int64_t d = shape[4], axes = space.rank(), section = d / axes, half = section / 2;
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const std::int64_t within = i % d, slot = i / (d * shape[3]) % shape[2],
                         token = i / shape.count(2, 5) % shape[1];
      const std::int64_t axis = within / section, pair = within % section % half;
      std::int64_t point = token;
      for (int later = space.rank() - 1; later > axis; --later) point /= space[later];
      point %= space[static_cast<int>(axis)];
      if (slot > 1) {
        write(y, i, read(x, i));
        continue;
      }
      const RotationTable& table = tables[static_cast<std::size_t>(axis)];
      const auto at = static_cast<std::size_t>(point * table.pairs + pair);
      const bool first = within % section < half;
      const double other = read(x, first ? i + half : i - half);
      write(y, i, table.cosine[at] * read(x, i) + (first ? -1 : 1) * table.sine[at] * other);
    }
  }

 private:
  /// Writes one head's sums over the queries, and sets them to zero.
  static void write_keys(const Query& query, HeadRows& to, std::vector<double>& sums) {
    for (std::int64_t key = 0; key < to.tokens(); ++key) {
      const std::int64_t first = to.at(query.batch, key, query.head);
      for (std::int64_t i = 0; i < to.head_size(); ++i) {
        double& sum = sums[static_cast<std::size_t>(key * to.head_size() + i)];
        write(to.array, first + i, sum);
        sum = 0;
      }
    }
  }
};

}  // namespace

template <>
const AttentionKernels& kernels() {
  static const Attention instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
