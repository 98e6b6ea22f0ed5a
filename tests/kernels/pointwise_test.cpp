#include "kernels/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace pointwise_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

double gelu(double x) {
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}
double gelu_derivative(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) +
         x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
}

/// Dropout of a whole array of this shape.
Dropout whole_dropout(const Shape& shape, double probability) {
  return {probability,
          RandomStream(3, RandomPurpose::kDropout, "block.0"),
          {.step = 5, .sample = 2},
          shape,
          Box::whole(shape)};
}

class Pointwise : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(Pointwise, BiasSpreadsOverAnyDim) {
  for (const DType type : kTypes) {
    for (const Spread& spread : {Spread{6, 37, 1}, Spread{1, 5, 33}, Spread{3, 4, 7}, Spread{0, 4, 7},
                                 Spread{2, 0, 3}, Spread{500, 64, 1}, Spread{3, 5, 24}, Spread{7, 24, 1}}) {
      const Shape shape = {spread.outer, spread.keep, spread.inner};
      const Array x = random_array(context_, shape, type, 1);
      const Array bias = random_array(context_, {spread.keep}, type, 2);
      const Array residual = random_array(context_, shape, type, 3);
      const std::vector<double> xs = values_of(x), bs = values_of(bias), rs = values_of(residual);
      std::vector<double> with_bias(xs.size()), with_both(xs.size());
      for (std::size_t i = 0; i < xs.size(); ++i) {
        with_bias[i] =
            xs[i] + bs[i / static_cast<std::size_t>(spread.inner) % static_cast<std::size_t>(spread.keep)];
        with_both[i] = rs[i] + gelu(with_bias[i]);
      }
      PointwiseChain chain;
      chain.spread = spread;
      expect_near(values_of(pointwise_forward(context_, chain, x, bias, {})), with_bias,
                  tolerance(type, 2, 2));
      chain.activation = Activation::kGelu;
      expect_near(values_of(pointwise_forward(context_, chain, x, bias, residual)), with_both,
                  tolerance(type, 4, 2));
    }
  }
}

TEST_P(Pointwise, GeluIsExact) {
  const Array x = random_array(context_, {40001}, DType::kFloat32, 1, -12, 12);
  std::vector<double> values = values_of(x), slopes = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    slopes[i] = gelu_derivative(values[i]);
    values[i] = gelu(values[i]);
  }
  const PointwiseChain chain{.activation = Activation::kGelu};
  const std::vector<double> found = values_of(pointwise_forward(context_, chain, x, {}, {}));
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], values[i], 2e-7 * std::max(1.0, std::abs(values[i])));
  }
  const Array ones = filled(context_, x.shape(), DType::kFloat32, 1.0);
  expect_near(values_of(pointwise_backward(context_, chain, x, {}, ones)), slopes, 5e-7);
}

TEST_P(Pointwise, GeluOfExtremes) {
  const double large = 1e30;
  const Array x = array_of(context_, {4}, DType::kFloat32, {large, -large, 0.0, -20.0});
  const PointwiseChain chain{.activation = Activation::kGelu};
  const std::vector<double> y = values_of(pointwise_forward(context_, chain, x, {}, {}));
  EXPECT_EQ(y[0], static_cast<float>(large));
  expect_near({y[1], y[2], y[3]}, {0.0, 0.0, 0.0}, 1e-30);
  const Array ones = filled(context_, x.shape(), DType::kFloat32, 1.0);
  expect_near(values_of(pointwise_backward(context_, chain, x, {}, ones)), {1.0, 0.0, 0.5, 0.0}, 1e-7);
  const Array nan = filled(context_, {3}, DType::kFloat32, std::nan(""));
  for (const double value : values_of(pointwise_forward(context_, chain, nan, {}, {})))
    EXPECT_TRUE(std::isnan(value));
}

