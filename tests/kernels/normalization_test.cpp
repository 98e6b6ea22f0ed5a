#include "kernels/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"
#include "kernels/row_statistics.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace normalization_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};
constexpr double kEps = 1e-5;

/// LayerNorm and its gradients by their definition, in float64; gamma and beta as given.
struct Expected {
  std::vector<double> y, mean, rstd, dx, dgamma, dbeta;

  Expected(const std::vector<double>& x, const std::vector<double>& gamma, const std::vector<double>& beta,
           const std::vector<double>& dy)
      : y(x), dx(x), dgamma(gamma.size(), 0.0), dbeta(gamma.size(), 0.0) {
    const std::size_t c = gamma.size();
    for (std::size_t first = 0; first + c <= x.size() && c > 0; first += c) {
      double sum = 0, squares = 0, g_sum = 0, gx_sum = 0;
      for (std::size_t i = 0; i < c; ++i) sum += x[first + i];
      mean.push_back(sum / static_cast<double>(c));
      for (std::size_t i = 0; i < c; ++i)
        squares += (x[first + i] - mean.back()) * (x[first + i] - mean.back());
      rstd.push_back(1 / std::sqrt(squares / static_cast<double>(c) + kEps));
      for (std::size_t i = 0; i < c; ++i) {
        const double normalised = (x[first + i] - mean.back()) * rstd.back();
        y[first + i] = normalised * gamma[i] + beta[i];
        dgamma[i] += dy[first + i] * normalised;
        dbeta[i] += dy[first + i];
        g_sum += dy[first + i] * gamma[i];
        gx_sum += dy[first + i] * gamma[i] * normalised;
      }
      for (std::size_t i = 0; i < c; ++i) {
        const double normalised = (x[first + i] - mean.back()) * rstd.back();
        dx[first + i] =
            rstd.back() * (dy[first + i] * gamma[i] - (g_sum + normalised * gx_sum) / static_cast<double>(c));
      }
    }
  }
};

class LayerNorm : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(LayerNorm, ForwardAndBackward) {
  for (const DType type : kTypes) {
    // 2,051 and 8,200: more than a GPU's threads keep of a row, in single elements and in packets, of which
    // they keep one to four of the others; rows of 384 and 520 are several for each thread and block
    for (const Shape& shape :
         {Shape{2, 3, 5}, Shape{7, 96}, Shape{257, 384}, Shape{1, 1}, Shape{70, 1}, Shape{3, 0}, Shape{0, 8},
          Shape{0, 5}, Shape{300, 8}, Shape{41, 520}, Shape{5, 1031}, Shape{2, 2000}, Shape{2, 2051},
          Shape{3, 4000}, Shape{2, 8000}, Shape{2, 8200}}) {
      SCOPED_TRACE(shape.to_string() + std::string(name(type)));
      const Array x = random_array(context_, shape, type, 1, 0.5, 2.5),
                  dy = random_array(context_, shape, type, 2);
      const Array gamma = random_array(context_, {shape.back()}, type, 3, 0.5, 1.5);
      const Array beta = random_array(context_, {shape.back()}, type, 4);
      const Expected wanted(values_of(x), values_of(gamma), values_of(beta), values_of(dy));
      const std::int64_t c = shape.back(), rows = shape.count(0, shape.rank() - 1);
      NormStatistics statistics;
      const Array y = layer_norm_forward(context_, x, gamma, beta, kEps, statistics);
      expect_near(values_of(y), wanted.y, tolerance(type, 32, 4));
      if (c > 0) {
        const DType sums = statistics.mean.dtype();
        expect_near(values_of(statistics.mean), wanted.mean, tolerance(sums, 16, 2));
        // a row of one element has no variance: 1/√eps
        expect_near(values_of(statistics.reciprocal_deviation), wanted.rstd,
                    tolerance(sums, 32, c == 1 ? 400 : 3));
      }
      const NormGradients gradients = layer_norm_backward(context_, dy, x, gamma, statistics);
      expect_near(values_of(gradients.dx), wanted.dx, tolerance(type, 64, c == 1 ? 400 : 8));
      expect_near(values_of(gradients.dgamma), wanted.dgamma,
                  tolerance(gradients.dgamma.dtype(), 32 + rows, 3));
      expect_near(values_of(gradients.dbeta), wanted.dbeta, tolerance(gradients.dbeta.dtype(), 32 + rows, 1));
      EXPECT_EQ(values_of(layer_norm_apply(context_, x, gamma, beta, statistics)), values_of(y));
    }
  }
}

