#include "kernels/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace loss_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

class Loss : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
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
    for (const ErrorMeasure& measure :
         {ErrorMeasure(ErrorNorm::kSquared), ErrorMeasure(ErrorNorm::kAbsolute),
          ErrorMeasure(ErrorNorm::kHuber, 0.3), ErrorMeasure(ErrorNorm::kLogCosh)}) {
      const double delta = measure.delta;
      std::vector<double> numerator(fs.size(), 0.0), denominator(fs.size(), 0.0), gradient(ps.size(), 0.0);
      for (std::size_t i = 0; i < ps.size(); ++i) {
        if (std::isnan(targets[i])) continue;
        const std::size_t c = static_cast<std::size_t>(channels), n = static_cast<std::size_t>(points);
        const std::size_t point = i / c % n, at = i / c / n * c + i % c;
        const double error = ps[i] - targets[i];
        const bool near = std::abs(error) < delta;
        const double sign = error > 0 ? 1 : -1;
        const double huber = near ? error * error / 2 : delta * std::abs(error) - delta * delta / 2;
        numerator[at] += ws[point] * (measure.norm == ErrorNorm::kSquared    ? error * error
                                      : measure.norm == ErrorNorm::kAbsolute ? std::abs(error)
                                      : measure.norm == ErrorNorm::kLogCosh  ? std::log(std::cosh(error))
                                                                             : huber);
        denominator[at] += ws[point];
        gradient[i] = fs[at] * ws[point] *
                      (measure.norm == ErrorNorm::kSquared    ? 2 * error
                       : measure.norm == ErrorNorm::kAbsolute ? sign
                       : measure.norm == ErrorNorm::kLogCosh  ? std::tanh(error)
                       : near                                 ? error
                                                              : delta * sign);
      }
      const LossSums sums = loss_sums(context_, measure, prediction, target, weight);
      EXPECT_EQ(sums.numerator.dtype(), DType::kFloat64);
      EXPECT_EQ(sums.numerator.shape(), sums_shape);
      expect_near(values_of(sums.numerator), numerator, tolerance(DType::kFloat64, points + 1, 8));
      expect_near(values_of(sums.denominator), denominator, tolerance(DType::kFloat64, points + 1, 2));
      const Array found = loss_gradient(context_, measure, prediction, target, weight, factor);
      EXPECT_EQ(found.dtype(), test.prediction);
      expect_near(values_of(found), gradient, tolerance(test.prediction, 2, 8));
    }
  }
}

struct MembersCase {
  std::int64_t members;
  Case each;
};
const MembersCase kMembersCases[] = {{2, {{2, 3, 5, 4}, DType::kFloat32, DType::kFloat32}},
                                     {3, {{2, 3, 5, 4}, DType::kFloat64, DType::kFloat64}},
                                     {5, {{2, 3, 5, 3}, DType::kBfloat16, DType::kFloat32}},
                                     {4, {{1, 97, 40}, DType::kFloat32, DType::kFloat64}},
                                     {7, {{3, 700, 1}, DType::kFloat32, DType::kFloat32}},
                                     {2, {{2, 0, 3}, DType::kFloat32, DType::kFloat32}},
                                     {3, {{0, 4, 3}, DType::kFloat32, DType::kFloat32}}};