/// The activations by their definitions, in float64.
struct Curve {
  const char* name;
  Activation activation;
  double (*value)(double);
  double (*slope)(double);
};
const Curve kCurves[] = {
    {"relu", Activation::kRelu, [](double x) { return std::max(x, 0.0); },
     [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {"silu", Activation::kSilu, [](double x) { return x / (1 + std::exp(-x)); },
     [](double x) {
       const double s = 1 / (1 + std::exp(-x));
       return s + x * s * (1 - s);
     }},
    {"tanh", Activation::kTanh, [](double x) { return std::tanh(x); },
     [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
    {"sigmoid", Activation::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); },
     [](double x) { return 1 / (2 + std::exp(x) + std::exp(-x)); }},
    {"mish", Activation::kMish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
     [](double x) {
       const double inner = std::tanh(std::log1p(std::exp(x)));
       return inner + x / (1 + std::exp(-x)) * (1 - inner * inner);
     }},
    {"leaky_relu", Activation::kLeakyRelu, [](double x) { return x > 0 ? x : x / 100; },
     [](double x) { return x > 0 ? 1.0 : 0.01; }}};

TEST_P(Pointwise, ActivationsAreTheirDefinitions) {
  for (const Curve& curve : kCurves) {
    for (const DType type : kTypes) {
      SCOPED_TRACE(curve.name + std::string(name(type)));
      const Array x = random_array(context_, {40001}, type, 1, -20, 20);
      std::vector<double> values = values_of(x), slopes = values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        slopes[i] = curve.slope(values[i]);
        values[i] = curve.value(values[i]);
      }
      const PointwiseChain chain{.activation = curve.activation};
      const std::vector<double> found = values_of(pointwise_forward(context_, chain, x, {}, {}));
      for (std::size_t i = 0; i < found.size(); ++i) {
        // σ, silu and mish of −20 are 2e-9: relative to the value, and with the rounding of float32
        // arithmetic
        ASSERT_NEAR(found[i], values[i], tolerance(type, 8, std::abs(values[i])) + 1e-15);
      }
      const Array ones = filled(context_, x.shape(), type, 1.0);
      expect_near(values_of(pointwise_backward(context_, chain, x, {}, ones)), slopes, tolerance(type, 16));
    }
  }
}

TEST_P(Pointwise, ActivationsOfExtremes) {
  const Array x = array_of(context_, {5}, DType::kFloat32, {1e30, -1e30, 0.0, 1e-10, -200.0});
  const Array ones = filled(context_, x.shape(), DType::kFloat32, 1.0),
              nan = filled(context_, {3}, DType::kFloat32, std::nan(""));
  const double large = static_cast<float>(1e30), tiny = static_cast<float>(1e-10);
  const std::vector<std::vector<double>> wanted = {
      {large, 0, 0, tiny, 0}, {large, 0, 0, tiny / 2, 0},   {1, -1, 0, tiny, -1},
      {1, 0, 0.5, 0.5, 0},    {large, 0, 0, 0.6 * tiny, 0}, {large, -0.01 * large, 0, tiny, -2}};
  const std::vector<std::vector<double>> slopes = {{1, 0, 0, 1, 0},     {1, 0, 0.5, 0.5, 0},
                                                   {0, 0, 1, 1, 0},     {0, 0, 0.25, 0.25, 0},
                                                   {1, 0, 0.6, 0.6, 0}, {1, 0.01, 0.01, 1, 0.01}};
  for (std::size_t curve = 0; curve < wanted.size(); ++curve) {
    SCOPED_TRACE(kCurves[curve].name);
    const PointwiseChain chain{.activation = kCurves[curve].activation};
    const std::vector<double> y = values_of(pointwise_forward(context_, chain, x, {}, {}));
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], wanted[curve][i], 1e-6 * std::abs(wanted[curve][i]) + 1e-30);
    expect_near(values_of(pointwise_backward(context_, chain, x, {}, ones)), slopes[curve], 1e-6);
    for (const double value : values_of(pointwise_forward(context_, chain, nan, {}, {})))
      EXPECT_TRUE(std::isnan(value));
  }
}

