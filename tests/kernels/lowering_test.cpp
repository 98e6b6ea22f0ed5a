#include "kernels/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "kernels/copy.h"
#include "support/arrays.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace lowering_test {

using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

/// The products of a plan as plain loops over its strides.
void run_product(const MatrixProduct& p, const double* a, const double* b, double* c, bool add) {
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t m = 0; m < p.m; ++m) {
      for (std::int64_t n = 0; n < p.n; ++n) {
        double& sum = c[batch * p.c.batch + m * p.c.row + n * p.c.column];
        if (!add) sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          sum += a[batch * p.a.batch + m * p.a.row + k * p.a.column] *
                 b[batch * p.b.batch + k * p.b.row + n * p.b.column];
        }
      }
    }
  }
}

bool is_matrix(const MatrixProduct::Strides& strides, std::int64_t rows, std::int64_t columns) {
  return (strides.column == 1 && strides.row >= columns) || (strides.row == 1 && strides.column >= rows);
}

class LoweringTest : public ::testing::Test {
 protected:
  /// Runs the plan of a contraction and compares; returns the plan.
  ContractionPlan check(const ContractionSpec& spec, const Shape& a_shape, const Shape& b_shape) {
    check(spec, a_shape, b_shape, kGpuRates);
    return check(spec, a_shape, b_shape, kProcessorRates);
  }
  ContractionPlan check(const ContractionSpec& spec, const Shape& a_shape, const Shape& b_shape,
                        const ContractionRates& rates) {
    SCOPED_TRACE(spec.to_string());
    const Array a = random_array(context_, a_shape, DType::kFloat64, 1);
    const Array b = random_array(context_, b_shape, DType::kFloat64, 2);
    ContractionPlan plan = plan_contraction(spec, a_shape, b_shape, rates);
    const Array moved_a = plan.order_a.empty() ? a : permute(context_, a, plan.order_a);
    const Array moved_b = plan.order_b.empty() ? b : permute(context_, b, plan.order_b);
    Array c(context_, plan.permuted_c, DType::kFloat64);
    std::ranges::fill(HostView<double>(c), 1e9);
    const Lowering& lowering = plan.lowering;
    const MatrixProduct& p = lowering.product;
    EXPECT_TRUE(is_matrix(p.a, p.m, p.k));
    EXPECT_TRUE(is_matrix(p.b, p.k, p.n));
    EXPECT_TRUE(p.c.column == 1 && p.c.row >= (p.m > 1 ? p.n : 1));
    const double* const first = HostView<double>(lowering.swapped ? moved_b : moved_a).data();
    const double* const second = HostView<double>(lowering.swapped ? moved_a : moved_b).data();
    for_each_product(lowering.loops, false,
                     [&](std::int64_t at_a, std::int64_t at_b, std::int64_t at_c, bool add) {
                       run_product(p, first + at_a, second + at_b, HostView<double>(c).data() + at_c, add);
                     });
    const Array result = plan.order_c.empty() ? c : permute(context_, c, plan.order_c);
    const Array wanted = contract(context_, spec, a, b, DType::kFloat64);
    EXPECT_EQ(result.shape(), wanted.shape());
    expect_near(values_of(result), values_of(wanted), tolerance(DType::kFloat64, a.count() + 1));
    return plan;
  }

  static bool permutes(const ContractionPlan& plan) {
    return !plan.order_a.empty() || !plan.order_b.empty() || !plan.order_c.empty();
  }

  Context context_ = Context::make_host(Backend::kReference, 1);
};

TEST_F(LoweringTest, LinearIsOneProduct) {
  for (const char* text : {"bhwk,nk->bhwn", "bhwk,kn->bhwn"}) {
    const auto spec = ContractionSpec::parse(text);
    const ContractionPlan plan = check(spec, {2, 3, 4, 5}, spec.b == "nk" ? Shape{6, 5} : Shape{5, 6});
    const MatrixProduct& p = plan.lowering.product;
    EXPECT_FALSE(permutes(plan));
    EXPECT_TRUE(plan.lowering.loops.empty());
    EXPECT_EQ(std::vector<std::int64_t>({p.batch, p.m, p.n, p.k}), std::vector<std::int64_t>({1, 24, 6, 5}));
  }
  const ContractionPlan weight_gradient =
      check(ContractionSpec::parse("bhwn,bhwk->nk"), {2, 3, 4, 6}, {2, 3, 4, 5});
  EXPECT_FALSE(permutes(weight_gradient));
  EXPECT_EQ(weight_gradient.lowering.product.k, 24);
}

TEST_F(LoweringTest, TokenMixingIsABatchOfProducts) {
  const ContractionPlan forward = check(ContractionSpec::parse("bhwc,thw->btc"), {3, 4, 5, 20}, {30, 4, 5});
  EXPECT_FALSE(permutes(forward));
  EXPECT_TRUE(forward.lowering.swapped);
  EXPECT_EQ(forward.lowering.product.batch, 3);
  EXPECT_EQ(forward.lowering.product.a.batch, 0);
  EXPECT_EQ(forward.lowering.product.k, 20);
  const ContractionPlan gradient = check(ContractionSpec::parse("btc,bhwc->thw"), {3, 30, 20}, {3, 4, 5, 20});
  EXPECT_FALSE(permutes(gradient));
  EXPECT_EQ(gradient.lowering.loops.size(), 1U);
  EXPECT_TRUE(gradient.lowering.sums());
}

TEST_F(LoweringTest, AttentionNeedsNoPermutation) {
  for (const char* text : {"bthd,bshd->bhts", "bhts,bshd->bthd", "bhts,bthd->bshd"}) {
    const auto spec = ContractionSpec::parse(text);
    const Shape scores = {2, 3, 40, 50}, queries = {2, 40, 3, 16}, keys = {2, 50, 3, 16};
    const ContractionPlan plan =
        check(spec, spec.a == "bhts" ? scores : queries, spec.b == "bshd" ? keys : queries);
    EXPECT_FALSE(permutes(plan)) << text;
    EXPECT_EQ(plan.lowering.product.batch, 3) << text;
  }
}

TEST_F(LoweringTest, RandomLetters) {
  std::mt19937 generator(11);
  const auto draw = [&](int count) { return static_cast<int>(generator() % static_cast<unsigned>(count)); };
  for (int round = 0; round < 2000; ++round) {
    ContractionSpec spec;
    std::map<char, std::int64_t> extents;
    for (const char letter : {'p', 'q', 'r', 's', 't', 'u'}) {
      const int role = draw(5);
      if (role == 4) continue;
      if (role != 1) spec.a.insert(spec.a.begin() + draw(static_cast<int>(spec.a.size()) + 1), letter);
      if (role != 0) spec.b.insert(spec.b.begin() + draw(static_cast<int>(spec.b.size()) + 1), letter);
      if (role != 3) spec.c.insert(spec.c.begin() + draw(static_cast<int>(spec.c.size()) + 1), letter);
      extents[letter] = 1 + draw(5);
    }
    const auto shape = [&](const std::string& letters) {
      Shape result;
      for (const char letter : letters) result.append(extents.at(letter));
      return result;
    };
    check(spec, shape(spec.a), shape(spec.b));
    if (HasFailure()) return;
  }
}

}  // namespace lowering_test
}  // namespace jigsaw