/// By the score's definition with all ordered pairs, (1/M) Σ |x_j − y| − (1 − ε)/(2M(M − 1)) Σ |x_j − x_k|
/// with ε = (1 − α)/M; the gradient from it. Of other measures members have their mean.
TEST_P(Loss, OfMembersOfAnEnsemble) {
  for (const auto& [members, test] : kMembersCases) {
    SCOPED_TRACE(members);
    const std::int64_t points = test.shape.count(1, test.shape.rank() - 1), channels = test.shape.back();
    Shape all = test.shape;
    all[0] *= members;
    const Array prediction = random_array(context_, all, test.prediction, 1);
    std::vector<double> targets = values_of(random_array(context_, test.shape, test.target, 2));
    for (std::size_t i = 0; i < targets.size(); i += 7) targets[i] = std::nan("");
    const Array target = array_of(context_, test.shape, test.target, targets);
    const Array weight = random_array(context_, {points}, DType::kFloat64, 3, 0, 2);
    const Array factor = random_array(context_, {test.shape[0], channels}, DType::kFloat64, 4);
    const std::vector<double> ps = values_of(prediction), ws = values_of(weight), fs = values_of(factor);
    const auto m = static_cast<double>(members);
    for (const ErrorMeasure& measure : {ErrorMeasure(ErrorNorm::kSquared), ErrorMeasure::crps(1),
                                        ErrorMeasure::crps(0.95), ErrorMeasure::crps(0)}) {
      const bool crps = measure.norm == ErrorNorm::kCrps;
      const double pairs = crps ? (1 - (1 - measure.alpha) / m) / (2 * m * (m - 1)) : 0;
      std::vector<double> numerator(fs.size(), 0.0), denominator(fs.size(), 0.0), gradient(ps.size(), 0.0);
      for (std::int64_t b = 0; b < test.shape[0]; ++b) {
        for (std::int64_t p = 0; p < points; ++p) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const double y = targets[static_cast<std::size_t>((b * points + p) * channels + c)];
            if (std::isnan(y)) continue;
            const auto at = [&](std::int64_t j) {
              return static_cast<std::size_t>(((b * members + j) * points + p) * channels + c);
            };
            const double w = ws[static_cast<std::size_t>(p)];
            const auto sum = static_cast<std::size_t>(b * channels + c);
            for (std::int64_t j = 0; j < members; ++j) {
              const double x = ps[at(j)], e = x - y;
              numerator[sum] += w / m * (crps ? std::abs(e) : e * e);
              double slope = (crps ? (e > 0 ? 1.0 : -1.0) : 2 * e) / m;
              for (std::int64_t k = 0; k < members; ++k) {
                const double apart = x - ps[at(k)];
                numerator[sum] -= w * pairs * std::abs(apart);
                // Each pair stands in the sum twice.
                if (apart != 0) slope -= 2 * pairs * (apart > 0 ? 1 : -1);
              }
              gradient[at(j)] = fs[sum] * w * slope;
            }
            denominator[sum] += w;
          }
        }
      }
      const LossSums sums = loss_sums(context_, measure, prediction, target, weight);
      EXPECT_EQ(sums.numerator.shape(), (Shape{test.shape[0], channels}));
      const std::int64_t terms = points * members * (members + 1);
      expect_near(values_of(sums.numerator), numerator, tolerance(DType::kFloat64, terms + 1, 8));
      expect_near(values_of(sums.denominator), denominator, tolerance(DType::kFloat64, points + 1, 2));
      const Array found = loss_gradient(context_, measure, prediction, target, weight, factor);
      EXPECT_EQ(found.shape(), all);
      EXPECT_EQ(found.dtype(), test.prediction);
      expect_near(values_of(found), gradient, tolerance(test.prediction, 2, 8));
    }
  }
}

struct ClassCase {
  Shape logits;
  DType type, label_type;
  double scale;  ///< of the logits
};
const ClassCase kClassCases[] = {{{2, 3, 5, 4}, DType::kFloat32, DType::kFloat32, 3},
                                 {{2, 3, 5, 4}, DType::kFloat64, DType::kFloat64, 3},
                                 {{2, 3, 5, 4}, DType::kBfloat16, DType::kFloat32, 2},
                                 {{2, 67, 71, 3}, DType::kFloat32, DType::kFloat64, 1},
                                 {{1, 5, 2}, DType::kFloat32, DType::kFloat32, 500},
                                 {{3, 129, 1}, DType::kFloat32, DType::kFloat32, 1},
                                 {{2, 0, 3}, DType::kFloat32, DType::kFloat32, 1},
                                 {{0, 4, 3}, DType::kFloat32, DType::kFloat32, 1}};

