#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace attention_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sizes {
  std::int64_t batches = 1, queries = 1, keys = 1, heads = 1, size = 1;

  std::int64_t at(std::int64_t tokens, std::int64_t b, std::int64_t t, std::int64_t h) const {
    return ((b * tokens + t) * heads + h) * size;
  }
};

/// The limit of a gradient whose largest number may be far below the magnitude of what it is made of: of
/// bf16, in which libraries round weights and slopes too, a few hundredths of that number.
double gradient_limit(DType type, const std::vector<double>& wanted, double magnitude) {
  if (type != DType::kBfloat16) return tolerance(type, 64, magnitude);
  double largest = 0.01;
  for (const double number : wanted) largest = std::max(largest, std::abs(number));
  return tolerance(type, 64, std::min(magnitude, 2 * largest));
}

/// Attention and its gradients by their definition, in float64, with the whole matrix of weights.
struct Expected {
  std::vector<double> y, log_sum_exp, row_sums, dq, dk, dv, dbias;

  /// `extra` is bias + mask, [B, heads, queries, keys]; `factors` what dropout multiplies the weights by.
  Expected(const Sizes& s, double scale, const std::vector<double>& q, const std::vector<double>& k,
           const std::vector<double>& v, const std::vector<double>& dy, const std::vector<double>& extra,
           const std::vector<double>& factors)
      : y(q.size(), 0.0), dq(q.size(), 0.0), dk(k.size(), 0.0), dv(k.size(), 0.0) {
    dbias.assign(static_cast<std::size_t>(s.heads * s.queries * s.keys), 0.0);
    const auto dot = [&](const std::vector<double>& a, std::int64_t i, const std::vector<double>& b,
                         std::int64_t j) {
      double sum = 0;
      for (std::int64_t n = 0; n < s.size; ++n)
        sum += a[static_cast<std::size_t>(i + n)] * b[static_cast<std::size_t>(j + n)];
      return sum;
    };
    for (std::int64_t b = 0; b < s.batches; ++b) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        for (std::int64_t t = 0; t < s.queries; ++t) {
          const std::int64_t row = ((b * s.heads + h) * s.queries + t) * s.keys,
                             at = s.at(s.queries, b, t, h);
          std::vector<double> weights;
          double sum = 0;
          for (std::int64_t n = 0; n < s.keys; ++n) {
            weights.push_back(std::exp(scale * dot(q, at, k, s.at(s.keys, b, n, h)) +
                                       extra[static_cast<std::size_t>(row + n)]));
            sum += weights.back();
          }
          log_sum_exp.push_back(std::log(sum));
          for (std::int64_t n = 0; n < s.keys && sum > 0; ++n) {
            double& weight = weights[static_cast<std::size_t>(n)];
            weight /= sum;
            for (std::int64_t i = 0; i < s.size; ++i) {
              y[static_cast<std::size_t>(at + i)] += weight * factors[static_cast<std::size_t>(row + n)] *
                                                     v[static_cast<std::size_t>(s.at(s.keys, b, n, h) + i)];
            }
          }
          row_sums.push_back(dot(y, at, dy, at));
          for (std::int64_t n = 0; n < s.keys && sum > 0; ++n) {
            const std::int64_t key = s.at(s.keys, b, n, h);
            const double weight = weights[static_cast<std::size_t>(n)];
            const double factor = factors[static_cast<std::size_t>(row + n)];
            const double slope = weight * (factor * dot(dy, at, v, key) - row_sums.back());
            dbias[static_cast<std::size_t>((h * s.queries + t) * s.keys + n)] += slope;
            for (std::int64_t i = 0; i < s.size; ++i) {
              const auto query_i = static_cast<std::size_t>(at + i),
                         key_i = static_cast<std::size_t>(key + i);
              dq[query_i] += scale * slope * k[key_i];
              dk[key_i] += scale * slope * q[query_i];
              dv[key_i] += weight * factor * dy[query_i];
            }
          }
        }
      }
    }
  }
};