/// PReLU and its gradients by their definitions, in float64.
TEST_P(Pointwise, PreluIsItsDefinition) {
  for (const DType type : kTypes) {
    for (const Spread& spread : {Spread{6, 37, 1}, Spread{1, 5, 33}, Spread{3, 4, 7}, Spread{0, 4, 7},
                                 Spread{500, 64, 1}, Spread{3, 5, 24}}) {
      const Shape shape = {spread.outer, spread.keep, spread.inner};
      const Array x = random_array(context_, shape, type, 1, -2, 2),
                  dy = random_array(context_, shape, type, 2);
      const Array slope = random_array(context_, {spread.keep}, type, 3);
      const std::vector<double> xs = values_of(x), ups = values_of(dy), slopes = values_of(slope);
      std::vector<double> y = xs, dx = ups, dslope(slopes.size(), 0.0);
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const std::size_t k = i / static_cast<std::size_t>(spread.inner) % slopes.size();
        if (xs[i] > 0) continue;
        y[i] = slopes[k] * xs[i];
        dx[i] = slopes[k] * ups[i];
        dslope[k] += ups[i] * xs[i];
      }
      expect_near(values_of(prelu_forward(context_, spread, x, slope)), y, tolerance(type, 2, 2));
      const PreluGradients found = prelu_backward(context_, spread, dy, x, slope);
      expect_near(values_of(found.dx), dx, tolerance(type, 2));
      expect_near(values_of(found.dslope), dslope,
                  tolerance(type == DType::kFloat64 ? type : DType::kFloat32,
                            static_cast<std::int64_t>(1 + xs.size()), 2));
    }
  }
}

/// Drop path: one number decides for a whole sample, wherever its pieces are.
TEST_P(Pointwise, WholeSamplesAreDropped) {
  const Shape shape = {64, 6, 5, 19};
  Dropout dropout = whole_dropout(shape, 0.4);
  dropout.whole_samples = true;
  for (const DType type : kTypes) {
    for (const Box& piece : {Box::whole(shape), Box{{5, 2, 0, 1}, {59, 3, 5, 2}},
                             Box{{63, 0, 0, 0}, {1, 6, 5, 3}}, Box{{5, 2, 0, 3}, {59, 3, 5, 16}}}) {
      dropout.piece = piece;
      const Array ones = filled(context_, piece.extent, type, 1.0);
      const std::vector<double> mask =
          values_of(pointwise_forward(context_, {.dropout = dropout}, ones, {}, {}));
      const std::size_t per_sample = mask.size() / static_cast<std::size_t>(piece.extent[0]);
      for (std::size_t i = 0; i < mask.size(); ++i) {
        const std::uint64_t sample = static_cast<std::uint64_t>(piece.begin[0]) + i / per_sample;
        const bool keep = dropout.stream.uniform({.step = 5, .sample = 2 + sample}, 0) >= 0.4;
        ASSERT_NEAR(mask[i], keep ? 1 / 0.6 : 0.0, 2 * testing::epsilon(type));
      }
    }
  }
}

TEST_P(Pointwise, BackwardFollowsTheChain) {
  const Shape shape = {3, 7, 11};
  for (const DType type : kTypes) {
    const Array x = random_array(context_, shape, type, 1, -3, 3);
    const Array bias = random_array(context_, {11}, type, 2);
    const Array dy = random_array(context_, shape, type, 3);
    PointwiseChain chain{Activation::kGelu, whole_dropout(shape, 0.4), {21, 11, 1}};
    const std::vector<double> xs = values_of(x), bs = values_of(bias);
    const std::vector<double> mask = values_of(
        pointwise_forward(context_, {.dropout = chain.dropout}, filled(context_, shape, type, 1.0), {}, {}));
    std::vector<double> wanted = values_of(dy);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      wanted[i] *= mask[i] * gelu_derivative(xs[i] + bs[i % 11]);
    expect_near(values_of(pointwise_backward(context_, chain, x, bias, dy)), wanted, tolerance(type, 8, 2));

    wanted = values_of(dy);
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] *= mask[i];
    expect_near(values_of(pointwise_backward(context_, {.dropout = chain.dropout}, {}, {}, dy)), wanted,
                tolerance(type, 2, 2));
  }
}