TEST_P(Loss, ClassSumsAndTheirGradient) {
  for (const ClassCase& test : kClassCases) {
    SCOPED_TRACE(test.logits.to_string());
    Shape label_shape = test.logits;
    const std::int64_t k = test.logits.back(), b = test.logits[0];
    label_shape[label_shape.rank() - 1] = 1;
    const std::int64_t points = label_shape.count(1, label_shape.rank());
    const Array logits = random_array(context_, test.logits, test.type, 1, -test.scale, test.scale);
    std::vector<double> q = values_of(random_array(context_, label_shape, DType::kFloat64, 2, 0, double(k)));
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = i % 5 == 3 ? std::nan("") : std::floor(q[i]);
    const Array labels = array_of(context_, label_shape, test.label_type, q);
    const Array weight = random_array(context_, {points}, DType::kFloat64, 3, 0, 2);
    const Array factors = random_array(context_, {3, b, k}, DType::kFloat64, 4);
    const std::vector<double> xs = values_of(logits), ws = values_of(weight), fs = values_of(factors);
    const auto at = [&](std::int64_t kind, std::int64_t sample, std::int64_t c) {
      return static_cast<std::size_t>((kind * b + sample) * k + c);
    };
    std::vector<double> sums(static_cast<std::size_t>(6 * b * k), 0.0), gradient(xs.size(), 0.0);
    for (std::size_t i = 0; i < q.size(); ++i) {
      if (std::isnan(q[i])) continue;
      const auto label = static_cast<std::int64_t>(q[i]);
      const std::int64_t sample = static_cast<std::int64_t>(i) / points;
      const double w = ws[i % static_cast<std::size_t>(points)];
      const double* const x = xs.data() + i * static_cast<std::size_t>(k);
      // Relative to the label's logit, as an independent way to the same probabilities.
      std::vector<double> p(static_cast<std::size_t>(k));
      for (std::int64_t c = 0; c < k; ++c) {
        double sum = 0;
        for (std::int64_t j = 0; j < k; ++j) sum += std::exp(x[j] - x[c]);
        p[static_cast<std::size_t>(c)] = 1 / sum;
      }
      const double own = p[static_cast<std::size_t>(label)];
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < k; ++c) best = x[c] > x[best] ? c : best;
      double odds = 0;
      for (std::int64_t j = 0; j < k; ++j) odds += std::exp(std::min(700.0, x[j] - x[label]));
      sums[at(ClassSums::kSurprise, sample, label)] +=
          w * (own > 1e-300 ? std::log(odds) : x[best] - x[label]);
      sums[at(ClassSums::kLabelled, sample, label)] += w;
      sums[at(ClassSums::kIntersection, sample, label)] += w * own;
      for (std::int64_t c = 0; c < k; ++c) {
        sums[at(ClassSums::kPredicted, sample, c)] += w * p[static_cast<std::size_t>(c)];
      }
      sums[at(ClassSums::kHits, sample, label)] += best == label ? w : 0;
      sums[at(ClassSums::kChosen, sample, best)] += w;
      for (std::int64_t c = 0; c < k; ++c) {
        // dp_j/dx_c = p_j (δ_jc − p_c)
        const double pc = p[static_cast<std::size_t>(c)];
        double slope = fs[at(0, sample, label)] * (pc - (c == label ? 1 : 0));
        for (std::int64_t j = 0; j < k; ++j) {
          const double along = fs[at(2, sample, j)] + (j == label ? fs[at(1, sample, j)] : 0);
          slope += along * p[static_cast<std::size_t>(j)] * ((j == c ? 1 : 0) - pc);
        }
        gradient[i * static_cast<std::size_t>(k) + static_cast<std::size_t>(c)] = w * slope;
      }
    }
    const double loose = test.type == DType::kFloat64 ? 1e-12 : 1e-6;
    const ClassSums found = class_sums(context_, logits, labels, weight);
    expect_near(values_of(found.all), sums, loose * 2 * static_cast<double>(points + 1) * test.scale);
    const Array slopes = class_gradient(context_, logits, labels, weight, factors);
    EXPECT_EQ(slopes.dtype(), test.type);
    expect_near(values_of(slopes), gradient, test.type == DType::kBfloat16 ? 0.05 : 10 * loose);
  }
}

