// Every kernel family on arrays that begin at no multiple of 16 bytes, as views of flat parameters and slices
// of batches do: each operand alone, and all. Results are those of arrays that are aligned, which the tests
// of each family compare with the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "kernels/attention.h"
#include "kernels/blending.h"
#include "kernels/channel_statistics.h"
#include "kernels/contraction.h"
#include "kernels/convolution.h"
#include "kernels/copy.h"
#include "kernels/ensemble.h"
#include "kernels/forecast_scores.h"
#include "kernels/group_statistics.h"
#include "kernels/loss.h"
#include "kernels/normalization.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "kernels/pooling.h"
#include "kernels/relative_bias.h"
#include "kernels/resampling.h"
#include "kernels/row_statistics.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/source_dir.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace misaligned_test {

using testing::tolerance;
using testing::values_of;

constexpr DType kF32 = DType::kFloat32, kF64 = DType::kFloat64, kBf16 = DType::kBfloat16;

/// Makes the operands of one call, each in the middle of a larger array of NaN, and counts them.
class Operands {
 public:
  /// Elements of the larger array before operand number `i`.
  using Place = std::function<std::int64_t(std::size_t i)>;

  Operands(Context& context, DType type, Place place)
      : context_(context), type_(type), place_(std::move(place)) {}

  Context& context() { return context_; }
  DType type() const { return type_; }

  /// Numbers in [0.5, 1), of the type that is tried unless another is given.
  Array operator()(const Shape& shape) { return (*this)(shape, type_); }
  Array operator()(const Shape& shape, DType type, double low = 0.5, double high = 1) {
    return put(testing::random_array(context_, shape, type, seed_++, low, high));
  }
  Array operator()(const Shape& shape, DType type, const std::vector<double>& values) {
    return put(testing::array_of(context_, shape, type, values));
  }
  /// What another kernel has made.
  Array put(const Array& made) {
    const std::int64_t before = place_(wholes_.size()), count = made.count();
    std::vector<double> values(static_cast<std::size_t>(before), NAN);
    for (const double value : values_of(made)) values.push_back(value);
    values.resize(values.size() + kBehind, NAN);
    wholes_.push_back(
        {testing::array_of(context_, {std::ssize(values)}, made.dtype(), values), before, count});
    return wholes_.back().array.slice(before, made.shape());
  }

  std::size_t count() const { return wholes_.size(); }
  /// Nothing was written beside an operand.
  void expect_untouched() const {
    for (std::size_t i = 0; i < wholes_.size(); ++i) {
      const std::vector<double> values = values_of(wholes_[i].array);
      for (std::int64_t at = 0; at < std::ssize(values); ++at) {
        if (at >= wholes_[i].before && at < wholes_[i].before + wholes_[i].count) continue;
        ASSERT_TRUE(std::isnan(values[static_cast<std::size_t>(at)]))
            << "operand " << i << ", element " << at;
      }
    }
  }

 private:
  static constexpr std::size_t kBehind = 9;
  struct Whole {
    Array array;
    std::int64_t before, count;
  };
  Context& context_;
  DType type_;
  Place place_;
  unsigned seed_ = 1;
  std::vector<Whole> wholes_;
};

/// What functions of a family give, among it operands that they write.
struct Family {
  std::string name;
  std::function<std::vector<Array>(Operands&)> run;
  bool same_bits = true;  ///< else a library may choose what it does by what is aligned
};

// Rows of 16 numbers are multiples of 16 bytes: whole vectors, where arrays begin at one.
constexpr std::int64_t kChannels = 16;