TEST_P(Pointwise, DropoutIsTheStreamsElement) {
  const Shape shape = {3, 5, 6};
  const Dropout dropout = whole_dropout(shape, 0.25);
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    const Array ones = filled(context_, shape, type, 1.0);
    const std::vector<double> mask =
        values_of(pointwise_forward(context_, {.dropout = dropout}, ones, {}, {}));
    for (std::uint64_t sample = 0; sample < 3; ++sample) {
      for (std::uint64_t element = 0; element < 30; ++element) {
        const bool keep = dropout.stream.uniform({.step = 5, .sample = 2 + sample}, element) >= 0.25;
        EXPECT_NEAR(mask[sample * 30 + element], keep ? 1 / 0.75 : 0.0, 1e-6);
      }
    }
  }
}

TEST_P(Pointwise, DropoutOfPiecesIsThePieceOfDropout) {
  const Shape shape = {3, 13, 10, 9};
  Dropout dropout = whole_dropout(shape, 0.3);
  const Array x = random_array(context_, shape, DType::kFloat32, 1);
  const Array whole = pointwise_forward(context_, {.dropout = dropout}, x, {}, {});
  for (const Box& piece : {Box{{0, 0, 0, 0}, {3, 13, 10, 4}}, Box{{1, 0, 0, 0}, {2, 13, 10, 9}},
                           Box{{0, 5, 0, 0}, {3, 8, 10, 9}}, Box{{2, 3, 7, 1}, {1, 5, 3, 8}},
                           Box{{1, 2, 3, 4}, {1, 1, 1, 1}}, Box{{1, 2, 3, 4}, {0, 1, 1, 1}}}) {
    dropout.piece = piece;
    const Array part =
        pointwise_forward(context_, {.dropout = dropout}, extract_box(context_, x, piece), {}, {});
    EXPECT_EQ(values_of(part), values_of(extract_box(context_, whole, piece))) << piece;
  }
}

/// Pieces whose rows are whole groups of four or eight elements, begin at such or between them, in a whole
/// whose rows are such or not: numbers may be drawn for several elements at once.
TEST_P(Pointwise, DropoutOfRowsThatAreDrawnTogether) {
  for (const Shape& global : {Shape{3, 5, 48}, Shape{3, 5, 50}, Shape{3, 5, 45}}) {
    for (const std::int64_t begin : {0, 1, 2, 4, 8}) {
      for (const std::int64_t length : {2, 4, 6, 8, 16, 32}) {
        Dropout dropout = whole_dropout(global, 0.25);
        dropout.piece = {{1, 2, begin}, {2, 3, length}};
        for (const DType type : kTypes) {
          SCOPED_TRACE(concat(name(type), " ", dropout.piece, " of ", global));
          const Array x = random_array(context_, dropout.piece.extent, type, 1),
                      bias = random_array(context_, {length}, type, 2),
                      residual = random_array(context_, dropout.piece.extent, type, 3);
          const PointwiseChain chain{.dropout = dropout, .spread = {6, length, 1}};
          const std::vector<double> xs = values_of(x), bs = values_of(bias), rs = values_of(residual),
                                    ys = values_of(pointwise_forward(context_, chain, x, bias, residual)),
                                    dx = values_of(pointwise_backward(context_, chain, {}, {}, x));
          for (std::size_t i = 0; i < ys.size(); ++i) {
            const std::size_t at = i % bs.size(), row = i / bs.size() % 3, sample = i / bs.size() / 3;
            const auto element = static_cast<std::uint64_t>((2 + static_cast<std::int64_t>(row)) * global[2] +
                                                            begin + static_cast<std::int64_t>(at));
            const bool keep = dropout.stream.uniform({.step = 5, .sample = 3 + sample}, element) >= 0.25;
            const double factor = keep ? 1 / 0.75 : 0;
            ASSERT_NEAR(ys[i], (xs[i] + bs[at]) * factor + rs[i], tolerance(type, 4, 4)) << i;
            ASSERT_NEAR(dx[i], xs[i] * factor, tolerance(type, 2, 2)) << i;
          }
        }
      }
    }
  }
}