using Windows = std::vector<std::vector<std::int64_t>>;

/// Numbers of the tokens of each window, found by going over the whole grid.
Windows windows_of(const TokenPlaces& places) {
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> windows;
  for (std::int64_t number = 0; number < places.grid.count(); ++number) {
    std::vector<std::int64_t> window;
    bool inside = true;
    for (int dim = 0; dim < places.grid.rank(); ++dim) {
      const std::int64_t coordinate = number / places.grid.strides()[dim] % places.grid[dim];
      inside = inside && coordinate >= places.box.begin[dim] && coordinate < places.box.end(dim);
      window.push_back((coordinate - places.box.begin[dim]) / places.window[dim]);
    }
    if (inside) windows[window].push_back(number);
  }
  Windows in_order;
  for (const auto& [window, numbers] : windows) in_order.push_back(numbers);
  return in_order;
}

/// Slot `slot` of a packed array, [B, tokens, heads, d].
Array slot_of(Context& context, const HeadRows& rows) {
  const Shape& s = rows.array.shape();
  Box box = Box::whole(s);
  box.begin[2] = rows.slot;
  box.extent[2] = 1;
  return extract_box(context, rows.array, box).reshaped({s[0], s[1], s[3], s[4]});
}

class Attention : public ::testing::TestWithParam<Backend> {
 protected:
  /// Operands of one call; q, k and v in slots of larger arrays.
  struct Call {
    HeadRows q, k, v;
    Array dy;
    AttentionOptions options;
  };

  Call made_up(const Sizes& s, DType type) {
    const Array kv = random_array(context_, {s.batches, s.keys, 2, s.heads, s.size}, type, 2);
    return {{random_array(context_, {s.batches, s.queries, 3, s.heads, s.size}, type, 1), 1},
            {kv, 0},
            {kv, 1},
            random_array(context_, {s.batches, s.queries, s.heads, s.size}, type, 3),
            {.scale = 1.3 / std::sqrt(static_cast<double>(s.size))}};
  }

  Expected expected(const Sizes& s, const Call& call) {
    std::vector<double> extra(static_cast<std::size_t>(s.batches * s.heads * s.queries * s.keys), 0.0);
    std::vector<double> factors(extra.size(), 1.0);
    const std::vector<double> bias = values_of(call.options.bias), mask = values_of(call.options.mask);
    Windows query_windows, key_windows;
    if (call.options.dropout) {
      query_windows = windows_of(call.options.dropout->queries);
      key_windows = windows_of(call.options.dropout->keys);
    }
    const std::int64_t plane = s.queries * s.keys;
    for (std::size_t i = 0; i < extra.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t b = at / (s.heads * plane), h = at / plane % s.heads, t = at / s.keys % s.queries,
                         n = at % s.keys;
      if (!bias.empty()) extra[i] += bias[static_cast<std::size_t>(h * plane + at % plane)];
      if (!mask.empty()) {
        const std::int64_t group = b % call.options.mask.shape()[0];
        extra[i] += mask[static_cast<std::size_t>(group * plane + at % plane)];
      }
      if (call.options.dropout) {
        const AttentionDropout& d = *call.options.dropout;
        const auto groups = std::ssize(query_windows), group = b % groups;
        RandomPosition position = d.position;
        position.sample += static_cast<std::uint64_t>(b / groups);
        const auto number = [group](const Windows& windows, std::int64_t token) {
          return windows.at(static_cast<std::size_t>(group)).at(static_cast<std::size_t>(token));
        };
        const std::int64_t query = number(query_windows, t), key = number(key_windows, n);
        const std::int64_t element =
            ((d.first_head + h) * d.queries.grid.count() + query) * d.keys.grid.count() + key;
        factors[i] = d.stream.uniform(position, static_cast<std::uint64_t>(element)) < d.probability
                         ? 0.0
                         : 1 / (1 - d.probability);
      }
    }
    return Expected(s, call.options.scale, values_of(slot_of(context_, call.q)),
                    values_of(slot_of(context_, call.k)), values_of(slot_of(context_, call.v)),
                    values_of(call.dy), extra, factors);
  }

