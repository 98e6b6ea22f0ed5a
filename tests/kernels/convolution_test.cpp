#include "kernels/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "array/transfer.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/contraction.h"
#include "kernels/field_extents.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace convolution_test {

using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

struct Case {
  Shape x;           ///< [B, space…, C]
  std::int64_t out;  ///< O
  Window window;
  std::int64_t groups = 1;
  Shape low = {}, high = {};  ///< zeros beyond the ends

  Convolution convolution() const { return {window, groups, low, high}; }
  std::int64_t before(int dim) const { return low.rank() == 0 ? 0 : low[dim]; }
  std::int64_t behind(int dim) const { return high.rank() == 0 ? 0 : high[dim]; }
  Shape weight() const {
    Shape shape{out, groups == 0 ? 0 : x.back() / groups};
    for (const std::int64_t extent : window.extent) shape.append(extent);
    return shape;
  }
  Shape y() const {
    Shape shape{x[0]};
    for (int dim = 0; dim + 2 < x.rank(); ++dim) {
      std::int64_t places = 0;  // counted, not computed
      const std::int64_t points = before(dim) + x[dim + 1] + behind(dim);
      while (places * window.stride[dim] + (window.extent[dim] - 1) * window.dilation[dim] < points) ++places;
      shape.append(places);
    }
    shape.append(out);
    return shape;
  }
  std::string to_string() const {
    return x.to_string() + " by " + weight().to_string() + " stride " + window.stride.to_string() +
           " dilation " + window.dilation.to_string() + " groups " + std::to_string(groups) + " padded " +
           low.to_string() + high.to_string();
  }
};

/// Windows of one, two and three dims, strides that leave points over, groups, depthwise, channels that fill
/// no vector, nothing at all, and zeros beyond the ends: uneven, wider than the window, around no points.
std::vector<Case> cases() {
  return {{{2, 9, 11, 3}, 5, {{3, 3}, {1, 1}, {1, 1}}},
          {{1, 12, 13, 4}, 6, {{3, 2}, {2, 3}, {1, 2}}},
          {{1, 8, 9, 16}, 32, {{3, 3}, {1, 1}, {2, 1}}},
          {{2, 7, 10, 6}, 4, {{1, 1}, {1, 1}, {1, 1}}},
          {{1, 12, 15, 5}, 17, {{1, 1}, {1, 1}, {1, 1}}},
          {{1, 5, 6, 1}, 3, {{1, 1}, {1, 1}, {1, 1}}},
          {{8, 16, 16, 4}, 8, {{1, 1}, {2, 2}, {1, 1}}},
          {{1, 6, 7, 6, 2}, 4, {{1, 1, 1}, {2, 2, 2}, {1, 1, 1}}},
          {{2, 2, 27}, 1, {{3}, {3}, {1}}, 1, {0}, {1}},
          {{1, 4, 1, 25}, 26, {{4, 2}, {2, 2}, {1, 1}}, 1, {1, 1}, {2, 0}},
          {{1, 5, 1, 7, 6}, 5, {{3, 3, 3}, {1, 2, 1}, {1, 1, 1}}, 1, {1, 1, 1}, {1, 1, 1}},
          {{1, 3, 5, 7, 17}, 15, {{5, 3, 3}, {2, 1, 1}, {1, 1, 1}}, 1, {3, 1, 1}, {2, 1, 1}},
          {{2, 7, 8, 6}, 9, {{3, 3}, {1, 1}, {1, 1}}, 3},
          {{1, 9, 9, 32}, 32, {{3, 3}, {1, 1}, {1, 1}}, 32},
          {{1, 9, 9, 4}, 8, {{3, 3}, {2, 2}, {1, 1}}, 4},
          {{2, 5, 6, 7, 3}, 4, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}}},
          {{1, 7, 6, 9, 4}, 6, {{2, 3, 2}, {2, 1, 3}, {1, 2, 1}}, 2},
          {{3, 17, 5}, 2, {{4}, {2}, {1}}},
          {{1, 20, 24, 24}, 48, {{3, 3}, {1, 1}, {1, 1}}},
          {{0, 5, 5, 3}, 4, {{3, 3}, {1, 1}, {1, 1}}},
          {{1, 2, 5, 3}, 4, {{3, 3}, {1, 1}, {1, 1}}},
          {{1, 0, 5, 3}, 4, {{3, 3}, {1, 1}, {1, 1}}},
          {{1, 5, 5, 0}, 4, {{3, 3}, {1, 1}, {1, 1}}},
          {{1, 5, 5, 3}, 0, {{3, 3}, {1, 1}, {1, 1}}},
          {{1, 5, 5, 0}, 0, {{3, 3}, {1, 1}, {1, 1}}, 0},
          {{2, 9, 11, 16}, 32, {{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}},
          {{1, 9, 11, 5}, 6, {{3, 3}, {1, 1}, {1, 1}}, 1, {1, 0}, {0, 1}},
          {{2, 8, 9, 16}, 8, {{3, 5}, {2, 3}, {1, 2}}, 1, {0, 4}, {1, 3}},
          {{1, 5, 6, 4}, 3, {{3, 3}, {1, 1}, {1, 1}}, 1, {4, 0}, {2, 5}},
          {{1, 1, 4, 3}, 2, {{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}},
          {{2, 4, 5, 6, 8}, 8, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}}, 2, {1, 1, 0}, {1, 0, 1}},
          {{2, 0, 5, 3}, 4, {{3, 3}, {1, 1}, {1, 1}}, 1, {4, 1}, {0, 1}}};
}

