// States and sums of scores beside plain loops in float64.
#include "kernels/forecast_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace forecast_scores_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

class ForecastScoresKernel : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();
const Shape kShapes[] = {{2, 3, 5, 4}, {1, 97, 40}, {3, 700, 1}, {2, 40000, 1}, {1, 900, 70},
                         {3, 4},       {2, 0, 3},   {0, 4, 3},   {2, 4, 0}};

/// Random numbers of which each so manieth is another.
std::vector<double> numbers(const Shape& shape, unsigned seed, double low, double high, std::size_t each = 0,
                            double other = kNaN) {
  Context host = Context::make_host(Backend::kReference, 1);
  std::vector<double> values = values_of(random_array(host, shape, DType::kFloat64, seed, low, high));
  for (std::size_t i = each; each > 0 && i < values.size(); i += each) values[i] = other;
  return values;
}

/// A channel of each function, of states and of increments, the last with a range.
std::vector<StateChannel> channels_of(std::int64_t count) {
  std::vector<StateChannel> channels;
  for (std::int64_t c = 0; c < count; ++c) {
    StateChannel channel;
    channel.increment = c % 3 == 1;
    channel.mean = 0.5 + 0.25 * static_cast<double>(c % 5);
    channel.deviation = 0.75;
    channel.function = static_cast<ValueFunction>(c % 4);
    channel.epsilon = 0.01;
    channel.lambda = 0.25;
    if (c % 2 == 0) channel.low = 0.5;
    if (c % 5 == 0) channel.high = 0.8;
    channels.push_back(channel);
  }
  return channels;
}

/// By the definitions.
double state_of(const StateChannel& channel, double y, double start) {
  const double from = start < 0 ? 0 : start;
  double base = channel.mean;
  if (channel.increment) {
    switch (channel.function) {
      case ValueFunction::kNone:
        base = start;
        break;
      case ValueFunction::kLog:
        base = std::log(from + 0.01);
        break;
      case ValueFunction::kSqrt:
        base = std::sqrt(from);
        break;
      case ValueFunction::kBoxCox:
        base = (std::pow(from + 0.01, 0.25) - 1) / 0.25;
        break;
    }
  }
  const double sum = base + 0.75 * y;
  double state = sum;
  const auto positive = [](double x) { return x < 0 ? 0 : x; };
  switch (channel.function) {
    case ValueFunction::kNone:
      break;
    case ValueFunction::kLog:
      state = positive(std::exp(sum) - 0.01);
      break;
    case ValueFunction::kSqrt:
      state = positive(sum) * positive(sum);
      break;
    case ValueFunction::kBoxCox:
      state = positive(std::pow(positive(0.25 * sum + 1), 4.0) - 0.01);
      break;
  }
  if (state < channel.low) return channel.low;
  if (state > channel.high) return channel.high;
  return state;
}

void expect_same(const std::vector<double>& values, const std::vector<double>& wanted, double relative) {
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::isnan(values[i]), std::isnan(wanted[i])) << i;
    if (std::isfinite(wanted[i])) {
      EXPECT_NEAR(values[i], wanted[i], relative * (1 + std::abs(wanted[i]))) << i;
    }
  }
}

TEST_P(ForecastScoresKernel, StatesAreWhatChannelsSay) {
  for (const Shape& shape : kShapes) {
    const auto width = static_cast<std::size_t>(shape.back());
    const std::vector<StateChannel> channels = channels_of(shape.back());
    const std::vector<double> starts = numbers(shape, 1, -0.2, 2, 7);
    const Array origin = array_of(context_, shape, DType::kFloat64, starts);
    for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
      const Array values = array_of(context_, shape, type, numbers(shape, 2, -2, 2, 11));
      const std::vector<double> ys = values_of(values);
      std::vector<double> wanted;
      for (std::size_t i = 0; i < ys.size(); ++i)
        wanted.push_back(state_of(channels[i % width], ys[i], starts[i]));
      const Array states = physical_states(context_, values, origin, channels);
      EXPECT_EQ(states.dtype(), DType::kFloat64);
      EXPECT_EQ(states.shape(), shape);
      expect_same(values_of(states), wanted, 1e-13);
    }
  }
}

