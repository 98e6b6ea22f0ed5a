#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "array/transfer.h"
#include "base/error.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace {

/// Σ x².
double sum_of_squares(Context& context, const Array& x) {
  Array sum = filled(context, {1}, DType::kFloat64, 0.0);
  add_sum_of_squares(context, x, sum);
  return download_values(context, sum)[0];
}

using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

class Optimizer : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(Optimizer, AdamwFollowsTorch) {
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    for (const std::int64_t count : {0, 1, 37, 5000}) {
      Array p = random_array(context_, {count}, type, 1), m = filled(context_, {count}, type, 0.0),
            v = filled(context_, {count}, type, 0.0);
      std::vector<double> ps = values_of(p), ms = values_of(m), vs = values_of(v);
      for (int t = 1; t <= 3; ++t) {
        const AdamwStep step{.learning_rate = 0.01,
                             .beta1 = 0.9,
                             .beta2 = 0.95,
                             .weight_decay = 0.1,
                             .step = t,
                             .gradient_scale = 0.5};
        const Array gradient = random_array(context_, {count}, type, 10U + static_cast<unsigned>(t));
        const std::vector<double> gs = values_of(gradient);
        for (std::size_t i = 0; i < ps.size(); ++i) {
          const double g = 0.5 * gs[i];
          ps[i] -= 0.01 * 0.1 * ps[i];
          ms[i] = 0.9 * ms[i] + 0.1 * g;
          vs[i] = 0.95 * vs[i] + 0.05 * g * g;
          const double denominator = std::sqrt(vs[i]) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8;
          ps[i] -= 0.01 / (1 - std::pow(0.9, t)) * ms[i] / denominator;
        }
        adamw(context_, step, p, gradient, m, v);
      }
      expect_near(values_of(p), ps, tolerance(type, 8));
      expect_near(values_of(m), ms, tolerance(type, 8));
      expect_near(values_of(v), vs, tolerance(type, 8));
    }
  }
}

TEST_P(Optimizer, ExponentialAverage) {
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    Array average = random_array(context_, {77}, type, 1);
    const Array parameter = random_array(context_, {77}, type, 2);
    std::vector<double> wanted = values_of(average);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = 0.99 * wanted[i] + 0.01 * values_of(parameter)[i];
    exponential_average(context_, 0.99, average, parameter);
    expect_near(values_of(average), wanted, tolerance(type, 2));
  }
}

TEST_P(Optimizer, SumOfSquaresIsFormedInDouble) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    for (const std::int64_t count : {0, 1, 9, 100'003}) {
      const Array x = random_array(context_, {count}, type, 1);
      double wanted = 0;
      for (const double value : values_of(x)) wanted += value * value;
      EXPECT_NEAR(sum_of_squares(context_, x), wanted, 1e-11 * wanted);
    }
  }
}

TEST_P(Optimizer, SumOfSquaresDoesNotDependOnThreads) {
  Context one = testing::kernel_context(GetParam(), 1);
  const Array x = random_array(context_, {100'003}, DType::kFloat32, 1);
  EXPECT_EQ(sum_of_squares(one, x), sum_of_squares(context_, x));
}

TEST_P(Optimizer, Errors) {
  Array p = random_array(context_, {4}, DType::kFloat32, 1),
        m = random_array(context_, {4}, DType::kFloat32, 1);
  Array v = random_array(context_, {5}, DType::kFloat32, 1);
  EXPECT_THROW(adamw(context_, {}, p, m, m, v), ShapeError);
  EXPECT_THROW(adamw(context_, {.step = 0}, p, m, m, m), Error);
  EXPECT_THROW(exponential_average(context_, 0.9, p, v), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Optimizer, testing::kernel_backends(), testing::backend_name);

}  // namespace
}  // namespace jigsaw