TEST_P(LayerNorm, WithoutGammaAndBeta) {
  const Shape shape = {6, 33};
  const Array x = random_array(context_, shape, DType::kFloat32, 1),
              dy = random_array(context_, shape, DType::kFloat32, 2);
  const Expected wanted(values_of(x), std::vector<double>(33, 1.0), std::vector<double>(33, 0.0),
                        values_of(dy));
  NormStatistics statistics;
  expect_near(values_of(layer_norm_forward(context_, x, {}, {}, kEps, statistics)), wanted.y,
              tolerance(DType::kFloat32, 32, 4));
  const NormGradients gradients = layer_norm_backward(context_, dy, x, {}, statistics);
  expect_near(values_of(gradients.dx), wanted.dx, tolerance(DType::kFloat32, 64, 8));
  EXPECT_FALSE(gradients.dgamma.defined());
  EXPECT_FALSE(gradients.dbeta.defined());
}

TEST_P(LayerNorm, LargeMeansLoseNoVariance) {
  std::vector<double> values(4 * 512);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1000.0 + (i % 2 == 0 ? 0.5 : -0.5);
  const Array x = array_of(context_, {4, 512}, DType::kFloat32, values);
  NormStatistics statistics;
  const Array y = layer_norm_forward(context_, x, {}, {}, kEps, statistics);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values_of(y)[i], i % 2 == 0 ? 1.0 : -1.0, 1e-4);
  const Moments moments = row_moments(context_, x);
  expect_near(values_of(moments.mean), std::vector<double>(4, 1000.0), 1e-4);
  expect_near(values_of(moments.m2), std::vector<double>(4, 128.0), 1e-2);
}

TEST_P(LayerNorm, PartsOfRowsCombine) {
  const std::int64_t rows = 9;
  for (const auto& [type, c, first] : {std::tuple{DType::kFloat32, 50, 21},
                                       {DType::kFloat64, 50, 21},
                                       {DType::kFloat32, 64, 40},
                                       {DType::kFloat64, 64, 40}}) {
    const Array x = random_array(context_, {rows, c}, type, 1),
                dy = random_array(context_, {rows, c}, type, 2);
    const Array gamma = random_array(context_, {c}, type, 3), beta = random_array(context_, {c}, type, 4);
    NormStatistics statistics;
    const Array y = layer_norm_forward(context_, x, gamma, beta, kEps, statistics);
    const NormGradients whole = layer_norm_backward(context_, dy, x, gamma, statistics);
    const std::vector<double> means = values_of(statistics.mean);
    const Box boxes[] = {{{0, 0}, {rows, first}}, {{0, first}, {rows, c - first}}, {{0, c}, {rows, 0}}};
    std::vector<double> mean(rows, 0.0), m2(rows, 0.0);
    Array row_sums = filled(context_, {rows, 2}, type, 0.0);
    for (const Box& box : boxes) {
      const Moments part = row_moments(context_, extract_box(context_, x, box));
      for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
        const double count = static_cast<double>(box.extent[1]);
        const double distance = values_of(part.mean)[row] - means[row];
        mean[row] += values_of(part.mean)[row] * count / static_cast<double>(c);
        if (count > 0) m2[row] += values_of(part.m2)[row] + count * distance * distance;
      }
      accumulate(
          context_, row_sums,
          layer_norm_row_sums(context_, extract_box(context_, dy, box), extract_box(context_, x, box),
                              extract_box(context_, gamma, {{box.begin[1]}, {box.extent[1]}}), statistics));
    }
    expect_near(mean, means, tolerance(type, 16));
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      ASSERT_NEAR(1 / std::sqrt(m2[row] / static_cast<double>(c) + kEps),
                  values_of(statistics.reciprocal_deviation)[row], tolerance(type, 32, 2));
    }
    for (const Box& box : boxes) {
      const Box columns = {{box.begin[1]}, {box.extent[1]}};
      const Array part_x = extract_box(context_, x, box), part_dy = extract_box(context_, dy, box);
      const Array part_gamma = extract_box(context_, gamma, columns),
                  part_beta = extract_box(context_, beta, columns);
      expect_near(values_of(layer_norm_apply(context_, part_x, part_gamma, part_beta, statistics)),
                  values_of(extract_box(context_, y, box)), tolerance(type, 4, 2));
      const NormGradients part =
          layer_norm_backward_apply(context_, part_dy, part_x, part_gamma, statistics, row_sums, c);
      expect_near(values_of(part.dx), values_of(extract_box(context_, whole.dx, box)),
                  tolerance(type, 64, 4));
      expect_near(values_of(part.dgamma), values_of(extract_box(context_, whole.dgamma, columns)),
                  tolerance(type, 32, 4));
      expect_near(values_of(part.dbeta), values_of(extract_box(context_, whole.dbeta, columns)),
                  tolerance(type, 32, 4));
    }
  }
}