/// Few points, windows, strides, dilations, groups, channels and zeros beyond the ends, by chance.
std::vector<Case> random_cases(std::size_t count) {
  std::mt19937 generator(5);
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(generator() % static_cast<unsigned>(high - low + 1));
  };
  std::vector<Case> drawn;
  while (drawn.size() < count) {
    Case one;
    one.x = {draw(1, 2)};
    const int dims = draw(1, 3), largest = dims == 3 ? 3 : 5;
    const bool points = draw(0, 3) == 0, padded = draw(0, 1) == 0;
    bool fits = true;
    for (int dim = 0; dim < dims; ++dim) {
      const int space = draw(1, dims == 1 ? 20 : 7), extent = points ? 1 : draw(1, largest);
      one.x.append(space);
      one.window.extent.append(extent);
      one.window.stride.append(draw(0, 2) > 0 ? 1 : draw(2, 3));
      one.window.dilation.append(draw(0, 3) > 0 ? 1 : 2);
      one.low.append(padded ? draw(0, extent) : 0);
      one.high.append(padded ? draw(0, extent) : 0);
      fits = fits && one.window.reach(dim) <= space + one.low[dim] + one.high[dim];
    }
    one.groups = draw(0, 4) > 0 ? 1 : draw(2, 4);
    one.x.append(one.groups * draw(1, 20));
    one.out = one.groups * draw(1, 20);
    if (fits) drawn.push_back(one);
  }
  return drawn;
}

/// The convolution by its definition, one number at a time: y[b, p, o] = Σ x[b, p·stride + k·dilation,
/// c]·w[o, c, k].
class Definition {
 public:
  explicit Definition(const Case& of) : of_(of), y_(of.y()), w_(of.weight()) {}

  std::vector<double> y(const std::vector<double>& x, const std::vector<double>& w) const {
    std::vector<double> sums(static_cast<std::size_t>(y_.count()), 0.0);
    for_each([&](std::int64_t i, std::int64_t j, std::int64_t k) { at(sums, k) += at(x, i) * at(w, j); });
    return sums;
  }
  std::vector<double> dx(const std::vector<double>& dy, const std::vector<double>& w) const {
    std::vector<double> sums(static_cast<std::size_t>(of_.x.count()), 0.0);
    for_each([&](std::int64_t i, std::int64_t j, std::int64_t k) { at(sums, i) += at(dy, k) * at(w, j); });
    return sums;
  }
  std::vector<double> dw(const std::vector<double>& dy, const std::vector<double>& x) const {
    std::vector<double> sums(static_cast<std::size_t>(w_.count()), 0.0);
    for_each([&](std::int64_t i, std::int64_t j, std::int64_t k) { at(sums, j) += at(dy, k) * at(x, i); });
    return sums;
  }

