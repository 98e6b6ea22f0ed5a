#include "kernels/channel_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/copy.h"
#include "kernels/group_statistics.h"
#include "kernels/pointwise.h"
#include "kernels/row_statistics.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace channel_statistics_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

/// Channels that fill no vector, one, many; one point, many, none.
const Shape kShapes[] = {{2, 15, 5},     {1, 1000, 3}, {3, 1, 7},     {1, 70, 64},
                         {2, 333, 100},  {1, 9, 1031}, {1, 30011, 2}, {1, 20001, 12},
                         {2, 1000, 100}, {2, 0, 5},    {0, 7, 5},     {2, 7, 0}};

/// Numbers of one channel of one sample: f(its elements' indices) for each [n, c].
template <typename F>
void for_channels(const Shape& shape, const F& f) {
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t c = 0; c < shape[2]; ++c) {
      std::vector<std::size_t> elements;
      for (std::int64_t p = 0; p < shape[1]; ++p) {
        elements.push_back(static_cast<std::size_t>((n * shape[1] + p) * shape[2] + c));
      }
      f(static_cast<std::size_t>(n * shape[2] + c), static_cast<std::size_t>(c), elements);
    }
}

double value_of(Activation activation, double z) {
  switch (activation) {
    case Activation::kNone:
      return z;
    case Activation::kGelu:
      return z * 0.5 * std::erfc(-z / std::numbers::sqrt2);
    case Activation::kRelu:
      return std::max(z, 0.0);
    case Activation::kSilu:
      return z / (1 + std::exp(-z));
    case Activation::kTanh:
      return std::tanh(z);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-z));
    case Activation::kMish:
      return z * std::tanh(std::log1p(std::exp(z)));
    case Activation::kLeakyRelu:
      return std::max(z, 0.01 * z);
  }
  return 0;
}
double derivative_of(Activation activation, double z) {
  const double y = value_of(activation, z), sigma = 1 / (1 + std::exp(-z));
  switch (activation) {
    case Activation::kNone:
      return 1;
    case Activation::kGelu:
      return 0.5 * std::erfc(-z / std::numbers::sqrt2) +
             z * std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    case Activation::kRelu:
      return z > 0 ? 1 : 0;
    case Activation::kSilu:
      return y + sigma * (1 - y);
    case Activation::kTanh:
      return 1 - y * y;
    case Activation::kSigmoid:
      return y * (1 - y);
    case Activation::kMish: {
      const double inner = std::tanh(std::log1p(std::exp(z)));
      return inner + z * sigma * (1 - inner * inner);
    }
    case Activation::kLeakyRelu:
      return z > 0 ? 1 : 0.01;
  }
  return 0;
}

class ChannelStatistics : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(ChannelStatistics, Moments) {
  for (const DType type : kTypes) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.to_string() + std::string(name(type)));
      const Array x = random_array(context_, shape, type, 1, 0.5, 2.5);
      const std::vector<double> xs = values_of(x);
      std::vector<double> mean(static_cast<std::size_t>(shape[0] * shape[2]), 0.0), m2 = mean;
      for_channels(shape, [&](std::size_t at, std::size_t, const std::vector<std::size_t>& elements) {
        for (const std::size_t i : elements) mean[at] += xs[i] / static_cast<double>(elements.size());
        for (const std::size_t i : elements) m2[at] += (xs[i] - mean[at]) * (xs[i] - mean[at]);
      });
      const Moments found = channel_moments(context_, x);
      EXPECT_EQ(found.mean.dtype(), accumulator_of(type));
      EXPECT_EQ(found.mean.shape(), (Shape{shape[0], shape[2]}));
      // Sums are formed in float32 over blocks of points only.
      expect_near(values_of(found.mean), mean, tolerance(found.mean.dtype(), 64, 3));
      expect_near(values_of(found.m2), m2,
                  tolerance(found.m2.dtype(), 64, static_cast<double>(shape[1] + 1)));
    }
  }
}

TEST_P(ChannelStatistics, LargeMeansLoseNoVariance) {
  std::vector<double> values(50000 * 4);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1000.0 + (i / 4 % 2 == 0 ? 0.5 : -0.5);
  const Array x = array_of(context_, {1, 50000, 4}, DType::kFloat32, values);
  const Moments moments = channel_moments(context_, x);
  expect_near(values_of(moments.mean), std::vector<double>(4, 1000.0), 1e-4);
  expect_near(values_of(moments.m2), std::vector<double>(4, 12500.0), 1.0);
  const Array ones = random_array(context_, {1, 4}, DType::kFloat32, 1, 2, 2);
  const std::vector<double> y = values_of(channel_apply(context_, x, {moments.mean, ones, {}}));
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], i / 4 % 2 == 0 ? 1.0 : -1.0, 1e-3);
}