  void check(const Sizes& s, DType type, const Call& call) {
    SCOPED_TRACE(concat(name(type), ": ", s.batches, " × ", s.queries, " queries, ", s.keys, " keys, ",
                        s.heads, " heads of ", s.size));
    const Expected wanted = expected(s, call);
    const DType sums = type == DType::kFloat64 ? type : DType::kFloat32;
    const AttentionResult result = attention_forward(context_, call.q, call.k, call.v, call.options, type);
    expect_near(values_of(result.output), wanted.y, tolerance(type, 64, 2));
    for (std::size_t i = 0; i < wanted.log_sum_exp.size(); ++i) {
      const double found = values_of(result.log_sum_exp)[i];
      if (wanted.log_sum_exp[i] == -kInfinity) {
        EXPECT_EQ(found, -kInfinity);
      } else {
        ASSERT_NEAR(found, wanted.log_sum_exp[i], tolerance(sums, 64, 4));
      }
    }
    const Array row_sums = attention_row_sums(context_, result.output, call.dy);
    expect_near(values_of(row_sums), wanted.row_sums,
                tolerance(type, 64, std::sqrt(static_cast<double>(s.size)) * 2));
    const bool biased = call.options.bias.defined();
    const Array dbias = biased ? Array(context_, call.options.bias.shape(), sums) : Array();
    const HeadRows dq{Array(context_, call.q.array.shape(), type), 1};
    const Array dkv(context_, call.k.array.shape(), type);
    attention_backward(context_, call.q, call.k, call.v, result.output, call.dy, result.log_sum_exp, {},
                       call.options, dq, {dkv, 0}, {dkv, 1}, dbias);
    const double grows = std::sqrt(static_cast<double>(s.size) + static_cast<double>(s.queries));
    expect_near(values_of(slot_of(context_, dq)), wanted.dq,
                gradient_limit(type, wanted.dq, 4 * std::sqrt(static_cast<double>(s.size))));
    expect_near(values_of(slot_of(context_, {dkv, 0})), wanted.dk,
                gradient_limit(type, wanted.dk, 4 * grows));
    expect_near(values_of(slot_of(context_, {dkv, 1})), wanted.dv,
                gradient_limit(type, wanted.dv, 4 * grows));
    if (biased) {
      expect_near(values_of(dbias), wanted.dbias, tolerance(type, 64, 4 * static_cast<double>(s.batches)));
    }
  }

  Context context_ = testing::kernel_context(GetParam(), 3);
};

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

TEST_P(Attention, OddSizes) {
  for (const DType type : kTypes) {
    for (const Sizes& s : {Sizes{1, 1, 1, 1, 1}, Sizes{2, 7, 7, 3, 5}, Sizes{1, 97, 193, 1, 64},
                           Sizes{1, 200, 390, 1, 16}, Sizes{2, 49, 49, 2, 32}, Sizes{1, 6, 16, 2, 256},
                           Sizes{1, 5, 400, 1, 80}, Sizes{3, 13, 2, 1, 33}, Sizes{1, 100, 20, 4, 48}}) {
      check(s, type, made_up(s, type));
    }
  }
}

/// Heads that the CPU's threads take from queues, whose last one is cut into parts.
TEST_P(Attention, HeadsInQueues) {
  const Sizes s{1, 300, 800, 7, 16};
  for (const DType type : kTypes) check(s, type, made_up(s, type));
}

TEST_P(Attention, EmptyPieces) {
  for (const DType type : kTypes) {
    for (const Sizes& s :
         {Sizes{2, 3, 0, 2, 4}, Sizes{2, 0, 3, 2, 4}, Sizes{0, 3, 3, 2, 4}, Sizes{1, 3, 3, 0, 4}}) {
      check(s, type, made_up(s, type));
    }
  }
}