 private:
  static double& at(std::vector<double>& values, std::int64_t i) {
    return values.at(static_cast<std::size_t>(i));
  }
  static double at(const std::vector<double>& values, std::int64_t i) {
    return values.at(static_cast<std::size_t>(i));
  }
  static Shape indices(const Shape& shape, std::int64_t i) {
    Shape index = shape;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      index[dim] = i % shape[dim];
      i /= shape[dim];
    }
    return index;
  }
  static std::int64_t element(const Shape& shape, const Shape& index) {
    std::int64_t i = 0;
    for (int dim = 0; dim < shape.rank(); ++dim) i = i * shape[dim] + index[dim];
    return i;
  }

  /// All (y, w) pairs of one group, and the x between them.
  template <typename F>
  void for_each(const F& f) const {
    for (std::int64_t k = 0; k < y_.count(); ++k) {
      const Shape place = indices(y_, k);
      const std::int64_t per_output = w_.count() / w_[0];
      for (std::int64_t rest = 0; rest < per_output; ++rest) {
        const std::int64_t j = place.back() * per_output + rest;
        const Shape tap = indices(w_, j);
        Shape index = of_.x;
        index[0] = place[0];
        bool inside = true;
        for (int dim = 0; dim < of_.window.extent.rank(); ++dim) {
          index[dim + 1] = place[dim + 1] * of_.window.stride[dim] + tap[dim + 2] * of_.window.dilation[dim] -
                           of_.before(dim);
          inside = inside && index[dim + 1] >= 0 && index[dim + 1] < of_.x[dim + 1];
        }
        if (!inside) continue;
        index[of_.x.rank() - 1] =
            place.back() / (of_.out / of_.groups) * (of_.x.back() / of_.groups) + tap[1];
        f(element(of_.x, index), j, k);
      }
    }
  }

  const Case& of_;
  Shape y_, w_;
};

class ConvolutionKernel : public ::testing::TestWithParam<Backend> {
 protected:
  void check_results(const Case& each, DType type) {
    SCOPED_TRACE(each.to_string() + std::string(name(type)));
    const Array x = random_array(context_, each.x, type, 1),
                weight = random_array(context_, each.weight(), type, 2),
                dy = random_array(context_, each.y(), type, 3),
                bias = random_array(context_, {each.out}, DType::kFloat32, 4);
    const Definition wanted(each);
    const std::int64_t terms = each.out == 0 ? 0 : each.weight().count() / each.out;
    std::vector<double> y = wanted.y(values_of(x), values_of(weight));
    for (const DType out : {type, accumulator_of(type)}) {
      const Array made = convolution_forward(context_, each.convolution(), x, weight, {}, out);
      EXPECT_EQ(made.shape(), each.y());
      expect_near(values_of(made), y, tolerance(out, terms, 24));
    }
    const std::vector<double> biases = values_of(bias);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += biases[i % biases.size()];
    expect_near(values_of(convolution_forward(context_, each.convolution(), x, weight, bias, type)), y,
                tolerance(type, terms, 24));
    const Array dx =
        convolution_backward_data(context_, each.convolution(), dy, weight, space_of(each.x), type);
    EXPECT_EQ(dx.shape(), each.x);
    expect_near(values_of(dx), wanted.dx(values_of(dy), values_of(weight)),
                tolerance(type, each.weight().count() + 1, 24));
  }

  void check_weight_gradient(const Case& each, DType type) {
    SCOPED_TRACE(each.to_string() + std::string(name(type)));
    const DType sums = accumulator_of(type);
    const Array x = random_array(context_, each.x, type, 1), dy = random_array(context_, each.y(), type, 3);
    std::vector<double> dw = Definition(each).dw(values_of(dy), values_of(x));
    const std::int64_t terms = each.y().count() + 1;
    const Array stored = convolution_backward_weight(context_, each.convolution(), dy, x, sums);
    EXPECT_EQ(stored.shape(), each.weight());
    expect_near(values_of(stored), dw, tolerance(sums, terms, 8));
    Array into = random_array(context_, each.weight(), sums, 5);
    const std::vector<double> before = values_of(into);
    for (std::size_t i = 0; i < dw.size(); ++i) dw[i] += before[i];
    convolution_backward_weight_add(context_, each.convolution(), dy, x, into);
    expect_near(values_of(into), dw, tolerance(sums, terms, 8));
  }

  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(ConvolutionKernel, IsItsDefinition) {
  for (const DType type : kTypes)
    for (const Case& each : cases()) check_results(each, type);
}

TEST_P(ConvolutionKernel, WeightGradientStoresAndAdds) {
  for (const DType type : kTypes)
    for (const Case& each : cases()) check_weight_gradient(each, type);
}

/// Libraries have code of their own for many kinds of shapes, and not all of it is right everywhere.
TEST_P(ConvolutionKernel, RandomShapes) {
  for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
    for (const Case& each : random_cases(200)) {
      check_results(each, type);
      check_weight_gradient(each, type);
    }
  }
}