/// Of two samples of three channels, the second channel nowhere valid in the first; of more samples than a
/// block has threads, every third of them empty; of none.
TEST_P(Loss, MeanOfSamplesAndItsFactors) {
  for (const Shape& shape : {Shape{2, 3}, Shape{600, 2}, Shape{0, 3}}) {
    SCOPED_TRACE(shape.to_string());
    const std::int64_t samples = shape[0], channels = shape[1];
    const std::vector<double> numerator = values_of(random_array(context_, shape, DType::kFloat64, 1)),
                              weight{0.5, 3.0, 1.25};
    std::vector<double> denominator = values_of(random_array(context_, shape, DType::kFloat64, 2, 0.5, 2));
    for (std::size_t i = 0; i < denominator.size(); ++i) {
      const auto sample = static_cast<std::int64_t>(i) / channels;
      if (samples > 2 ? sample % 3 == 1 : i == 1) denominator[i] = 0;
    }
    double sum = 0, of_all = 0, empty = 0;
    std::vector<double> factors(denominator.size(), 0.0);
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      bool any = false;
      for (std::int64_t c = 0; c < channels; ++c) {
        const auto i = static_cast<std::size_t>(sample * channels + c);
        const double each = weight[static_cast<std::size_t>(c)];
        if (denominator[i] == 0) continue;
        any = true;
        sum += each * numerator[i] / denominator[i];
        of_all += each;
        factors[i] = 2.5 * each / denominator[i];
      }
      empty += any ? 0 : 1;
    }
    const LossSums sums{array_of(context_, shape, DType::kFloat64, numerator),
                        array_of(context_, shape, DType::kFloat64, denominator)};
    const Array weights = array_of(context_, {channels}, DType::kFloat64,
                                   {weight.begin(), weight.begin() + static_cast<std::ptrdiff_t>(channels)});
    const std::vector<double> mean = values_of(loss_mean(context_, sums, weights));
    ASSERT_EQ(std::ssize(mean), MeanParts::kKinds);
    EXPECT_NEAR(mean[MeanParts::kSum], sum, 1e-12 * (1 + std::abs(sum)));
    EXPECT_NEAR(mean[MeanParts::kWeight], of_all, 1e-12 * of_all);
    EXPECT_EQ(mean[MeanParts::kEmpty], empty);
    const Array found = loss_factors(context_, sums.denominator, weights, 2.5);
    EXPECT_EQ(found.shape(), shape);
    expect_near(values_of(found), factors, 1e-14);
  }
}