std::vector<Array> attention(Operands& o, bool extras) {
  Context& c = o.context();
  const std::int64_t batches = 2, queries = 9, keys = 11, heads = 2, size = 16;
  const auto both_signs = [&](const Shape& shape) { return o(shape, o.type(), -1, 1); };
  const Array q = both_signs({batches, queries, 2, heads, size}),
              kv = both_signs({batches, keys, 2, heads, size});
  AttentionOptions options{.scale = 0.3};
  if (extras) {
    options.bias = o({heads, queries, keys}, kF32);
    options.mask = o({1, queries, keys}, kF32);
  }
  const AttentionResult made = attention_forward(c, {q, 1}, {kv, 0}, {kv, 1}, options, o.type());
  const Array y = o.put(made.output), log_sum_exp = o.put(made.log_sum_exp), dy = both_signs(y.shape());
  const Array sums = attention_row_sums(c, y, dy);
  const Array dq = o({batches, queries, 1, heads, size}), dkv = o(kv.shape(), kF32);
  const Array dbias = extras ? o(options.bias.shape(), kF32) : Array();
  attention_backward(c, {q, 1}, {kv, 0}, {kv, 1}, y, dy, log_sum_exp, o.put(sums), options, {dq, 0}, {dkv, 0},
                     {dkv, 1}, dbias);
  return {made.output, made.log_sum_exp, sums, dq, dkv, dbias};
}

std::vector<Array> attention_parts(Operands& o) {
  Context& c = o.context();
  const auto result = [&] { return AttentionResult{o({2, 9, 2, 16}, kF32), o({2, 2, 9}, kF32)}; };
  AttentionResult into = result();
  attention_combine(c, into, result());
  return {into.output, into.log_sum_exp,
          attention_rotate(c, o({2, 12, 3, 2, 8}), {{3, 4}, {5, 7}, 50.0, false})};
}

std::vector<Array> channel_statistics(Operands& o) {
  Context& c = o.context();
  const Shape field{2, 37, kChannels}, each{2, kChannels};
  const Array x = o(field), dy = o(field), centre = o(each, kF32);
  const Moments moments = channel_moments(c, x);
  const ChannelMap map{centre, o(each, kF32), o({kChannels}), Activation::kSilu};
  return {moments.mean, moments.m2, channel_apply(c, x, map), channel_gradient_sums(c, dy, x, map),
          channel_gradient(c, dy, x, map, o(each, kF32), o(each, kF32))};
}

std::vector<Array> group_statistics(Operands& o) {
  Context& c = o.context();
  const std::array parts = {MomentsPart{30, 0, kChannels}, MomentsPart{7, 0, kChannels}};
  const ChannelRange channels{0, kChannels};
  const Array gamma = o({kChannels}), batch = o({kChannels}, kF64);
  const GroupStatistics made =
      combine_channel_moments(c, o({2 * 2 * 2 * kChannels}, kF32), parts, 2, kChannels, 4);
  const GroupStatistics statistics{o.put(made.mean), o.put(made.variance), 4},
      given = given_statistics(c, o({kChannels}), o({kChannels}));
  const ChannelScales scales = channel_scales(c, statistics, channels, 1e-5, gamma, kF32);
  const GroupSums sums =
      group_gradient_sums(c, statistics, channels, 1e-5, gamma, o({2, 2, kChannels}, kF32));
  const GradientShifts shifts =
      gradient_shifts(c, statistics, channels, 1e-5, o.put(sums.groups), 37 * 4, kF32);
  return {made.mean,     made.variance, given.mean,   given.variance,
          scales.centre, scales.factor, sums.dgamma,  sums.dbeta,
          sums.groups,   shifts.slope,  shifts.shift, way_to_batch(c, o({kChannels}), batch, channels, 0.5)};
}