/// Sums that grow: of bf16 factors a sum that was kept in bf16 would stand still after some 256 of its terms.
TEST_P(ConvolutionKernel, MicroBatchesAddUpInFloat32) {
  constexpr int kBatches = 64;
  const Convolution convolution = {{{3, 3}, {1, 1}, {1, 1}}};
  const Shape x_shape = {1, 6, 7, 4}, dy_shape = {1, 4, 5, 3};
  Array sum = filled(context_, {3, 4, 3, 3}, DType::kFloat32, 0.0);
  std::vector<double> wanted(static_cast<std::size_t>(sum.count()), 0.0);
  for (unsigned batch = 0; batch < kBatches; ++batch) {
    const auto positive = [&](const Shape& shape, unsigned seed) {
      std::vector<double> values = values_of(random_array(context_, shape, DType::kBfloat16, seed));
      for (double& value : values) value = std::abs(value);
      return constant(context_, shape, DType::kBfloat16, values);
    };
    const Array x = positive(x_shape, 2 * batch), dy = positive(dy_shape, 2 * batch + 1);
    convolution_backward_weight_add(context_, convolution, dy, x, sum);
    const std::vector<double> xs = values_of(x), dys = values_of(dy);
    for (std::int64_t o = 0; o < 3; ++o)
      for (std::int64_t c = 0; c < 4; ++c)
        for (std::int64_t i = 0; i < 3; ++i)
          for (std::int64_t j = 0; j < 3; ++j)
            for (std::int64_t row = 0; row < 4; ++row)
              for (std::int64_t column = 0; column < 5; ++column)
                wanted[static_cast<std::size_t>(((o * 4 + c) * 3 + i) * 3 + j)] +=
                    dys[static_cast<std::size_t>((row * 5 + column) * 3 + o)] *
                    xs[static_cast<std::size_t>(((row + i) * 7 + column + j) * 4 + c)];
  }
  expect_near(values_of(sum), wanted, tolerance(DType::kFloat32, kBatches * 20, 8));
}

TEST_P(ConvolutionKernel, OneByOneIsAProduct) {
  const Array x = random_array(context_, {2, 30, 31, 40}, DType::kFloat32, 1),
              weight = random_array(context_, {24, 40, 1, 1}, DType::kFloat32, 2);
  const Array product = contract(context_, ContractionSpec::parse("bhwk,nk->bhwn"), x,
                                 weight.reshaped({24, 40}), DType::kFloat32);
  const Array y = convolution_forward(context_, {{{1, 1}, {1, 1}, {1, 1}}}, x, weight, {}, DType::kFloat32);
  expect_near(values_of(y), values_of(product), tolerance(DType::kFloat32, 40, 8));
}

/// A kept weight is packed once, until it is forgotten.
TEST_P(ConvolutionKernel, KeptWeightsAreForgotten) {
  const Convolution convolution = {{{3, 3}, {1, 1}, {1, 1}}};
  const Array x = random_array(context_, {1, 12, 12, 16}, DType::kFloat32, 1),
              weight = random_array(context_, {16, 16, 3, 3}, DType::kFloat32, 2);
  const auto run = [&] {
    return values_of(convolution_forward(context_, convolution, x, weight, {}, DType::kFloat32));
  };
  const std::vector<double> before = run();
  keep_packed(context_, weight);
  EXPECT_EQ(run(), before);
  EXPECT_EQ(run(), before);
  Array changed = weight;
  scale(context_, changed, 2.0);
  forget_packed_weights(context_);
  keep_packed(context_, weight);
  std::vector<double> twice = before;
  for (double& value : twice) value *= 2;
  EXPECT_EQ(run(), twice);
  forget_packed_weights(context_);
}