/// RMSNorm, in one pass and from parts of rows, against its definition.
TEST_P(LayerNorm, WithMomentsAboutZero) {
  const std::int64_t rows = 5;
  for (const auto& [type, c] : {std::pair{DType::kFloat32, 37},
                                {DType::kFloat64, 37},
                                {DType::kFloat32, 64},
                                {DType::kFloat64, 64}}) {
    const Array x = random_array(context_, {rows, c}, type, 1, 0, 3),
                dy = random_array(context_, {rows, c}, type, 2), gamma = random_array(context_, {c}, type, 3);
    const std::vector<double> xs = values_of(x), dys = values_of(dy), gammas = values_of(gamma);
    std::vector<double> y = xs, dx = xs, dgamma(gammas.size(), 0.0);
    for (std::size_t first = 0; first < xs.size(); first += gammas.size()) {
      double square = 0, slope = 0;
      for (std::size_t i = 0; i < gammas.size(); ++i)
        square += xs[first + i] * xs[first + i] / static_cast<double>(c);
      const double r = 1 / std::sqrt(square + kEps);
      for (std::size_t i = 0; i < gammas.size(); ++i) slope += dys[first + i] * gammas[i] * xs[first + i] * r;
      for (std::size_t i = 0; i < gammas.size(); ++i) {
        y[first + i] = xs[first + i] * r * gammas[i];
        dgamma[i] += dys[first + i] * xs[first + i] * r;
        dx[first + i] = r * (dys[first + i] * gammas[i] - xs[first + i] * r * slope / static_cast<double>(c));
      }
    }
    const std::int64_t lengths[] = {c};
    const NormStatistics statistics = combine_moments(
        context_, pack_moments(context_, row_moments(context_, x)), lengths, kEps, Centre::kZero);
    expect_near(values_of(layer_norm_apply(context_, x, gamma, {}, statistics)), y, tolerance(type, 32, 4));
    Array sums = layer_norm_row_sums(context_, dy, x, gamma, statistics);
    drop_mean_part(context_, sums);
    NormStatistics own;
    expect_near(values_of(rms_norm_forward(context_, x, gamma, kEps, own)), y, tolerance(type, 32, 4));
    expect_near(values_of(own.mean), std::vector<double>(static_cast<std::size_t>(rows), 0.0), 0.0);
    for (const NormGradients& gradients :
         {layer_norm_backward_apply(context_, dy, x, gamma, statistics, sums, c),
          rms_norm_backward(context_, dy, x, gamma, own)}) {
      expect_near(values_of(gradients.dx), dx, tolerance(type, 64, 4));
      expect_near(values_of(gradients.dgamma), dgamma, tolerance(type, 64, 4));
    }
  }
}