std::vector<Array> normalization(Operands& o) {
  Context& c = o.context();
  const Shape rows{37, 4 * kChannels};
  const Array x = o(rows), dy = o(rows), gamma = o({rows[1]}), beta = o({rows[1]});
  const Moments moments = row_moments(c, x);
  NormStatistics made, rms;
  std::vector<Array> all = {moments.mean, moments.m2, layer_norm_forward(c, x, gamma, beta, 1e-5, made),
                            rms_norm_forward(c, x, gamma, 1e-5, rms)};
  const NormStatistics given{o.put(made.mean), o.put(made.reciprocal_deviation)};
  const Array sums = layer_norm_row_sums(c, dy, x, gamma, given);
  for (const NormGradients& gradients :
       {layer_norm_backward(c, dy, x, gamma, given), rms_norm_backward(c, dy, x, gamma, given),
        layer_norm_backward_apply(c, dy, x, gamma, given, o.put(sums), 2 * rows[1])})
    all.insert(all.end(), {gradients.dx, gradients.dgamma, gradients.dbeta});
  all.insert(all.end(), {made.mean, made.reciprocal_deviation, rms.reciprocal_deviation, sums,
                         layer_norm_apply(c, x, gamma, beta, given)});
  return all;
}

std::vector<Array> row_statistics(Operands& o) {
  Context& c = o.context();
  const std::array<std::int64_t, 2> lengths = {30, 7};
  const NormStatistics made = combine_moments(c, o({2, 2, 37}, kF32), lengths, 1e-5);
  Array sums = o({37, 2}, kF32);
  drop_mean_part(c, sums);
  return {made.mean, made.reciprocal_deviation, sums, pack_moments(c, {o({37}, kF32), o({37}, kF32)})};
}

std::vector<Array> contraction(Operands& o) {
  Context& c = o.context();
  std::vector<Array> all;
  for (const char* const text : {"mk,nk->mn", "km,nk->nm", "bmk,bkn->bmn", "k,mk->m"}) {
    const ContractionSpec spec = ContractionSpec::parse(text);
    const auto shape = [](const std::string& letters) {
      Shape result;
      for (const char letter : letters) result.append(letter == 'b' ? 3 : letter == 'm' ? 40 : 2 * kChannels);
      return result;
    };
    const Array a = o(shape(spec.a)), b = o(shape(spec.b));
    Array sum = o(shape(spec.c), kF32);
    all.push_back(contract(c, spec, a, b, o.type()));
    contract_add(c, spec, a, b, sum);
    all.push_back(sum);
  }
  return all;
}

std::vector<Array> convolution(Operands& o, std::int64_t groups) {
  Context& c = o.context();
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, groups, {1, 1}, {1, 1}};
  const Shape x_shape{2, 6, 7, kChannels}, y_shape{2, 6, 7, 2 * kChannels},
      w_shape{2 * kChannels, kChannels / groups, 3, 3};
  const Array x = o(x_shape), weight = o(w_shape), bias = o({2 * kChannels}, kF32), dy = o(y_shape);
  Array y = o(y_shape), dw = o(w_shape, kF32);
  convolution_forward_into(c, convolution, x, weight, bias, y);
  convolution_backward_weight_add(c, convolution, dy, x, dw);
  return {y, dw, convolution_forward(c, convolution, x, weight, bias, o.type()),
          convolution_backward_data(c, convolution, dy, weight, {6, 7}, o.type()),
          convolution_backward_weight(c, convolution, dy, x, kF32)};
}

std::vector<Array> pooling(Operands& o) {
  Context& c = o.context();
  std::vector<Array> all;
  for (const std::int64_t stride : {1, 2}) {
    const Pooling pooling{{{2, 3}, {stride, stride}, {1, 1}}, {{1, 0}, {6, 9}}, false};
    const Array x = o({2, 8, 9, kChannels});
    Array winners;
    const Array y = max_pool_forward(c, pooling, x, winners), dy = o(y.shape());
    all.insert(all.end(),
               {y, winners, max_pool_backward(c, pooling, dy, o.put(winners), {8, 9}),
                average_pool_forward(c, pooling, x), average_pool_backward(c, pooling, dy, {8, 9})});
  }
  return all;
}

