#include "kernels/resampling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/copy.h"
#include "kernels/field_extents.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace resampling_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};
constexpr Interpolation kInterpolations[] = {Interpolation::kNearest, Interpolation::kNearestExact,
                                             Interpolation::kLinear};

Resampling whole(Interpolation interpolation, const Shape& input, const Shape& output) {
  return {interpolation, input, output, {true, true, true}, {}, input, Box::whole(output)};
}

struct Case {
  Shape input, output;
  std::int64_t samples, channels;
};
std::vector<Case> cases() {
  return {{{5}, {10}, 2, 3},
          {{7}, {3}, 1, 17},
          {{4, 6}, {8, 12}, 2, 5},
          {{9, 5}, {17, 3}, 1, 64},
          {{1, 4}, {3, 4}, 1, 2},
          {{17, 25}, {33, 49}, 1, 24},
          {{2, 3, 4}, {4, 6, 8}, 2, 3},
          {{5, 3, 4}, {3, 7, 9}, 1, 18},
          {{2, 3, 2}, {4, 4, 3}, 2, 8},
          {{6}, {4}, 2, 12},
          {{3, 3}, {6, 6}, 0, 4},
          {{3, 3}, {6, 6}, 2, 0}};
}

/// torch.nn.functional.interpolate by its definition: weight of input i in output o along one dim.
double weight_of(Interpolation interpolation, std::int64_t in, std::int64_t out, std::int64_t i,
                 std::int64_t o) {
  if (interpolation == Interpolation::kNearest) return i == o * in / out ? 1.0 : 0.0;
  if (interpolation == Interpolation::kNearestExact)
    return static_cast<double>(i) == std::floor((static_cast<double>(o) + 0.5) * static_cast<double>(in) /
                                                static_cast<double>(out))
               ? 1.0
               : 0.0;
  const double position = std::max(
      0.0, (static_cast<double>(o) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5);
  const auto low = static_cast<std::int64_t>(position);
  const double share = position - static_cast<double>(low);
  return (i == low ? 1 - share : 0.0) + (i == std::min(low + 1, in - 1) ? share : 0.0);
}

/// The matrix [output points, input points] of a resampling.
std::vector<std::vector<double>> matrix(Interpolation interpolation, const Shape& input,
                                        const Shape& output) {
  std::vector<std::vector<double>> rows;
  for (std::int64_t o = 0; o < output.count(); ++o) {
    rows.emplace_back();
    for (std::int64_t i = 0; i < input.count(); ++i) {
      double weight = 1;
      std::int64_t rest_o = o, rest_i = i;
      for (int dim = input.rank() - 1; dim >= 0; --dim) {
        weight *=
            weight_of(interpolation, input[dim], output[dim], rest_i % input[dim], rest_o % output[dim]);
        rest_o /= output[dim], rest_i /= input[dim];
      }
      rows.back().push_back(weight);
    }
  }
  return rows;
}

class ResamplingKernel : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(ResamplingKernel, IsItsDefinition) {
  for (const DType type : kTypes) {
    for (const Interpolation interpolation : kInterpolations) {
      for (const Case& each : cases()) {
        SCOPED_TRACE(each.input.to_string() + each.output.to_string() + std::string(name(type)));
        const Resampling resampling = whole(interpolation, each.input, each.output);
        const Array x = random_array(context_, field_shape(each.samples, each.input, each.channels), type, 1);
        const Array dy =
            random_array(context_, field_shape(each.samples, each.output, each.channels), type, 2);
        const std::vector<double> xs = values_of(x), dys = values_of(dy);
        std::vector<double> y(dys.size(), 0.0), dx(xs.size(), 0.0);
        const auto weights = matrix(interpolation, each.input, each.output);
        const auto channels = static_cast<std::size_t>(each.channels);
        for (std::size_t b = 0; b < static_cast<std::size_t>(each.samples); ++b)
          for (std::size_t o = 0; o < weights.size(); ++o)
            for (std::size_t i = 0; i < weights[o].size(); ++i)
              for (std::size_t c = 0; c < channels; ++c) {
                const std::size_t to = (b * weights.size() + o) * channels + c,
                                  from = (b * weights[o].size() + i) * channels + c;
                y[to] += weights[o][i] * xs[from];
                dx[from] += weights[o][i] * dys[to];
              }
        expect_near(values_of(resample_forward(context_, resampling, x)), y, tolerance(type, 64));
        expect_near(values_of(resample_backward(context_, resampling, dy)), dx, tolerance(type, 128, 4));
      }
    }
  }
}

/// One point that a whole grid reads: the sum over the grid is as exact as one over a few points.
TEST_P(ResamplingKernel, GradientOfOnePointReadByAGrid) {
  const Shape input = {1, 1}, output = {361, 720};
  for (const Interpolation interpolation : kInterpolations) {
    for (const double slope : {0.1, 280.3}) {
      const Array dy = filled(context_, field_shape(1, output, 1), DType::kFloat32, slope);
      const double wanted = static_cast<float>(slope) * static_cast<double>(output.count());
      const std::vector<double> dx =
          values_of(resample_backward(context_, whole(interpolation, input, output), dy));
      EXPECT_NEAR(dx.at(0), wanted, 1e-6 * wanted);
    }
  }
}

/// Any cut of the output, each piece from just what it reads, is the whole.
TEST_P(ResamplingKernel, PiecesAreThoseOfTheWhole) {
  for (const Interpolation interpolation : kInterpolations) {
    for (const auto& [input, output] :
         {std::pair(Shape{9, 7}, Shape{18, 14}), std::pair(Shape{17, 25}, Shape{33, 49}),
          std::pair(Shape{10, 6}, Shape{3, 11})}) {
      const Resampling all = whole(interpolation, input, output);
      const Array x = random_array(context_, field_shape(2, input, 3), DType::kFloat64, 1),
                  dy = random_array(context_, field_shape(2, output, 3), DType::kFloat64, 2);
      const Array y = resample_forward(context_, all, x);
      Array dx = filled(context_, x.shape(), DType::kFloat64, 0.0);
      const std::int64_t cut = output[0] / 3;
      for (const auto& [begin, end] :
           {std::pair<std::int64_t, std::int64_t>(0, cut), {cut, cut}, {cut, output[0]}}) {
        Resampling piece = all;
        piece.target = {{begin, 1}, {end - begin, output[1] - 1}};
        const ReadRange rows = resampling_reads(all, 0, begin, end),
                        columns = resampling_reads(all, 1, 1, output[1]);
        piece.source_begin = {rows.begin, columns.begin};
        piece.source_extent = {rows.end - rows.begin, columns.end - columns.begin};
        const Box from = {{0, rows.begin, columns.begin, 0},
                          {2, piece.source_extent[0], piece.source_extent[1], 3}};
        const Box to = {{0, begin, 1, 0}, {2, end - begin, output[1] - 1, 3}};
        EXPECT_EQ(values_of(resample_forward(context_, piece, extract_box(context_, x, from))),
                  values_of(extract_box(context_, y, to)));
        const Array part = resample_backward(context_, piece, extract_box(context_, dy, to));
        add_box(context_, part, Box::whole(part.shape()), dx, from);
      }
      Resampling column = all;  // what the pieces left out
      column.target = {{0, 0}, {output[0], 1}};
      const Array rest = resample_backward(context_, column,
                                           extract_box(context_, dy, {{0, 0, 0, 0}, {2, output[0], 1, 3}}));
      accumulate(context_, dx, rest);
      expect_near(values_of(dx), values_of(resample_backward(context_, all, dy)), 1e-13);
    }
  }
}

/// On a circle the last point stands before the first.
TEST_P(ResamplingKernel, ReadsBeyondTheEndWhereNotClamped) {
  Resampling circle = whole(Interpolation::kLinear, {4}, {8});
  circle.clamped[0] = false;
  EXPECT_EQ(resampling_reads(circle, 0, 0, 8).begin, -1);
  EXPECT_EQ(resampling_reads(circle, 0, 0, 8).end, 5);
  circle.source_begin[0] = -1;
  circle.source_extent = {6};
  const Array x = array_of(context_, {1, 6, 1}, DType::kFloat32, {40, 10, 20, 30, 40, 10});
  EXPECT_EQ(values_of(resample_forward(context_, circle, x)),
            (std::vector<double>{17.5, 12.5, 17.5, 22.5, 27.5, 32.5, 37.5, 32.5}));
}

TEST_P(ResamplingKernel, MetaCountsAlike) {
  Context meta = Context::make_meta();
  const Resampling resampling = whole(Interpolation::kLinear, {4, 5}, {8, 10});
  for (Context* context : {&context_, &meta}) {
    const Array x = testing::random_array(*context, {2, 4, 5, 3}, DType::kBfloat16, 1);
    const Array y = resample_forward(*context, resampling, x);
    EXPECT_EQ(y.shape(), (Shape{2, 8, 10, 3}));
    EXPECT_EQ(resample_backward(*context, resampling, y).shape(), x.shape());
  }
  EXPECT_GT(meta.tally().flops, 0);
  EXPECT_EQ(meta.tally().flops, context_.tally().flops);
  EXPECT_EQ(meta.tally().bytes, context_.tally().bytes);
}

TEST_P(ResamplingKernel, ErrorsSayWhatIsWrong) {
  const Array x = random_array(context_, {1, 3, 5, 2}, DType::kFloat32, 1);
  Resampling resampling = whole(Interpolation::kLinear, {4, 5}, {8, 10});
  EXPECT_THROW(resample_forward(context_, resampling, x), ShapeError);  // x is not the source
  resampling.source_extent = {3, 5};
  EXPECT_THROW(resample_forward(context_, resampling, x), ShapeError);  // the target reads row 3
  resampling.target = {{0, 0}, {4, 10}};
  EXPECT_NO_THROW(resample_forward(context_, resampling, x));
  resampling.target = {{0, 0}, {4, 11}};
  EXPECT_THROW(resample_forward(context_, resampling, x), ShapeError);  // beyond the output
}

INSTANTIATE_TEST_SUITE_P(Backends, ResamplingKernel, testing::kernel_backends(), testing::backend_name);

}  // namespace resampling_test
}  // namespace jigsaw