TEST_P(Attention, BiasAndMask) {
  const Sizes s{4, 37, 201, 2, 8};
  for (const DType type : kTypes) {
    const DType sums = type == DType::kFloat64 ? type : DType::kFloat32;
    Call call = made_up(s, type);
    call.options.bias = random_array(context_, {s.heads, s.queries, s.keys}, sums, 5);
    check(s, type, call);
    // The second group hides every third key, and all keys of its last query.
    std::vector<double> mask(static_cast<std::size_t>(2 * s.queries * s.keys), 0.0);
    for (std::int64_t t = 0; t < s.queries; ++t) {
      for (std::int64_t n = 0; n < s.keys; ++n) {
        if (n % 3 == 0 || t + 1 == s.queries)
          mask[static_cast<std::size_t>((s.queries + t) * s.keys + n)] = -kInfinity;
      }
    }
    call.options.mask = array_of(context_, {2, s.queries, s.keys}, sums, mask);
    check(s, type, call);
  }
}

/// Of so many batches that their gradients of the bias are added up in slabs of a few.
TEST_P(Attention, BiasOfManyBatches) {
  const Sizes s{5, 3, 9, 900, 2};
  for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
    Call call = made_up(s, type);
    call.options.bias = random_array(context_, {s.heads, s.queries, s.keys}, DType::kFloat32, 5);
    check(s, type, call);
  }
}

TEST_P(Attention, DropoutByGlobalNumber) {
  const Sizes s{2, 40, 210, 2, 8};
  const TokenPlaces line{{100}, {{50}, {40}}, {40}}, columns{{40, 11}, {{3, 2}, {30, 7}}, {30, 7}},
      rows{{4, 14, 7}, {{1, 3, 0}, {3, 10, 7}}, {3, 10, 7}},
      block{{9, 5, 4}, {{2, 1, 2}, {5, 4, 2}}, {5, 4, 2}};
  for (const DType type : kTypes) {
    for (const auto& [queries, keys] : {std::pair(line, columns), std::pair(block, rows)}) {
      Call call = made_up(s, type);
      call.options.dropout = AttentionDropout{
          0.3, RandomStream(1, RandomPurpose::kDropout, "path"), {5, 3, 1}, 4, queries, keys};
      check(s, type, call);
    }
  }
}

/// Whatever stays behind, on a device too, would grow with the tokens.
TEST_P(Attention, DropoutKeepsNothing) {
  const Sizes s{1, 40, 40, 1, 8};
  const TokenPlaces line{{100}, {{50}, {40}}, {40}};
  Call call = made_up(s, DType::kFloat32);
  call.options.dropout =
      AttentionDropout{0.3, RandomStream(1, RandomPurpose::kDropout, "path"), {}, 0, line, line};
  const std::int64_t before = context_.arena().current_bytes(Purpose::kWorkspace);
  attention_forward(context_, call.q, call.k, call.v, call.options, DType::kFloat32);
  EXPECT_EQ(context_.arena().current_bytes(Purpose::kWorkspace), before);
}

TEST_P(Attention, DropoutThatDoesNotKnowItsTokens) {
  const Sizes s{2, 40, 40, 1, 8};
  const TokenPlaces line{{100}, {{50}, {40}}, {40}}, shorter{{100}, {{50}, {39}}, {39}},
      windows{{100}, {{10}, {80}}, {40}};
  for (const auto& [queries, keys] : {std::pair(line, shorter), {shorter, line}, {line, windows}}) {
    Call call = made_up(s, DType::kFloat32);
    call.options.dropout =
        AttentionDropout{0.3, RandomStream(1, RandomPurpose::kDropout, "path"), {}, 0, queries, keys};
    EXPECT_THROW(attention_forward(context_, call.q, call.k, call.v, call.options, DType::kFloat32), Error);
  }
}