/// Each element is a sample.
TEST_P(Pointwise, DropoutOfOneDim) {
  const Dropout dropout = whole_dropout({24}, 0.25);
  const std::vector<double> mask = values_of(pointwise_forward(
      context_, {.dropout = dropout}, filled(context_, {24}, DType::kBfloat16, 1.0), {}, {}));
  for (std::uint64_t sample = 0; sample < 24; ++sample) {
    const bool keep = dropout.stream.uniform({.step = 5, .sample = 2 + sample}, 0) >= 0.25;
    EXPECT_NEAR(mask[sample], keep ? 1 / 0.75 : 0.0, 0.01);
  }
}

TEST_P(Pointwise, DropoutKeepsTheRightShare) {
  const Shape shape = {8, 250, 100};
  for (const double probability : {0.0, 0.001, 0.1, 0.5, 0.9}) {
    const Array ones = filled(context_, shape, DType::kFloat32, 1.0);
    double kept = 0;
    for (const double value : values_of(
             pointwise_forward(context_, {.dropout = whole_dropout(shape, probability)}, ones, {}, {}))) {
      kept += value != 0;
      if (value != 0) {
        ASSERT_NEAR(value, 1 / (1 - probability), 1e-6 / (1 - probability));
      }
    }
    const double count = static_cast<double>(shape.count());
    const double deviation = std::sqrt(count * probability * (1 - probability));
    EXPECT_NEAR(kept, count * (1 - probability), 4 * deviation);
  }
}

TEST_P(Pointwise, SumAndScaleOverASpread) {
  for (const DType type : kTypes) {
    for (const Spread& spread :
         {Spread{700, 37, 1}, Spread{1, 5, 1033}, Spread{30, 4, 7}, Spread{0, 4, 7}, Spread{1, 1, 1},
          Spread{9000, 3, 1}, Spread{3000, 300, 1}, Spread{5, 4, 300}}) {
      const Shape shape = {spread.outer, spread.keep, spread.inner};
      const Array x = random_array(context_, shape, type, 1);
      const Array factor = random_array(context_, {spread.keep}, DType::kFloat32, 2);
      const std::vector<double> xs = values_of(x), fs = values_of(factor);
      std::vector<double> sums(fs.size(), 0.0), scaled(xs.size());
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const std::size_t k = i / static_cast<std::size_t>(spread.inner) % fs.size();
        sums[k] += xs[i];
        scaled[i] = xs[i] * fs[k];
      }
      const Array found = sum_spread(context_, spread, x);
      EXPECT_EQ(found.dtype(), type == DType::kFloat64 ? type : DType::kFloat32);
      expect_near(values_of(found), sums, tolerance(found.dtype(), spread.outer * spread.inner + 1));
      expect_near(values_of(scale_spread(context_, spread, x, factor)), scaled, tolerance(type, 2));
    }
  }
}

/// The gradient of a bias over as many rows as a grid has points, or a step of many of them.
TEST_P(Pointwise, SumsOverMillionsLoseNoDigits) {
  const float value = 0.1F;
  for (const Spread& spread :
       {Spread{1 << 20, 5, 1}, Spread{1 << 24, 1, 1}, Spread{1, 2, 1 << 22}, Spread{721, 3, 1440}}) {
    const Array x = filled(context_, {spread.outer, spread.keep, spread.inner}, DType::kFloat32, value);
    const double wanted = static_cast<double>(value) * static_cast<double>(spread.outer * spread.inner);
    for (const double sum : values_of(sum_spread(context_, spread, x)))
      EXPECT_NEAR(sum, wanted, 2e-6 * wanted) << spread.outer << " x " << spread.inner;
  }
}