std::vector<Array> resampling(Operands& o) {
  Context& c = o.context();
  std::vector<Array> all;
  for (const Interpolation interpolation :
       {Interpolation::kNearest, Interpolation::kNearestExact, Interpolation::kLinear}) {
    const Resampling r{interpolation, {5, 6}, {10, 12}, {true, true, true}, {}, {5, 6}, {{1, 0}, {9, 11}}};
    all.push_back(resample_forward(c, r, o({2, 5, 6, kChannels})));
    all.push_back(resample_backward(c, r, o({2, 9, 11, kChannels})));
  }
  return all;
}

std::vector<Array> relative_bias_of_windows(Operands& o) {
  Context& c = o.context();
  return {relative_bias(c, o({7 * 5, 4}), {4, 3}), relative_bias_backward(c, o({4, 12, 12}, kF32), {4, 3})};
}

std::vector<Array> copy(Operands& o) {
  Context& c = o.context();
  const Shape shape{3, 8, kChannels};
  const Box from{{0, 1, 0}, {3, 6, kChannels}}, to{{0, 2, 0}, {3, 6, kChannels}};
  Array copied = o(shape), added = o(shape), moved = o(shape), summed = o(shape);
  const Array x = o(shape), y = o(shape);
  copy_box(c, x, from, copied, to);
  add_box(c, x, from, added, to);
  BoxTable moves, sums;
  moves.copy(0, {0, shape, from}, {0, shape, to});
  moves.copy(1, {0, shape, {{0, 0, 0}, {3, 2, kChannels}}}, {0, shape, {{0, 0, 0}, {3, 2, kChannels}}});
  sums.copy(0, {0, shape, from}, {0, shape, to}, 0);
  sums.copy(1, {0, shape, from}, {0, shape, to});
  const std::array sources = {x, y};
  copy_boxes(c, moves, sources, moved);
  copy_boxes(c, sums, sources, summed, {o({kChannels}, kF64), o({kChannels}, kF64)});
  return {
      copied, added, moved, summed, permute(c, x, std::array{1, 0, 2}), permute(c, x, std::array{0, 2, 1})};
}

std::vector<Array> blending(Operands& o) {
  Array sums = o({40, kChannels}, kF64);
  add_weighted(o.context(), o({31, kChannels}), o({31}, kF64), {{0}, {31}}, sums, {{5, 0}, {31, kChannels}});
  return {sums};
}

std::vector<Array> ensemble(Operands& o) {
  const MemberNoise noise{{1, RandomPurpose::kNoise, ""}, 2, 1, {{3, 1, 2}, {3, 4, 2}}};
  const MemberBox of{{6, 31, kChannels + 3}, {{0, 0, 0}, {6, 31, kChannels + 3}}, 3};
  return {member_inputs(o.context(), o({2, 31, kChannels}), o.type(), of, noise)};
}

std::vector<Array> forecast_scores(Operands& o) {
  Context& c = o.context();
  const Shape field{2, 37, 3};
  const std::array<StateChannel, 3> channels = {
      StateChannel{.increment = true}, StateChannel{.function = ValueFunction::kSqrt}, StateChannel{}};
  Array states = o(field, kF64);
  const Array missing = hide_missing(c, o(field, kF64), states);
  const Shape one{1, 37, 3};
  TimeMoments moments{o(one, kF64), o(one, kF64), o(one, kF64), o(one, kF64), o(one, kF64)};
  add_moments(c, o({3, 37, 3}, kF64), o(one, kF64), moments);
  return {states,
          missing,
          moments.count,
          moments.forecast_mean,
          moments.forecast_squares,
          moments.truth_mean,
          moments.truth_squares,
          physical_states(c, o(field), o(field, kF64), channels),
          score_sums(c, {o(field, kF64), o(field, kF64), o(field, kF64), o(field, kF32)}, o({2, 37}, kF64)),
          exceedance_sums(c, o({4, 37, 3}, kF64), o(field, kF64), 2, std::array{0.0, 0.5, -0.5},
                          o({2, 37}, kF64))};
}