/// To the last bit, for the file says so.
TEST_P(ForecastScoresKernel, StatesAreKeptInTheirRanges) {
  StateChannel channel;
  channel.mean = 0.3;
  channel.deviation = 10;
  channel.low = 0.1;
  channel.high = 0.7;
  const Shape shape{1, 100, 1};
  const std::vector<double> states =
      values_of(physical_states(context_, random_array(context_, shape, DType::kFloat32, 1),
                                random_array(context_, shape, DType::kFloat64, 2), std::span(&channel, 1)));
  EXPECT_GT(std::ranges::count(states, 0.1), 10);
  EXPECT_GT(std::ranges::count(states, 0.7), 10);
  for (const double state : states) EXPECT_TRUE(state >= 0.1 && state <= 0.7) << state;
}

TEST_P(ForecastScoresKernel, MissingStatesAreHiddenAndTheOthersThatAreNotFiniteCounted) {
  for (const Shape& shape : kShapes) {
    const auto width = static_cast<std::size_t>(shape.back());
    std::vector<double> wanted = numbers(shape, 3, -1, 1, 5, kInfinity), counts(width, 0.0);
    for (std::size_t i = 3; i < wanted.size(); i += 13) wanted[i] = kNaN;
    const std::vector<double> starts = numbers(shape, 4, -1, 1, 3);
    Array states = array_of(context_, shape, DType::kFloat64, wanted);
    const Array not_finite =
        hide_missing(context_, array_of(context_, shape, DType::kFloat64, starts), states);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const bool missing = std::isnan(starts[i]);
      if (!missing && !std::isfinite(wanted[i])) ++counts[i % width];
      if (missing) wanted[i] = kNaN;
    }
    EXPECT_EQ(values_of(not_finite), counts);
    expect_same(values_of(states), wanted, 0);
  }
}

/// Sums of one sample, region and channel, point by point.
using Sums = std::array<double, kScoreSums>;
Sums sums_at(const std::vector<std::vector<double>>& fields, const std::vector<double>& weights,
             const Shape& shape, std::int64_t sample, std::int64_t region, std::int64_t channel) {
  const std::int64_t points = shape.count(1, shape.rank() - 1);
  Sums sums = {};
  const auto add = [&](ScoreSum kind, double part) { sums[static_cast<std::size_t>(kind)] += part; };
  for (std::int64_t point = 0; point < points; ++point) {
    const auto i = static_cast<std::size_t>((sample * points + point) * shape.back() + channel);
    const double w = weights[static_cast<std::size_t>(region * points + point)], truth = fields[1][i];
    if (w == 0 || std::isnan(truth)) continue;
    const double e = fields[0][i] - truth;
    add(ScoreSum::kWeight, w);
    add(ScoreSum::kSquares, w * e * e);
    add(ScoreSum::kAbsolute, w * std::abs(e));
    add(ScoreSum::kErrors, w * e);
    add(ScoreSum::kTruthValues, w * truth);
    if (!fields[2].empty() && !std::isnan(fields[2][i])) {
      add(ScoreSum::kReferenceWeight, w);
      add(ScoreSum::kReferenceSquares, w * std::pow(fields[2][i] - truth, 2));
      add(ScoreSum::kReferenceAbsolute, w * std::abs(fields[2][i] - truth));
    }
    if (fields[3].empty() || std::isnan(fields[3][i])) continue;
    const double f = fields[0][i] - fields[3][i], o = truth - fields[3][i];
    add(ScoreSum::kClimateWeight, w);
    add(ScoreSum::kProduct, w * f * o);
    add(ScoreSum::kForecast, w * f * f);
    add(ScoreSum::kTruth, w * o * o);
  }
  return sums;
}

constexpr std::int64_t kRegions = 3;
/// The second region is every other point, the third nothing.
std::vector<double> region_weights(std::int64_t points) {
  std::vector<double> weights = numbers({kRegions, points}, 5, 0.5, 2);
  for (std::int64_t point = 0; point < points; ++point) {
    if (point % 2 == 0) weights[static_cast<std::size_t>(points + point)] = 0;
    weights[static_cast<std::size_t>(2 * points + point)] = 0;
  }
  return weights;
}