TEST_P(Pointwise, SimpleKernels) {
  for (const DType type : kTypes) {
    const Array a = random_array(context_, {3, 41}, type, 1), b = random_array(context_, {3, 41}, type, 2);
    const std::vector<double> as = values_of(a), bs = values_of(b);
    std::vector<double> sum(as.size()), scaled(as.size());
    for (std::size_t i = 0; i < as.size(); ++i) sum[i] = as[i] + bs[i], scaled[i] = -2.5 * as[i];
    expect_near(values_of(add(context_, a, b)), sum, tolerance(type, 1, 2));
    for (const DType other : kTypes) {
      const Array converted = cast(context_, b, other);
      EXPECT_EQ(converted.dtype(), other);
      expect_near(values_of(converted), bs, testing::epsilon(other));
      Array into = random_array(context_, {3, 41}, type, 1);
      accumulate(context_, into, converted);
      expect_near(values_of(into), sum, tolerance(type, 1, 2) + testing::epsilon(other));
    }
    Array x = random_array(context_, {3, 41}, type, 1);
    scale(context_, x, -2.5);
    expect_near(values_of(x), scaled, tolerance(type, 1, 3));
    EXPECT_EQ(values_of(filled(context_, {2, 3}, type, 1.5)), std::vector<double>(6, 1.5));
  }
}

TEST_P(Pointwise, RoundsToNearestEven) {
  const Array x = array_of(context_, {4}, DType::kFloat32, {1.00390625, 1.01171875, -3.0e38, INFINITY});
  EXPECT_EQ(values_of(cast(context_, x, DType::kBfloat16)),
            (std::vector<double>{1.0, 1.015625, static_cast<double>(float(BFloat16(-3.0e38F))), INFINITY}));
  const Array nan = filled(context_, {40}, DType::kFloat32, std::nan(""));
  for (const double value : values_of(cast(context_, nan, DType::kBfloat16))) EXPECT_TRUE(std::isnan(value));
}

TEST_P(Pointwise, MetaCountsAlike) {
  Context meta = Context::make_meta();
  for (Context* context : {&context_, &meta}) {
    const Array x(*context, {4, 6}, DType::kFloat32), bias(*context, {6}, DType::kFloat32);
    if (context == &context_) context_.tally() = {};
    const PointwiseChain chain{Activation::kGelu, whole_dropout({4, 6}, 0.5), {4, 6, 1}};
    EXPECT_EQ(pointwise_forward(*context, chain, x, bias, x).shape(), x.shape());
    EXPECT_EQ(pointwise_backward(*context, chain, x, bias, x).shape(), x.shape());
    sum_spread(*context, chain.spread, x);
  }
  EXPECT_GT(meta.tally().flops, 0);
  EXPECT_EQ(meta.tally().flops, context_.tally().flops);
  EXPECT_EQ(meta.tally().bytes, context_.tally().bytes);
}

TEST_P(Pointwise, ErrorsSayWhatIsWrong) {
  const Array x = random_array(context_, {2, 3}, DType::kFloat32, 1);
  const Array y = random_array(context_, {3, 2}, DType::kFloat32, 1);
  EXPECT_THROW(add(context_, x, y), ShapeError);
  EXPECT_THROW(add(context_, x, cast(context_, x, DType::kBfloat16)), ShapeError);
  EXPECT_THROW(sum_spread(context_, {2, 2, 2}, x), ShapeError);
  EXPECT_THROW(pointwise_forward(context_, {.spread = {2, 3, 1}}, x, y, {}), ShapeError);
  EXPECT_THROW(pointwise_forward(context_, {.dropout = whole_dropout({2, 3}, 1.0)}, x, {}, {}), Error);
  EXPECT_THROW(pointwise_forward(context_, {.dropout = whole_dropout({2, 4}, 0.1)}, x, {}, {}), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Pointwise, testing::kernel_backends(), testing::backend_name);

}  // namespace pointwise_test
}  // namespace jigsaw