/// Batches that are the windows of one sample: each has its own part of that sample's mask.
TEST_P(Attention, DropoutInGroupsOfBatches) {
  const Sizes s{12, 10, 18, 2, 8};
  const TokenPlaces queries{{9, 20}, {{1, 5}, {6, 10}}, {2, 5}},
      keys{{4, 7, 11}, {{1, 1, 2}, {3, 4, 9}}, {3, 2, 3}};
  for (const DType type : kTypes) {
    Call call = made_up(s, type);
    call.options.dropout =
        AttentionDropout{0.3, RandomStream(1, RandomPurpose::kDropout, "path"), {5, 3, 1}, 4, queries, keys};
    check(s, type, call);
  }
}

/// Scores that grow along the keys: by 2^6 or 2^87 from one block of 192 to the next; without and with
/// queries for which the first keys are hidden, or nearly so.
TEST_P(Attention, ScoresThatGrowAlongTheKeys) {
  const Sizes s{1, 30, 800, 2, 8};
  for (const DType type : kTypes) {
    const DType sums = type == DType::kFloat64 ? type : DType::kFloat32;
    for (const double slope : {0.02, 0.3}) {
      Call call = made_up(s, type);
      std::vector<double> bias, mask;
      for (std::int64_t i = 0; i < s.heads * s.queries * s.keys; ++i) {
        bias.push_back(std::round(slope * static_cast<double>(i % s.keys) * 16) / 16);
      }
      for (std::int64_t i = 0; i < s.queries * s.keys; ++i) {
        const bool hidden = i / s.keys % 3 > 0 && i % s.keys < 400;
        mask.push_back(!hidden ? 0 : i / s.keys % 3 == 1 ? -kInfinity : -1e5);
      }
      call.options.bias = array_of(context_, {s.heads, s.queries, s.keys}, sums, bias);
      check(s, type, call);
      call.options.mask = array_of(context_, {1, s.queries, s.keys}, sums, mask);
      check(s, type, call);
    }
  }
}

/// A bias that is far larger than the products: each is rounded once to what scores are rounded to, about
/// 3e-5 here, not at every step. Of each query's keys two count, from different blocks.
TEST_P(Attention, BiasFarLargerThanTheProducts) {
  const Sizes s{1, 200, 800, 1, 64};
  Call call = made_up(s, DType::kFloat32);
  std::vector<double> bias;
  for (std::int64_t i = 0; i < s.queries * s.keys; ++i) bias.push_back(i % s.keys % 400 == 0 ? 600 : -600);
  call.options.bias = array_of(context_, {s.heads, s.queries, s.keys}, DType::kFloat32, bias);
  const AttentionResult result =
      attention_forward(context_, call.q, call.k, call.v, call.options, DType::kFloat32);
  expect_near(values_of(result.output), expected(s, call).y, 6e-5);
}

TEST_P(Attention, LargeScoresDoNotOverflow) {
  const Sizes s{1, 9, 300, 1, 16};
  // Scores of a few hundred, rounded to 1e-5 of them; results of bf16 to 4e-3 of theirs, as a GPU's weights
  // are.
  for (const auto& [type, limit] : {std::pair(DType::kFloat32, 2e-3), std::pair(DType::kBfloat16, 1.5e-2)}) {
    Call call = made_up(s, type);
    call.options.scale = 100;
    Call wide = call;
    for (HeadRows* rows : {&wide.q, &wide.k, &wide.v})
      rows->array = array_of(context_, rows->array.shape(), DType::kFloat64, values_of(rows->array));
    const AttentionResult result = attention_forward(context_, call.q, call.k, call.v, call.options, type);
    expect_near(values_of(result.output), expected(s, wide).y, limit);
  }
}