TEST_P(ForecastScoresKernel, SumsAreThoseOfTheirPoints) {
  for (const Shape& shape : kShapes) {
    const std::int64_t points = shape.count(1, shape.rank() - 1);
    const std::vector<double> weights = region_weights(points);
    const Array regions = array_of(context_, {kRegions, points}, DType::kFloat64, weights);
    for (const bool reference : {false, true}) {
      for (const bool climatology : {false, true}) {
        const Array climate = array_of(context_, shape, DType::kFloat32, numbers(shape, 9, -1, 1, 4));
        std::vector<std::vector<double>> fields = {numbers(shape, 6, -1, 1), numbers(shape, 7, -1, 1, 6)};
        fields.push_back(reference ? numbers(shape, 8, -1, 1, 5) : std::vector<double>());
        fields.push_back(climatology ? values_of(climate) : std::vector<double>());
        const auto array = [&](const std::vector<double>& values) {
          return array_of(context_, shape, DType::kFloat64, values);
        };
        const ScoredStates states{array(fields[0]), array(fields[1]), reference ? array(fields[2]) : Array(),
                                  climatology ? climate : Array()};
        const Array sums = score_sums(context_, states, regions);
        ASSERT_EQ(sums.shape(), (Shape{kScoreSums, shape[0], kRegions, shape.back()}));
        const std::vector<double> found = values_of(sums);
        const auto each = found.size() / kScoreSums;
        for (std::size_t i = 0; i < each; ++i) {
          const auto number = static_cast<std::int64_t>(i);
          const Sums wanted = sums_at(fields, weights, shape, number / shape.back() / kRegions,
                                      number / shape.back() % kRegions, number % shape.back());
          for (std::size_t kind = 0; kind < kScoreSums; ++kind)
            EXPECT_NEAR(found[kind * each + i], wanted[kind], 1e-12 * static_cast<double>(1 + points))
                << "kind " << kind << " of " << shape << " at " << i;
        }
      }
    }
  }
}

/// Of few values, so that members are often equal to the truth, and to each other.
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = std::round(4 * value) / 4;
  return values;
}

TEST_P(ForecastScoresKernel, RanksOfTheTruthAreThoseAmongItsMembers) {
  for (const Shape& shape : kShapes) {
    const std::int64_t points = shape.count(1, shape.rank() - 1), width = shape.back(), each = points * width;
    const std::vector<double> weights = region_weights(points), truth = rounded(numbers(shape, 7, -1, 1, 6));
    for (const std::int64_t members : {1, 2, 7}) {
      Shape all = shape;
      all[0] *= members;
      const std::vector<double> forecasts = rounded(numbers(all, 8, -1, 1));
      const Shape expected{members + 1, shape[0], kRegions, width};
      std::vector<double> wanted(static_cast<std::size_t>(expected.count()), 0.0);
      for (std::int64_t i = 0; i < shape.count(); ++i) {
        const double o = truth[static_cast<std::size_t>(i)];
        const std::int64_t sample = i / each, point = i % each / width;
        if (std::isnan(o)) continue;
        std::vector<double> sorted;
        for (std::int64_t j = 0; j < members; ++j)
          sorted.push_back(forecasts[static_cast<std::size_t>((sample * members + j) * each + i % each)]);
        std::ranges::sort(sorted);
        const auto first = std::ranges::lower_bound(sorted, o) - sorted.begin(),
                   last = std::ranges::upper_bound(sorted, o) - sorted.begin();
        for (std::int64_t r = 0; r < kRegions; ++r) {
          for (auto k = first; k <= last; ++k)
            wanted[static_cast<std::size_t>(((k * shape[0] + sample) * kRegions + r) * width + i % width)] +=
                weights[static_cast<std::size_t>(r * points + point)] / static_cast<double>(last - first + 1);
        }
      }
      const Array found = truth_ranks(context_, array_of(context_, all, DType::kFloat64, forecasts),
                                      array_of(context_, shape, DType::kFloat64, truth), members,
                                      array_of(context_, {kRegions, points}, DType::kFloat64, weights));
      EXPECT_EQ(found.shape(), expected);
      SCOPED_TRACE(::testing::Message() << members << " members of " << shape);
      expect_same(values_of(found), wanted, 1e-12);
    }
  }
}

TEST_P(ForecastScoresKernel, AMemberThatIsNotANumberShowsInTheRanks) {
  const Array truth = array_of(context_, {1, 3, 1}, DType::kFloat64, {1, kNaN, 3});
  const Array forecasts = array_of(context_, {2, 3, 1}, DType::kFloat64, {kNaN, 2, 3, 0, kNaN, kInfinity});
  const auto ranks = [&](const std::vector<double>& weights) {
    return values_of(
        truth_ranks(context_, forecasts, truth, 2, array_of(context_, {1, 3}, DType::kFloat64, weights)));
  };
  for (const double share : ranks({1, 1, 1})) EXPECT_TRUE(std::isnan(share));
  EXPECT_EQ(ranks({0, 1, 2}), (std::vector<double>{1, 1, 0}));
}