std::vector<Array> loss(Operands& o) {
  Context& c = o.context();
  const Shape field{2, 37, kChannels}, each{2, kChannels};
  const Array prediction = o(field), target = o(field, kF32), weight = o({37}, kF64);
  const LossSums sums = loss_sums(c, {}, prediction, target, weight);
  const Array numerator = o.put(sums.numerator), denominator = o.put(sums.denominator),
              channels = o({kChannels}, kF64);
  std::vector<Array> all = {
      sums.numerator, sums.denominator, loss_gradient(c, {}, prediction, target, weight, o(each, kF64)),
      loss_mean(c, {numerator, denominator}, channels), loss_factors(c, denominator, channels, 2.0)};
  std::vector<double> named;
  for (int i = 0; i < 2 * 37; ++i) named.push_back(i % 3);
  const Array logits = o({2, 37, 3}), labels = o({2, 37, 1}, kF32, named), classes = o({3}, kF64);
  const ClassTerm term{ClassTerm::Kind::kDice};
  const ClassSums of_classes = class_sums(c, logits, labels, weight);
  const ClassSums given{o.put(of_classes.all)};
  all.insert(all.end(), {of_classes.all, class_mean(c, given, std::span(&term, 1), classes),
                         class_factors(c, given, std::span(&term, 1), classes, 2.0),
                         class_gradient(c, logits, labels, weight, o({3, 2, 3}, kF64))});
  return all;
}

/// Parameters are f32, whatever the type; the copy that layers read is bf16.
std::vector<Array> optimizer(Operands& o) {
  Context& c = o.context();
  const std::array runs = {TrainedRun{0, 33, 0.1, 0.1}, TrainedRun{40, 64, 0.2, 0}};
  const Shape flat{107};
  Array numbers = o({UpdateNumbers::kKinds}, kF64, std::vector<double>(UpdateNumbers::kKinds, 1.0));
  const auto array = [&] { return o(flat, kF32); };
  Array p = array(), m = array(), v = array(), copy = o(flat, kBf16), p2 = array(), v2 = array(),
        copy2 = o(flat, kBf16), p3 = array(), copy3 = o(flat, kBf16), average = array(),
        squares = o({1}, kF64);
  const Array gradient = array();
  adamw(c, {}, runs, numbers, p, gradient, m, v, copy);
  sgd(c, {}, runs, numbers, p2, gradient, v2, copy2);
  follow(c, runs, numbers, p3, gradient, copy3);
  exponential_average(c, 0.9, numbers, average, p);
  add_squares_of_runs(c, runs, gradient, squares);
  Array decided = o({UpdateNumbers::kKinds}, kF64);
  decide_update(c, {}, o({MeanParts::kKinds}, kF64), squares, decided);
  return {p, m, v, copy, p2, v2, copy2, p3, copy3, average, squares, decided};
}

std::vector<Array> pointwise(Operands& o) {
  Context& c = o.context();
  const Shape shape{37, kChannels};
  const Spread spread{37, kChannels, 1};
  PointwiseChain chain{.activation = Activation::kGelu, .dropout = {}, .spread = spread};
  chain.dropout =
      Dropout{0.3, RandomStream(1, RandomPurpose::kDropout, "path"), {}, shape, Box::whole(shape)};
  const Array x = o(shape), bias = o({kChannels}), dy = o(shape), slope = o({kChannels});
  const PreluGradients prelu = prelu_backward(c, spread, dy, x, slope);
  Array into = o(shape, kF32), scaled = o(shape), wide = o(shape, kF64);
  accumulate(c, into, x);
  scale(c, scaled, 1.5);
  cast_into(c, x, wide);
  return {into,
          scaled,
          wide,
          prelu.dx,
          prelu.dslope,
          pointwise_forward(c, chain, x, bias, o(shape)),
          pointwise_backward(c, chain, x, bias, dy),
          sum_spread(c, spread, x),
          scale_spread(c, spread, x, slope),
          prelu_forward(c, spread, x, slope),
          add(c, x, dy),
          cast(c, x, kF64)};
}