TEST_P(Attention, PartsOfTheKeysCombine) {
  const Sizes s{2, 31, 205, 3, 24};
  for (const DType type : kTypes) {
    const DType sums = type == DType::kFloat64 ? type : DType::kFloat32;
    const Call call = made_up(s, type);
    const AttentionResult whole = attention_forward(context_, call.q, call.k, call.v, call.options, sums);
    const Array y = cast(context_, whole.output, type);
    const Array row_sums = attention_row_sums(context_, y, call.dy);
    const std::int64_t cuts[] = {0, 0, 70, 71, 205, 205};
    AttentionResult joined;
    std::vector<double> dq(static_cast<std::size_t>(call.dy.count()), 0.0);
    for (int part = 0; part < 5; ++part) {
      Box box = Box::whole(call.k.array.shape());
      box.begin[1] = cuts[part];
      box.extent[1] = cuts[part + 1] - cuts[part];
      const Array kv = extract_box(context_, call.k.array, box);
      AttentionResult result = attention_forward(context_, call.q, {kv, 0}, {kv, 1}, call.options, sums);
      if (part == 0) {
        joined = result;
      } else {
        attention_combine(context_, joined, result);
      }
      const HeadRows part_dq{Array(context_, {s.batches, s.queries, 1, s.heads, s.size}, sums), 0};
      const Array dkv(context_, kv.shape(), sums);
      attention_backward(context_, call.q, {kv, 0}, {kv, 1}, y, call.dy, whole.log_sum_exp, row_sums,
                         call.options, part_dq, {dkv, 0}, {dkv, 1}, {});
      for (std::size_t i = 0; i < dq.size(); ++i) dq[i] += values_of(part_dq.array)[i];
    }
    // A GPU rounds weights to what its tensor cores multiply, relative to the sum of a part.
    const bool rounds = GetParam() == Backend::kCuda;
    expect_near(values_of(joined.output), values_of(whole.output), tolerance(rounds ? type : sums, 64, 2));
    expect_near(values_of(joined.log_sum_exp), values_of(whole.log_sum_exp), tolerance(sums, 64, 4));
    const Expected wanted = expected(s, call);
    expect_near(dq, wanted.dq, gradient_limit(type, wanted.dq, 8));
  }
}

/// A NaN among the keys is one in all that sees it, in whichever part it stands, and whatever the others see.
TEST_P(Attention, NotANumberIsSeen) {
  const Sizes s{1, 3, 400, 2, 8};
  for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
    SCOPED_TRACE(name(type));
    const Call call = made_up(s, type);
    const double nan = std::nan("");
    const auto spoilt = [&](std::int64_t first, std::int64_t last) {
      std::vector<double> values = values_of(call.k.array);
      const std::int64_t per_key = call.k.array.count() / s.keys;
      for (std::int64_t i = first * per_key; i < last * per_key; ++i)
        values[static_cast<std::size_t>(i)] = nan;
      const Array keys = array_of(context_, call.k.array.shape(), type, values);
      return std::pair(HeadRows{keys, call.k.slot}, HeadRows{keys, call.v.slot});
    };
    const auto copied = [&](const Array& array) {
      return array_of(context_, array.shape(), array.dtype(), values_of(array));
    };
    const auto expect_nan = [](const Array& array, const std::string& what) {
      const std::vector<double> values = values_of(array);
      EXPECT_TRUE(std::ranges::all_of(values, [](double value) { return std::isnan(value); })) << what;
    };
    const std::vector<double> hidden(static_cast<std::size_t>(s.queries * s.keys), -kInfinity);
    AttentionOptions sees_nothing = call.options;
    sees_nothing.mask = array_of(context_, {1, s.queries, s.keys}, DType::kFloat32, hidden);
    const AttentionResult clean = attention_forward(context_, call.q, call.k, call.v, call.options,
                                                    DType::kFloat32),
                          none = attention_forward(context_, call.q, call.k, call.v, sees_nothing,
                                                   DType::kFloat32);
    EXPECT_EQ(values_of(none.log_sum_exp)[0], -kInfinity);
    for (const auto& [first, last] :
         {std::pair(0, 1), std::pair(7, 8), std::pair(350, 351), std::pair(0, 400)}) {
      SCOPED_TRACE(concat("keys ", first, " to ", last));
      const auto [k, v] = spoilt(first, last);
      const AttentionResult result = attention_forward(context_, call.q, k, v, call.options, DType::kFloat32);
      expect_nan(result.output, "forward");
      expect_nan(result.log_sum_exp, "its sums");
      const Array y = cast(context_, result.output, type),
                  row_sums = attention_row_sums(context_, y, call.dy);
      const HeadRows dq{Array(context_, {1, s.queries, 1, s.heads, s.size}, DType::kFloat32), 0};
      const Array dkv(context_, k.array.shape(), DType::kFloat32);
      attention_backward(context_, call.q, k, v, y, call.dy, result.log_sum_exp, row_sums, call.options, dq,
                         {dkv, k.slot}, {dkv, v.slot}, {});
      expect_nan(dq.array, "backward");
      for (const AttentionResult& other : {clean, none}) {
        for (const bool spoilt_first : {false, true}) {
          const AttentionResult& into = spoilt_first ? result : other;
          AttentionResult joined{copied(into.output), copied(into.log_sum_exp)};
          attention_combine(context_, joined, spoilt_first ? other : result);
          expect_nan(joined.output, spoilt_first ? "joined" : "joined to others");
          expect_nan(joined.log_sum_exp, spoilt_first ? "its sums" : "their sums");
        }
      }
    }
  }
}