/// Thresholds of each channel, of which some have none; members and truth are often equal to one.
TEST_P(ForecastScoresKernel, ExceedancesAreThoseOfTheirPoints) {
  for (const Shape& shape : kShapes) {
    const std::int64_t points = shape.count(1, shape.rank() - 1), width = shape.back(), each = points * width;
    const std::vector<double> weights = region_weights(points), truth = rounded(numbers(shape, 7, -1, 1, 6));
    std::vector<double> thresholds;
    for (std::int64_t i = 0; i < 2 * width; ++i)
      thresholds.push_back(i % 5 == 3 ? kNaN : 0.25 * static_cast<double>(i % 3));
    for (const std::int64_t members : {1, 2, 7}) {
      Shape all = shape;
      all[0] *= members;
      const std::vector<double> forecasts = rounded(numbers(all, 8, -1, 1));
      const Shape expected{2 * 2 * (members + 1), shape[0], kRegions, width};
      std::vector<double> wanted(static_cast<std::size_t>(expected.count()), 0.0);
      for (std::int64_t i = 0; i < 2 * shape.count(); ++i) {
        const std::int64_t t = i / shape.count(), element = i % shape.count(), sample = element / each;
        const double o = truth[static_cast<std::size_t>(element)],
                     threshold = thresholds[static_cast<std::size_t>(t * width + i % width)];
        if (std::isnan(o) || std::isnan(threshold)) continue;
        std::int64_t kind = (t * 2 + (o < threshold ? 1 : 0)) * (members + 1);
        for (std::int64_t j = 0; j < members; ++j) {
          const auto at = static_cast<std::size_t>((sample * members + j) * each + element % each);
          if (!(forecasts[at] < threshold)) ++kind;
        }
        for (std::int64_t r = 0; r < kRegions; ++r)
          wanted[static_cast<std::size_t>(((kind * shape[0] + sample) * kRegions + r) * width + i % width)] +=
              weights[static_cast<std::size_t>(r * points + element % each / width)];
      }
      const Array found =
          exceedance_sums(context_, array_of(context_, all, DType::kFloat64, forecasts),
                          array_of(context_, shape, DType::kFloat64, truth), members, thresholds,
                          array_of(context_, {kRegions, points}, DType::kFloat64, weights));
      EXPECT_EQ(found.shape(), width > 0 ? expected : (Shape{0, shape[0], kRegions, 0}));
      SCOPED_TRACE(::testing::Message() << members << " members of " << shape);
      expect_same(values_of(found), wanted, 1e-12);
    }
  }
}