std::vector<Family> families() {
  return {{"attention", [](Operands& o) { return attention(o, false); }, false},
          {"attention", [](Operands& o) { return attention(o, true); }},
          {"attention", attention_parts},
          {"channel_statistics", channel_statistics},
          {"group_statistics", group_statistics},
          {"normalization", normalization},
          {"row_statistics", row_statistics},
          {"contraction", contraction, false},
          {"convolution", [](Operands& o) { return convolution(o, 1); }, false},
          {"convolution", [](Operands& o) { return convolution(o, kChannels); }, false},
          {"pooling", pooling},
          {"resampling", resampling},
          {"relative_bias", relative_bias_of_windows},
          {"copy", copy},
          {"blending", blending},
          {"ensemble", ensemble},
          {"forecast_scores", forecast_scores},
          {"loss", loss},
          {"optimizer", optimizer},
          {"pointwise", pointwise}};
}

TEST(Misaligned, EveryFamilyIsTried) {
  std::set<std::string> declared, tried;
  for (const auto& file : std::filesystem::directory_iterator(testing::source_dir() + "/src/kernels/front")) {
    const std::string name = file.path().filename().string();
    const std::size_t end = name.find("_kernels.h");
    if (end != std::string::npos) declared.insert(name.substr(0, end));
  }
  for (const Family& family : families()) tried.insert(family.name);
  EXPECT_EQ(tried, declared);
}

class Misaligned : public ::testing::TestWithParam<Backend> {
 protected:
  struct Results {
    std::vector<std::vector<double>> values;
    std::vector<DType> types;
    std::size_t operands = 0;
  };
  Results results(const Family& family, DType type, const Operands::Place& place) {
    Operands operands(context_, type, place);
    Results found;
    for (const Array& array : family.run(operands)) {
      found.values.push_back(values_of(array));
      found.types.push_back(array.dtype());
    }
    operands.expect_untouched();
    found.operands = operands.count();
    return found;
  }
  static void expect_equal(const Results& found, const Results& wanted, DType type, bool same_bits) {
    ASSERT_EQ(found.values.size(), wanted.values.size());
    for (std::size_t i = 0; i < wanted.values.size(); ++i) {
      SCOPED_TRACE(concat("result ", i));
      double largest = 0;
      for (const double value : wanted.values[i]) largest = std::max(largest, std::abs(value));
      const DType coarser = wanted.types[i] == kBf16 ? kBf16 : type;
      testing::expect_near(found.values[i], wanted.values[i],
                           same_bits ? 0.0 : tolerance(coarser, 64, largest));
    }
  }

  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(Misaligned, EachOperandAloneAndAll) {
  for (const Family& family : families()) {
    for (const DType type : {kBf16, kF32}) {
      SCOPED_TRACE(concat(family.name, " of ", name(type)));
      const Results wanted = results(family, type, [](std::size_t) { return 0; });
      const bool same_bits = family.same_bits || GetParam() == Backend::kReference;
      const auto expect_same = [&](const std::string& which, const Operands::Place& place) {
        SCOPED_TRACE(which);
        expect_equal(results(family, type, place), wanted, type, same_bits);
      };
      for (std::size_t alone = 0; alone < wanted.operands; ++alone)
        expect_same(concat("operand ", alone), [=](std::size_t i) { return i == alone ? 1 : 0; });
      expect_same("all", [](std::size_t) { return 1; });
      // 4 or 8 bytes beyond, and each elsewhere
      expect_same("all by two", [](std::size_t) { return 2; });
      expect_same("all apart", [](std::size_t i) { return 1 + static_cast<std::int64_t>(i) * 3 % 7; });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Misaligned, testing::kernel_backends(), testing::backend_name);

}  // namespace misaligned_test
}  // namespace jigsaw