/// Three samples of two classes, the second without a label: the mean by hand, its factors by central
/// differences.
TEST_P(Loss, MeanOfClassesAndItsFactors) {
  const std::vector<double> weight{0.5, 2.0};
  const Shape shape{ClassSums::kKinds, 3, 2};
  std::vector<double> sums = values_of(random_array(context_, shape, DType::kFloat64, 1, 0.5, 2));
  const auto at = [](int kind, std::size_t sample, std::size_t k) {
    return (static_cast<std::size_t>(kind) * 3 + sample) * 2 + k;
  };
  sums[at(ClassSums::kLabelled, 1, 0)] = sums[at(ClassSums::kLabelled, 1, 1)] = 0;
  const std::vector<ClassTerm> terms = {{ClassTerm::Kind::kCrossEntropy, 0.7},
                                        {ClassTerm::Kind::kDice, 1.5, 0.25},
                                        {ClassTerm::Kind::kDice, 0.9, 0.5, false}};
  const Array weights = array_of(context_, {2}, DType::kFloat64, weight);
  const auto mean_of = [&](const std::vector<double>& values) {
    return values_of(
        class_mean(context_, {array_of(context_, shape, DType::kFloat64, values)}, terms, weights));
  };
  double sum = 0;
  for (const std::size_t b : {0U, 2U}) {
    double surprise = 0, labelled = 0, dice = 0;
    for (const std::size_t k : {0U, 1U}) {
      surprise += weight[k] * sums[at(ClassSums::kSurprise, b, k)];
      labelled += weight[k] * sums[at(ClassSums::kLabelled, b, k)];
      const double both = sums[at(ClassSums::kPredicted, b, k)] + sums[at(ClassSums::kLabelled, b, k)];
      dice += weight[k] * (both - 2 * sums[at(ClassSums::kIntersection, b, k)]) / (both + 0.25) / 2.5;
    }
    // Without class 0 the mean is that of class 1 alone.
    const double overlap = 2 * sums[at(ClassSums::kIntersection, b, 1)] + 0.5,
                 both = sums[at(ClassSums::kPredicted, b, 1)] + sums[at(ClassSums::kLabelled, b, 1)] + 0.5;
    sum += 0.7 * surprise / labelled + 1.5 * dice + 0.9 * (1 - overlap / both);
  }
  const std::vector<double> mean = mean_of(sums);
  ASSERT_EQ(std::ssize(mean), MeanParts::kKinds);
  EXPECT_NEAR(mean[MeanParts::kSum], sum, 1e-13);
  EXPECT_EQ(mean[MeanParts::kWeight], 2);
  EXPECT_EQ(mean[MeanParts::kEmpty], 1);

  const std::vector<double> found = values_of(
      class_factors(context_, {array_of(context_, shape, DType::kFloat64, sums)}, terms, weights, 3.0));
  std::vector<double> slopes;
  for (const int kind : {ClassSums::kSurprise, ClassSums::kIntersection, ClassSums::kPredicted}) {
    for (std::size_t i = 0; i < 6; ++i) {
      std::vector<double> near = sums;
      double& moved = near[static_cast<std::size_t>(kind) * 6 + i];
      const double step = 1e-4;
      moved += step;
      const double above = mean_of(near)[MeanParts::kSum];
      moved -= 2 * step;
      slopes.push_back(3.0 * (above - mean_of(near)[MeanParts::kSum]) / (2 * step));
    }
  }
  expect_near(found, slopes, 1e-7);
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
  EXPECT_EQ(loss_sums(meta, ErrorMeasure::crps(1), Array(meta, {6, 3, 4}, DType::kFloat32), x, weight)
                .numerator.shape(),
            (Shape{2, 4}));
  EXPECT_THROW(loss_sums(meta, ErrorMeasure::crps(1), Array(meta, {5, 3, 4}, DType::kFloat32), x, weight),
               ShapeError);
  const Array sums(meta, {2, 3}, DType::kFloat64),
      of_classes(meta, {ClassSums::kKinds, 2, 3}, DType::kFloat64);
  const ClassTerm term;
  EXPECT_EQ(loss_mean(meta, {sums, sums}, weight).shape(), (Shape{MeanParts::kKinds}));
  EXPECT_EQ(class_factors(meta, {of_classes}, std::span(&term, 1), weight, 1.0).shape(), (Shape{3, 2, 3}));
  EXPECT_THROW(loss_mean(meta, {sums, weight}, weight), ShapeError);
  EXPECT_THROW(loss_factors(meta, weight, weight, 1.0), ShapeError);
  EXPECT_THROW(class_mean(meta, {sums}, std::span(&term, 1), weight), ShapeError);
  EXPECT_THROW(class_mean(meta, {of_classes}, std::span(&term, 1), Array(meta, {4}, DType::kFloat64)),
               ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Loss, testing::kernel_backends(), testing::backend_name);

}  // namespace loss_test
}  // namespace jigsaw