TEST_P(LayerNorm, GradientsOverAMillionRowsLoseNoDigits) {
  // More rows of 3 elements than blocks of a GPU take at a time.
  const std::int64_t rows = (1 << 20) + 5, c = 3;
  const Array x = random_array(context_, {rows, c}, DType::kFloat32, 1);
  const Array dy = filled(context_, {rows, c}, DType::kFloat32, 0.1);
  const Array gamma = filled(context_, {c}, DType::kFloat32, 1);
  NormStatistics statistics;
  const Array normalized = layer_norm_forward(context_, x, gamma, Array(), kEps, statistics);
  const NormGradients gradients = layer_norm_backward(context_, dy, x, gamma, statistics);
  const double each = 0.1F, wanted = each * static_cast<double>(rows);
  for (const double sum : values_of(gradients.dbeta)) EXPECT_NEAR(sum, wanted, 2e-6 * wanted);
  // Of numbers of both signs: small beside the sum of their sizes, which is below `wanted`.
  std::vector<double> dgamma(c, 0.0);
  const std::vector<double> ys = values_of(normalized);
  for (std::size_t i = 0; i < ys.size(); ++i) dgamma[i % c] += each * ys[i];
  expect_near(values_of(gradients.dgamma), dgamma, 1e-6 * wanted);
}

TEST_P(LayerNorm, RepeatsBitForBit) {
  const Array x = random_array(context_, {1000, 65}, DType::kFloat32, 1);
  const Array gamma = random_array(context_, {65}, DType::kFloat32, 2);
  NormStatistics statistics;
  layer_norm_forward(context_, x, gamma, gamma, kEps, statistics);
  const NormGradients first = layer_norm_backward(context_, x, x, gamma, statistics);
  for (int repetition = 0; repetition < 3; ++repetition) {
    const NormGradients again = layer_norm_backward(context_, x, x, gamma, statistics);
    EXPECT_EQ(values_of(again.dgamma), values_of(first.dgamma));
    EXPECT_EQ(values_of(again.dbeta), values_of(first.dbeta));
    EXPECT_EQ(values_of(again.dx), values_of(first.dx));
  }
}

TEST_P(LayerNorm, MetaCountsAlike) {
  Context meta = Context::make_meta();
  for (Context* context : {&context_, &meta}) {
    const Array x = testing::random_array(*context, {4, 6}, DType::kBfloat16, 1),
                gamma = testing::random_array(*context, {6}, DType::kFloat32, 1);
    NormStatistics statistics;
    EXPECT_EQ(layer_norm_forward(*context, x, gamma, gamma, kEps, statistics).shape(), x.shape());
    EXPECT_EQ(layer_norm_backward(*context, x, x, gamma, statistics).dgamma.shape(), (Shape{6}));
    row_moments(*context, x);
  }
  EXPECT_GT(meta.tally().flops, 0);
  EXPECT_EQ(meta.tally().flops, context_.tally().flops);
  EXPECT_EQ(meta.tally().bytes, context_.tally().bytes);
}

TEST_P(LayerNorm, ErrorsSayWhatIsWrong) {
  const Array x = random_array(context_, {4, 6}, DType::kFloat32, 1),
              short_row = random_array(context_, {5}, DType::kFloat32, 1);
  NormStatistics statistics;
  EXPECT_THROW(layer_norm_forward(context_, x, short_row, short_row, kEps, statistics), ShapeError);
  EXPECT_THROW(layer_norm_forward(context_, x, short_row, {}, kEps, statistics), Error);
  EXPECT_THROW(row_moments(context_, random_array(context_, {}, DType::kFloat32, 1)), ShapeError);
  layer_norm_forward(context_, x, {}, {}, kEps, statistics);
  EXPECT_THROW(layer_norm_backward(context_, short_row, x, {}, statistics), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, LayerNorm, testing::kernel_backends(), testing::backend_name);

}  // namespace normalization_test
}  // namespace jigsaw