TEST_P(ForecastScoresKernel, AMemberThatIsNotANumberShowsInTheExceedances) {
  const Array truth = array_of(context_, {1, 3, 1}, DType::kFloat64, {1, kNaN, 3});
  const Array forecasts = array_of(context_, {2, 3, 1}, DType::kFloat64, {kNaN, 2, 3, 0, kNaN, kInfinity});
  const auto kinds = [&](const std::vector<double>& weights) {
    return values_of(exceedance_sums(context_, forecasts, truth, 2, std::array{2.0, kNaN},
                                     array_of(context_, {1, 3}, DType::kFloat64, weights)));
  };
  const std::vector<double> all = kinds({1, 1, 1});
  for (std::size_t kind = 0; kind < 6; ++kind) EXPECT_TRUE(std::isnan(all[kind])) << kind;
  EXPECT_EQ(kinds({0, 1, 2}), (std::vector<double>{0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TimeMoments no_moments(Context& context, const Shape& shape) {
  TimeMoments moments;
  for_each_array(moments, [&](Array& array) {
    array = array_of(context, shape, DType::kFloat64,
                     std::vector<double>(static_cast<std::size_t>(shape.count())));
  });
  return moments;
}

/// Number, mean and sum of squared deviations of numbers, by two loops.
std::array<double, 2> two_loops(const std::vector<double>& numbers) {
  double mean = 0, squares = 0;
  for (const double number : numbers) mean += number / static_cast<double>(numbers.size());
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return {mean, squares};
}

/// Of numbers whose mean is far larger than what they vary by.
TEST_P(ForecastScoresKernel, MomentsInTimeAreThoseOfAllTimes) {
  constexpr std::size_t kTimes = 6;
  constexpr double kMean = 5e5;
  for (Shape shape : kShapes) {
    shape[0] = 1;
    const auto each = static_cast<std::size_t>(shape.count());
    for (const std::int64_t members : {1, 2, 7}) {
      Shape all = shape;
      all[0] = members;
      TimeMoments moments = no_moments(context_, shape);
      std::vector<std::vector<double>> forecasts, truths;
      for (unsigned time = 0; time < kTimes; ++time) {
        forecasts.push_back(numbers(all, 10 + time, kMean - 1, kMean + 1));
        truths.push_back(numbers(shape, 20 + time, kMean - 1, kMean + 1, 2 + time));
        add_moments(context_, array_of(context_, all, DType::kFloat64, forecasts.back()),
                    array_of(context_, shape, DType::kFloat64, truths.back()), moments);
      }
      const std::vector<double> counts = values_of(moments.count), means = values_of(moments.forecast_mean),
                                squares = values_of(moments.forecast_squares),
                                truth_means = values_of(moments.truth_mean),
                                truth_squares = values_of(moments.truth_squares);
      SCOPED_TRACE(::testing::Message() << members << " members of " << shape);
      for (std::size_t i = 0; i < each; ++i) {
        std::vector<double> of_forecast, of_truth;
        for (std::size_t time = 0; time < kTimes; ++time) {
          if (std::isnan(truths[time][i])) continue;
          of_truth.push_back(truths[time][i]);
          for (std::size_t j = 0; j < static_cast<std::size_t>(members); ++j)
            of_forecast.push_back(forecasts[time][j * each + i]);
        }
        ASSERT_EQ(counts[i], static_cast<double>(of_truth.size())) << i;
        const auto [mean, square] = two_loops(of_forecast);
        const auto [truth_mean, truth_square] = two_loops(of_truth);
        ASSERT_NEAR(means[i], mean, 1e-14 * kMean) << i;
        ASSERT_NEAR(squares[i], square / static_cast<double>(members), 1e-8) << i;
        ASSERT_NEAR(truth_means[i], truth_mean, 1e-14 * kMean) << i;
        ASSERT_NEAR(truth_squares[i], truth_square, 1e-8) << i;
      }
    }
  }
}

TEST_P(ForecastScoresKernel, AForecastThatIsNotFiniteShowsInTheMomentsOfItsPointAlone) {
  TimeMoments moments = no_moments(context_, {1, 3, 1});
  const auto add = [&](const std::vector<double>& forecasts, const std::vector<double>& truth) {
    add_moments(context_, array_of(context_, {2, 3, 1}, DType::kFloat64, forecasts),
                array_of(context_, {1, 3, 1}, DType::kFloat64, truth), moments);
  };
  add({1, kNaN, 3, kNaN, 2, 5}, {1, kNaN, 3});
  add({1, 2, 4, 1, 4, 4}, {2, 2, 4});
  EXPECT_EQ(values_of(moments.count), (std::vector<double>{2, 1, 2}));
  expect_same(values_of(moments.forecast_mean), {kNaN, 3, 4}, 1e-15);
  expect_same(values_of(moments.forecast_squares), {kNaN, 1, 1}, 1e-15);
  EXPECT_EQ(values_of(moments.truth_mean), (std::vector<double>{1.5, 2, 3.5}));
  EXPECT_EQ(values_of(moments.truth_squares), (std::vector<double>{0.5, 0, 0.5}));
}

/// Neither how many threads there are nor what stood in memory before changes a bit.
TEST_P(ForecastScoresKernel, SumsRepeatBitForBit) {
  const Shape shape{1, 60000, 3};
  const auto sums = [&](Context& context) {
    const Array truth = random_array(context, shape, DType::kFloat64, 2, 270, 280);
    const ScoredStates states{random_array(context, shape, DType::kFloat64, 1, 270, 280), truth, truth, {}};
    const Array weights = random_array(context, {2, 60000}, DType::kFloat64, 3);
    std::vector<double> all = values_of(score_sums(context, states, weights));
    const Array members = random_array(context, {4, 60000, 3}, DType::kFloat64, 4, 270, 280);
    const std::vector<double> ranks = values_of(truth_ranks(context, members, truth, 4, weights));
    all.insert(all.end(), ranks.begin(), ranks.end());
    const std::vector<double> kinds = values_of(exceedance_sums(
        context, members, truth, 4, std::array{271.0, 273.0, 275.0, 277.0, 279.0, 279.5}, weights));
    all.insert(all.end(), kinds.begin(), kinds.end());
    TimeMoments moments = no_moments(context, shape);
    add_moments(context, members, truth, moments);
    const std::vector<double> spread = values_of(moments.forecast_squares);
    all.insert(all.end(), spread.begin(), spread.end());
    return all;
  };
  const std::vector<double> first = sums(context_);
  EXPECT_EQ(sums(context_), first);
  Context one = testing::kernel_context(GetParam(), 1);
  EXPECT_EQ(sums(one), first);
}

TEST_P(ForecastScoresKernel, AForecastThatIsNotFiniteShowsAndWhereNothingCountsItDoesNot) {
  const Array truth = array_of(context_, {1, 3, 1}, DType::kFloat64, {1, kNaN, 3});
  const Array forecast = array_of(context_, {1, 3, 1}, DType::kFloat64, {kNaN, kInfinity, 4});
  const auto squares = [&](const std::vector<double>& weights) {
    const Array regions = array_of(context_, {1, 3}, DType::kFloat64, weights);
    return values_of(score_sums(context_, {forecast, truth, {}, {}},
                                regions))[static_cast<std::size_t>(ScoreSum::kSquares)];
  };
  EXPECT_TRUE(std::isnan(squares({1, 1, 1})));
  EXPECT_EQ(squares({0, 1, 2}), 2);
}

TEST_P(ForecastScoresKernel, WhatDoesNotFitIsRefused) {
  const auto field = [&](const Shape& shape, DType type = DType::kFloat64) {
    return random_array(context_, shape, type, 1);
  };
  const std::vector<StateChannel> two(2);
  EXPECT_THROW(physical_states(context_, field({1, 3, 3}), field({1, 3, 3}), two), ShapeError);
  EXPECT_THROW(physical_states(context_, field({1, 3, 2}), field({1, 4, 2}), two), ShapeError);
  Array states = field({1, 3, 2});
  EXPECT_THROW(hide_missing(context_, field({1, 2, 2}), states), ShapeError);
  EXPECT_THROW(score_sums(context_, {states, states, {}, {}}, field({1, 4})), ShapeError);
  EXPECT_THROW(score_sums(context_, {states, states, field({1, 2, 2}), {}}, field({1, 3})), ShapeError);
  EXPECT_THROW(score_sums(context_, {states, states, {}, states}, field({1, 3})), Error);
  EXPECT_THROW(truth_ranks(context_, field({3, 3, 2}), states, 2, field({1, 3})), ShapeError);
  EXPECT_THROW(truth_ranks(context_, field({2, 3, 2}), states, 2, field({1, 4})), ShapeError);
  EXPECT_THROW(truth_ranks(context_, field({2, 3, 2}, DType::kFloat32), states, 2, field({1, 3})), Error);
  const std::vector<double> thresholds = {0, 1};
  EXPECT_THROW(exceedance_sums(context_, field({3, 3, 2}), states, 2, thresholds, field({1, 3})), ShapeError);
  EXPECT_THROW(exceedance_sums(context_, field({2, 3, 2}), states, 2, thresholds, field({1, 4})), ShapeError);
  EXPECT_THROW(exceedance_sums(context_, states, states, 1, std::array{0.0, 1.0, 2.0}, field({1, 3})),
               ShapeError);
  TimeMoments moments = no_moments(context_, {1, 3, 2});
  EXPECT_THROW(add_moments(context_, field({2, 2, 2}), states, moments), ShapeError);
  EXPECT_THROW(add_moments(context_, field({0, 3, 2}), states, moments), ShapeError);
  EXPECT_THROW(add_moments(context_, field({2, 3, 2}), field({2, 3, 2}), moments), ShapeError);
  EXPECT_THROW(add_moments(context_, field({2, 4, 2}), field({1, 4, 2}), moments), ShapeError);
  EXPECT_THROW(add_moments(context_, field({1, 3, 2}, DType::kFloat32), states, moments), Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, ForecastScoresKernel, testing::kernel_backends(), testing::backend_name);

}  // namespace forecast_scores_test
}  // namespace jigsaw