/// Sums over as many points as a grid of 0.25 degrees has: equal terms, whose sum in float32 one by one is
/// off by up to a percent.
TEST_P(ChannelStatistics, SumsOverAWholeGrid) {
  const std::int64_t points = 1 << 20, channels = 2;
  std::vector<double> values(static_cast<std::size_t>(points * channels));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i / channels % 2 == 0 ? 1.25 : 0.75;
  const Array x = array_of(context_, {1, points, channels}, DType::kFloat32, values);
  const auto count = static_cast<double>(points);
  const Moments moments = channel_moments(context_, x);
  expect_near(values_of(moments.mean), std::vector<double>(channels, 1.0), 1e-6);
  expect_near(values_of(moments.m2), std::vector<double>(channels, 0.0625 * count), 1e-6 * 0.0625 * count);

  const double slope = static_cast<float>(0.1);
  const Array dy = filled(context_, x.shape(), DType::kFloat32, slope);
  const Array centre = filled(context_, {1, channels}, DType::kFloat32, 0.0);
  const double sum = slope * count;
  expect_near(values_of(channel_gradient_sums(context_, dy, x, {centre, centre, {}})),
              std::vector<double>(2 * channels, sum), 1e-6 * sum);
}

TEST_P(ChannelStatistics, ApplyAndGradient) {
  for (const DType type : kTypes) {
    const DType wide = accumulator_of(type);
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.to_string() + std::string(name(type)));
      const Shape channels = {shape[0], shape[2]};
      const Array x = random_array(context_, shape, type, 1), dy = random_array(context_, shape, type, 2);
      const Array centre = random_array(context_, channels, wide, 3),
                  a = random_array(context_, channels, wide, 4),
                  b = random_array(context_, channels, wide, 5),
                  c = random_array(context_, channels, wide, 6),
                  shift = random_array(context_, {shape[2]}, DType::kFloat32, 7);
      const std::vector<double> xs = values_of(x), dys = values_of(dy), m = values_of(centre),
                                as = values_of(a), bs = values_of(b), cs = values_of(c),
                                shifts = values_of(shift);
      for (const auto& [activation, shifted] : {std::pair(Activation::kNone, false),
                                                {Activation::kNone, true},
                                                {Activation::kGelu, true},
                                                {Activation::kRelu, false},
                                                {Activation::kSilu, true},
                                                {Activation::kTanh, true},
                                                {Activation::kSigmoid, true},
                                                {Activation::kMish, true},
                                                {Activation::kLeakyRelu, true}}) {
        SCOPED_TRACE(static_cast<int>(activation));
        // Activations are the same code wherever an element stands.
        if (shape.count() > 50000 && activation != Activation::kNone && activation != Activation::kGelu)
          continue;
        const ChannelMap map{centre, a, shifted ? shift : Array(), activation};
        std::vector<double> y(xs.size()), dx(xs.size()), sums(2 * m.size(), 0.0);
        for_channels(shape,
                     [&](std::size_t at, std::size_t channel, const std::vector<std::size_t>& elements) {
                       for (const std::size_t i : elements) {
                         const double z = (xs[i] - m[at]) * as[at] + (shifted ? shifts[channel] : 0.0);
                         const double slope = dys[i] * derivative_of(activation, z);
                         y[i] = value_of(activation, z);
                         dx[i] = as[at] * slope + bs[at] * (xs[i] - m[at]) + cs[at];
                         sums[at] += slope;
                         sums[m.size() + at] += slope * (xs[i] - m[at]);
                       }
                     });
        expect_near(values_of(channel_apply(context_, x, map)), y, tolerance(type, 4, 3));
        expect_near(values_of(channel_gradient(context_, dy, x, map, b, c)), dx, tolerance(type, 6, 4));
        const Array found = channel_gradient_sums(context_, dy, x, map);
        EXPECT_EQ(found.shape(), (Shape{2, shape[0], shape[2]}));
        expect_near(values_of(found), sums, tolerance(found.dtype(), 8, static_cast<double>(shape[1] + 1)));
      }
    }
  }
}