TEST_P(ConvolutionKernel, MetaCountsAlike) {
  Context meta = Context::make_meta();
  const Convolution convolution = {{{3, 3}, {2, 2}, {1, 1}}, 2};
  for (Context* context : {&context_, &meta}) {
    const Array x = testing::random_array(*context, {2, 9, 11, 6}, DType::kFloat32, 1),
                weight = testing::random_array(*context, {4, 3, 3, 3}, DType::kFloat32, 1);
    const Array y = convolution_forward(*context, convolution, x, weight, {}, DType::kFloat32);
    EXPECT_EQ(y.shape(), (Shape{2, 4, 5, 4}));
    EXPECT_EQ(convolution_backward_data(*context, convolution, y, weight, {9, 11}, DType::kFloat32).shape(),
              x.shape());
    EXPECT_EQ(convolution_backward_weight(*context, convolution, y, x, DType::kFloat32).shape(),
              weight.shape());
  }
  EXPECT_EQ(meta.tally().flops, 3 * 2.0 * (2 * 4 * 5 * 4) * 3 * 9);
  EXPECT_EQ(meta.tally().flops, context_.tally().flops);
  EXPECT_EQ(meta.tally().bytes, context_.tally().bytes);
}

TEST_P(ConvolutionKernel, RepeatsBitForBit) {
  const Array x = random_array(context_, {2, 40, 41, 24}, DType::kFloat32, 1),
              weight = random_array(context_, {24, 24, 3, 3}, DType::kFloat32, 2);
  const Convolution convolution = {{{3, 3}, {1, 1}, {1, 1}}};
  const Array y = convolution_forward(context_, convolution, x, weight, {}, DType::kFloat32);
  const Array dw = convolution_backward_weight(context_, convolution, y, x, DType::kFloat32);
  for (int repetition = 0; repetition < 3; ++repetition) {
    EXPECT_EQ(values_of(convolution_forward(context_, convolution, x, weight, {}, DType::kFloat32)),
              values_of(y));
    EXPECT_EQ(values_of(convolution_backward_weight(context_, convolution, y, x, DType::kFloat32)),
              values_of(dw));
  }
}

TEST_P(ConvolutionKernel, ErrorsSayWhatIsWrong) {
  const Array x = random_array(context_, {1, 6, 6, 4}, DType::kFloat32, 1),
              weight = random_array(context_, {4, 4, 3, 3}, DType::kFloat32, 2);
  const auto run = [&](const Convolution& convolution, const Array& w) {
    return convolution_forward(context_, convolution, x, w, {}, DType::kFloat32);
  };
  const Window window = {{3, 3}, {1, 1}, {1, 1}};
  EXPECT_NO_THROW(run({window}, weight));
  EXPECT_THROW(run({window, 3}, weight), ShapeError);                 // groups that do not divide
  EXPECT_THROW(run({window, 2}, weight), ShapeError);                 // a weight without groups
  EXPECT_THROW(run({{{3, 3}, {0, 1}, {1, 1}}}, weight), ShapeError);  // no stride
  EXPECT_THROW(run({{{3}, {1}, {1}}}, weight), ShapeError);           // a window of another rank
  EXPECT_THROW(run({window, 1, {1}, {1, 1}}, weight), ShapeError);    // padding of another rank
  EXPECT_THROW(run({{{2, 2}, {1, 1}, {1, 1}}}, weight), ShapeError);  // another window
  EXPECT_THROW(run({window}, random_array(context_, {4, 4, 3, 3}, DType::kBfloat16, 2)), ShapeError);
  EXPECT_THROW(convolution_backward_data(context_, {window}, x, weight, {9, 9}, DType::kFloat32), ShapeError);
  EXPECT_THROW(convolution_backward_weight(context_, {window}, x, x, DType::kFloat32), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, ConvolutionKernel, testing::kernel_backends(), testing::backend_name);

}  // namespace convolution_test
}  // namespace jigsaw