TEST_P(Attention, RepeatsBitForBit) {
  for (const auto& [biased, type] : {std::pair(false, DType::kFloat32), std::pair(true, DType::kFloat32),
                                     std::pair(false, DType::kBfloat16)}) {
    for (const Sizes& s : {Sizes{1, 300, 1000, 1, 32}, Sizes{2, 50, 400, 4, 16}}) {
      Call call = made_up(s, type);
      const Shape plane{s.heads, s.queries, s.keys};
      if (biased) call.options.bias = random_array(context_, plane, DType::kFloat32, 5);
      std::vector<double> first;
      for (int time = 0; time < 3; ++time) {
        const AttentionResult result =
            attention_forward(context_, call.q, call.k, call.v, call.options, type);
        const Array row_sums = attention_row_sums(context_, result.output, call.dy);
        const HeadRows dq{Array(context_, call.q.array.shape(), type), 1};
        const Array dkv(context_, call.k.array.shape(), type);
        const Array dbias = biased ? Array(context_, plane, DType::kFloat32) : Array();
        attention_backward(context_, call.q, call.k, call.v, result.output, call.dy, result.log_sum_exp,
                           row_sums, call.options, dq, {dkv, 0}, {dkv, 1}, dbias);
        std::vector<double> all = values_of(result.output);
        for (const Array& more : {slot_of(context_, dq), dkv, dbias}) {
          for (const double x : values_of(more)) all.push_back(x);
        }
        if (time == 0) first = all;
        EXPECT_EQ(all, first);
      }
    }
  }
}

/// Pairs as complex numbers, turned by e^(i · angle).
TEST_P(Attention, Rotation) {
  const Shape shape{2, 12, 3, 2, 8};
  for (const DType type : kTypes) {
    const Array x = random_array(context_, shape, type, 1);
    const Array y = attention_rotate(context_, x, {{3, 4}, {5, 7}, 50.0, false});
    std::vector<double> wanted = values_of(x);
    const std::vector<double> xs = wanted;
    for (std::int64_t row = 0; row < 2 * 12 * 3 * 2; ++row) {
      const std::int64_t slot = row / 2 % 3, token = row / 6 % 12, latitude = 5 + token / 4,
                         longitude = 7 + token % 4;
      const double coordinates[] = {static_cast<double>(latitude), static_cast<double>(longitude)};
      for (std::size_t axis = 0; axis < 2 && slot < 2; ++axis) {
        for (std::size_t i = 0; i < 2; ++i) {
          const auto first = static_cast<std::size_t>(row * 8) + axis * 4 + i;
          const double angle = coordinates[axis] / (i == 0 ? 1 : std::sqrt(50.0));
          const std::complex<double> turned =
              std::complex<double>(xs[first], xs[first + 2]) * std::polar(1.0, angle);
          wanted[first] = turned.real();
          wanted[first + 2] = turned.imag();
        }
      }
    }
    expect_near(values_of(y), wanted, tolerance(type, 8, 2));
    expect_near(values_of(attention_rotate(context_, y, {{3, 4}, {5, 7}, 50.0, true})), xs,
                tolerance(type, 8, 4));
  }
  EXPECT_THROW(attention_rotate(context_, random_array(context_, {1, 4, 3, 1, 6}, DType::kFloat32, 1),
                                {{2, 2}, {0, 0}}),
               ShapeError);
}