/// Parts of the points and of the channels, some of them empty, give the groups of the whole.
TEST_P(ChannelStatistics, PartsCombine) {
  const std::int64_t n = 2, points = 23, channels = 12, size = 4;
  const Array x = random_array(context_, {n, points, channels}, DType::kFloat64, 1, -1, 3);
  const std::vector<double> xs = values_of(x);
  std::vector<double> mean(static_cast<std::size_t>(n * channels / size), 0.0), variance = mean;
  for (const bool second : {false, true}) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const std::size_t group = i / (23 * 12) * 3 + i % 12 / 4;
      const double weight = 1.0 / static_cast<double>(points * size);
      if (second) {
        variance[group] += (xs[i] - mean[group]) * (xs[i] - mean[group]) * weight;
      } else {
        mean[group] += xs[i] * weight;
      }
    }
  }
  std::vector<MomentsPart> parts;
  std::vector<double> packed;
  for (const auto& [first_point, some_points] :
       {std::pair<std::int64_t, std::int64_t>(0, 9), {9, 0}, {9, 14}}) {
    for (const auto& [first, some] : {std::pair<std::int64_t, std::int64_t>(0, 5), {5, 7}, {12, 0}}) {
      const Array part = extract_box(context_, x, {{0, first_point, first}, {n, some_points, some}});
      const std::vector<double> numbers = values_of(pack_moments(context_, channel_moments(context_, part)));
      packed.insert(packed.end(), numbers.begin(), numbers.end());
      parts.push_back({some_points, first, some});
    }
  }
  const Array all = array_of(context_, {static_cast<std::int64_t>(packed.size())}, DType::kFloat64, packed);
  const GroupStatistics found = combine_channel_moments(context_, all, parts, n, channels, size);
  expect_near(values_of(found.mean), mean, 1e-14);
  expect_near(values_of(found.variance), variance, 1e-14);
}

TEST_P(ChannelStatistics, RepeatsBitForBit) {
  const Array x = random_array(context_, {2, 5000, 24}, DType::kFloat32, 1);
  const Moments first = channel_moments(context_, x);
  const ChannelMap map{first.mean, first.m2, {}, Activation::kSilu};
  const Array sums = channel_gradient_sums(context_, x, x, map);
  for (int repetition = 0; repetition < 3; ++repetition) {
    const Moments again = channel_moments(context_, x);
    EXPECT_EQ(values_of(again.mean), values_of(first.mean));
    EXPECT_EQ(values_of(again.m2), values_of(first.m2));
    EXPECT_EQ(values_of(channel_gradient_sums(context_, x, x, map)), values_of(sums));
  }
}

TEST_P(ChannelStatistics, MetaCountsAlike) {
  Context meta = Context::make_meta();
  for (Context* context : {&context_, &meta}) {
    const Array x = testing::random_array(*context, {2, 9, 6}, DType::kBfloat16, 1);
    const Moments moments = channel_moments(*context, x);
    const ChannelMap map{moments.mean, moments.m2, {}, Activation::kSilu};
    EXPECT_EQ(channel_apply(*context, x, map).shape(), x.shape());
    channel_gradient_sums(*context, x, x, map);
    EXPECT_EQ(channel_gradient(*context, x, x, map, moments.m2, moments.m2).dtype(), x.dtype());
  }
  EXPECT_GT(meta.tally().flops, 0);
  EXPECT_EQ(meta.tally().flops, context_.tally().flops);
  EXPECT_EQ(meta.tally().bytes, context_.tally().bytes);
}

TEST_P(ChannelStatistics, ErrorsSayWhatIsWrong) {
  const Array x = random_array(context_, {2, 4, 6}, DType::kFloat32, 1);
  const Moments moments = channel_moments(context_, x);
  EXPECT_THROW(channel_moments(context_, x.reshaped({8, 6})), ShapeError);
  EXPECT_THROW(channel_apply(context_, x, {moments.mean, moments.m2.slice(0, {6}), {}}), ShapeError);
  EXPECT_THROW(channel_apply(context_, x, {moments.mean, moments.m2, moments.mean}), ShapeError);
  EXPECT_THROW(channel_gradient_sums(context_, x.reshaped({2, 6, 4}), x, {moments.mean, moments.m2, {}}),
               ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, ChannelStatistics, testing::kernel_backends(), testing::backend_name);

}  // namespace channel_statistics_test
}  // namespace jigsaw
