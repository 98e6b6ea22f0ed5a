#include "kernels/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

class Loss : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = Context::make_host(GetParam(), 2);
};

struct Case {
  Shape shape;
  DType prediction, target;
};
const Case kCases[] = {
    {{2, 3, 5, 4}, DType::kFloat32, DType::kFloat32},  {{2, 3, 5, 4}, DType::kFloat64, DType::kFloat64},
    {{2, 3, 5, 4}, DType::kBfloat16, DType::kFloat32}, {{1, 97, 40}, DType::kFloat32, DType::kFloat64},
    {{3, 700, 1}, DType::kFloat32, DType::kFloat32},   {{3, 4}, DType::kFloat32, DType::kFloat32},
    {{2, 0, 3}, DType::kFloat32, DType::kFloat32},     {{0, 4, 3}, DType::kFloat32, DType::kFloat32},
    {{2, 4, 0}, DType::kFloat32, DType::kFloat32}};

TEST_P(Loss, SumsAndGradient) {
  for (const Case& test : kCases) {
    const std::int64_t points = test.shape.count(1, test.shape.rank() - 1), channels = test.shape.back();
    const Shape sums_shape = {test.shape[0], channels};
    const Array prediction = random_array(context_, test.shape, test.prediction, 1);
    std::vector<double> targets = values_of(random_array(context_, test.shape, test.target, 2));
    for (std::size_t i = 0; i < targets.size(); i += 7) targets[i] = std::nan("");
    const Array target = array_of(context_, test.shape, test.target, targets);
    const Array weight = random_array(context_, {points}, DType::kFloat64, 3, 0, 2);
    const Array factor = random_array(context_, sums_shape, DType::kFloat64, 4);
    const std::vector<double> ps = values_of(prediction), ws = values_of(weight), fs = values_of(factor);
    for (const ErrorNorm norm : {ErrorNorm::kSquared, ErrorNorm::kAbsolute}) {
      std::vector<double> numerator(fs.size(), 0.0), denominator(fs.size(), 0.0), gradient(ps.size(), 0.0);
      for (std::size_t i = 0; i < ps.size(); ++i) {
        if (std::isnan(targets[i])) continue;
        const std::size_t c = static_cast<std::size_t>(channels), n = static_cast<std::size_t>(points);
        const std::size_t point = i / c % n, at = i / c / n * c + i % c;
        const double error = ps[i] - targets[i];
        numerator[at] += ws[point] * (norm == ErrorNorm::kSquared ? error * error : std::abs(error));
        denominator[at] += ws[point];
        gradient[i] = fs[at] * ws[point] * (norm == ErrorNorm::kSquared ? 2 * error : error > 0 ? 1 : -1);
      }
      const LossSums sums = loss_sums(context_, norm, prediction, target, weight);
      EXPECT_EQ(sums.numerator.dtype(), DType::kFloat64);
      EXPECT_EQ(sums.numerator.shape(), sums_shape);
      expect_near(values_of(sums.numerator), numerator, tolerance(DType::kFloat64, points + 1, 8));
      expect_near(values_of(sums.denominator), denominator, tolerance(DType::kFloat64, points + 1, 2));
      const Array found = loss_gradient(context_, norm, prediction, target, weight, factor);
      EXPECT_EQ(found.dtype(), test.prediction);
      expect_near(values_of(found), gradient, tolerance(test.prediction, 2, 8));
    }
  }
}

TEST_P(Loss, NothingValidGivesZero) {
  const Array prediction = random_array(context_, {1, 5, 2}, DType::kFloat32, 1);
  const Array target = array_of(context_, {1, 5, 2}, DType::kFloat32, std::vector<double>(10, std::nan("")));
  const Array weight = random_array(context_, {5}, DType::kFloat64, 2, 0, 1);
  const LossSums sums = loss_sums(context_, ErrorNorm::kSquared, prediction, target, weight);
  EXPECT_EQ(values_of(sums.numerator), std::vector<double>(2, 0.0));
  EXPECT_EQ(values_of(sums.denominator), std::vector<double>(2, 0.0));
  const Array gradient =
      loss_gradient(context_, ErrorNorm::kSquared, prediction, target, weight, sums.numerator);
  EXPECT_EQ(values_of(gradient), std::vector<double>(10, 0.0));
}

TEST_P(Loss, RepeatsBitForBit) {
  const Array x = random_array(context_, {1, 5000, 3}, DType::kFloat32, 1),
              y = random_array(context_, {1, 5000, 3}, DType::kFloat32, 2);
  const Array weight = random_array(context_, {5000}, DType::kFloat64, 3, 0, 1);
  const std::vector<double> first =
      values_of(loss_sums(context_, ErrorNorm::kSquared, x, y, weight).numerator);
  EXPECT_EQ(values_of(loss_sums(context_, ErrorNorm::kSquared, x, y, weight).numerator), first);
}

TEST_P(Loss, MetaAndErrors) {
  Context meta = Context::make_meta();
  const Array x(meta, {2, 3, 4}, DType::kFloat32), weight(meta, {3}, DType::kFloat64);
  EXPECT_EQ(loss_sums(meta, ErrorNorm::kSquared, x, x, weight).numerator.shape(), (Shape{2, 4}));
  EXPECT_GT(meta.tally().flops, 0);
  EXPECT_THROW(loss_sums(meta, ErrorNorm::kSquared, x, x, Array(meta, {4}, DType::kFloat64)), ShapeError);
  EXPECT_THROW(loss_sums(meta, ErrorNorm::kSquared, x, Array(meta, {2, 3, 5}, DType::kFloat32), weight),
               ShapeError);
  EXPECT_THROW(loss_gradient(meta, ErrorNorm::kSquared, x, x, weight, weight), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Loss, testing::host_backends(), testing::backend_name);

}  // namespace
}  // namespace jigsaw