TEST_P(Attention, MemoryIsLinearInTokens) {
  const auto peak = [&](std::int64_t tokens) {
    Context context = testing::kernel_context(GetParam(), 1);
    const Array qkv = random_array(context, {1, tokens, 3, 1, 16}, DType::kFloat32, 1);
    const Array dqkv(context, qkv.shape(), DType::kFloat32);
    const AttentionResult result =
        attention_forward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, {}, DType::kFloat32);
    const Array row_sums = attention_row_sums(context, result.output, result.output);
    attention_backward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, result.output, result.output,
                       result.log_sum_exp, row_sums, {}, {dqkv, 0}, {dqkv, 1}, {dqkv, 2}, {});
    return context.arena().peak_bytes();
  };
  EXPECT_LE(peak(600) - peak(300), 300 * 16 * 4 * 16);
}

TEST_P(Attention, MetaCountsAlike) {
  Context meta = Context::make_meta();
  for (Context* context : {&context_, &meta}) {
    const Array qkv = random_array(*context, {2, 9, 3, 2, 8}, DType::kFloat32, 1);
    const Array dqkv(*context, qkv.shape(), DType::kFloat32);
    AttentionResult result = attention_forward(*context, {qkv, 0}, {qkv, 1}, {qkv, 2}, {}, DType::kFloat32);
    EXPECT_EQ(result.output.shape(), (Shape{2, 9, 2, 8}));
    const Array row_sums = attention_row_sums(*context, result.output, result.output);
    attention_backward(*context, {qkv, 0}, {qkv, 1}, {qkv, 2}, result.output, result.output,
                       result.log_sum_exp, row_sums, {}, {dqkv, 0}, {dqkv, 1}, {dqkv, 2}, {});
    attention_combine(*context, result, result);
  }
  EXPECT_GT(meta.tally().flops, 0);
  EXPECT_EQ(meta.tally().flops, context_.tally().flops);
  EXPECT_EQ(meta.tally().bytes, context_.tally().bytes);
}

TEST_P(Attention, ErrorsSayWhatIsWrong) {
  const Array qkv = random_array(context_, {1, 4, 3, 2, 8}, DType::kFloat32, 1);
  const Array other = random_array(context_, {1, 4, 3, 3, 8}, DType::kFloat32, 1);
  const Array wide = random_array(context_, {1, 2, 1, 1, 257}, DType::kFloat32, 1);
  const auto run = [&](const HeadRows& q, const HeadRows& k, const AttentionOptions& options) {
    attention_forward(context_, q, k, k, options, DType::kFloat32);
  };
  EXPECT_THROW(run({qkv, 3}, {qkv, 0}, {}), ShapeError);
  EXPECT_THROW(run({qkv, 0}, {other, 0}, {}), ShapeError);
  EXPECT_THROW(run({wide, 0}, {wide, 0}, {}), ShapeError);
  AttentionOptions biased;
  biased.bias = random_array(context_, {2, 4, 3}, DType::kFloat32, 1);
  EXPECT_THROW(run({qkv, 0}, {qkv, 0}, biased), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Attention, testing::kernel_backends(), testing::backend_name);

}  // namespace attention_test
}  // namespace jigsaw
