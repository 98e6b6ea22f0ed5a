#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "array/transfer.h"
#include "base/error.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace optimizer_test {

using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

class Optimizer : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

/// UpdateNumbers of an update that applies.
Array numbers_of(const Context& context, double updates = 1, double rate_factor = 1,
                 double gradient_scale = 1, bool applies = true) {
  std::vector<double> all(UpdateNumbers::kKinds, 0.0);
  all[UpdateNumbers::kApplies] = applies ? 1 : 0;
  all[UpdateNumbers::kGradientScale] = gradient_scale;
  all[UpdateNumbers::kRateFactor] = rate_factor;
  all[UpdateNumbers::kUpdates] = updates;
  return constant(context, {UpdateNumbers::kKinds}, DType::kFloat64, all);
}

/// Over the first third of `count` elements, over none, and over the second half; what lies between is
/// frozen.
std::vector<TrainedRun> made_up_runs(std::int64_t count) {
  return {{0, count / 3, 0.01, 0.1}, {count / 3, 0, 1.0, 1.0}, {count / 2, count - count / 2, 0.04, 0.0}};
}

TEST_P(Optimizer, AdamwAndAdamFollowTorch) {
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    for (const auto& [count, decoupled] : std::vector<std::pair<std::int64_t, bool>>{
             {0, true}, {1, true}, {37, true}, {37, false}, {5000, true}, {30'000, true}, {30'000, false}}) {
      const std::vector<TrainedRun> runs = made_up_runs(count);
      Array p = random_array(context_, {count}, type, 1), m = filled(context_, {count}, type, 0.0),
            v = filled(context_, {count}, type, 0.0);
      std::vector<double> ps = values_of(p), ms = values_of(m), vs = values_of(v);
      for (int t = 1; t <= 3; ++t) {
        const Array gradient = random_array(context_, {count}, type, 10U + static_cast<unsigned>(t));
        const std::vector<double> gs = values_of(gradient);
        for (const TrainedRun& run : runs) {
          const double rate = 0.5 * run.learning_rate;
          for (auto i = static_cast<std::size_t>(run.at); i < static_cast<std::size_t>(run.at + run.count);
               ++i) {
            const double g = 0.5 * gs[i] + (decoupled ? 0 : run.weight_decay * ps[i]);
            if (decoupled) ps[i] -= rate * run.weight_decay * ps[i];
            ms[i] = 0.9 * ms[i] + 0.1 * g;
            vs[i] = 0.95 * vs[i] + 0.05 * g * g;
            const double denominator = std::sqrt(vs[i]) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8;
            ps[i] -= rate / (1 - std::pow(0.9, t)) * ms[i] / denominator;
          }
        }
        adamw(context_, {.beta1 = 0.9, .beta2 = 0.95, .decoupled = decoupled}, runs,
              numbers_of(context_, t, 0.5, 0.5), p, gradient, m, v);
      }
      const std::vector<double> found = values_of(p);
      expect_near(found, ps, tolerance(type, 8));
      expect_near(values_of(m), ms, tolerance(type, 8));
      expect_near(values_of(v), vs, tolerance(type, 8));
      for (auto i = static_cast<std::size_t>(count / 3); i < static_cast<std::size_t>(count / 2); ++i)
        ASSERT_EQ(found[i], ps[i]) << i;
    }
  }
}

TEST_P(Optimizer, SgdAndRunningStatisticsFollowTheirFormulas) {
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    for (const auto& [count, nesterov, decoupled] :
         std::vector<std::tuple<std::int64_t, bool, bool>>{{1, false, true},
                                                           {37, false, true},
                                                           {37, true, true},
                                                           {37, false, false},
                                                           {30'000, false, true},
                                                           {30'000, true, true},
                                                           {30'000, true, false}}) {
      const std::vector<TrainedRun> runs = made_up_runs(count);
      Array p = random_array(context_, {count}, type, 1), v = random_array(context_, {count}, type, 2),
            s = random_array(context_, {count}, type, 3);
      const Array gradient = random_array(context_, {count}, type, 4);
      std::vector<double> ps = values_of(p), vs = values_of(v), ss = values_of(s);
      const std::vector<double> gs = values_of(gradient);
      for (const TrainedRun& run : runs) {
        for (auto i = static_cast<std::size_t>(run.at); i < static_cast<std::size_t>(run.at + run.count);
             ++i) {
          const double g = 0.25 * gs[i] + (decoupled ? 0 : run.weight_decay * ps[i]);
          vs[i] = 0.75 * vs[i] + g;
          const double step = nesterov ? g + 0.75 * vs[i] : vs[i];
          if (decoupled) ps[i] *= 1 - 0.5 * run.learning_rate * run.weight_decay;
          ps[i] -= 0.5 * run.learning_rate * step;
          ss[i] -= run.learning_rate * gs[i];
        }
      }
      sgd(context_, {0.75, nesterov, decoupled}, runs, numbers_of(context_, 3, 0.5, 0.25), p, gradient, v);
      follow(context_, runs, numbers_of(context_, 3, 0.5, 0.25), s, gradient);
      expect_near(values_of(p), ps, tolerance(type, 8));
      expect_near(values_of(v), vs, tolerance(type, 8));
      expect_near(values_of(s), ss, tolerance(type, 8));
    }
  }
}

/// A copy in bf16 is what cast() gives, of the runs alone.
TEST_P(Optimizer, CopiesOfWhatIsUpdated) {
  constexpr std::int64_t kCount = 5000;
  const std::vector<TrainedRun> runs = made_up_runs(kCount);
  const Array gradient = random_array(context_, {kCount}, DType::kFloat32, 2), numbers = numbers_of(context_);
  for (const std::string rule : {"adamw", "sgd", "follow"}) {
    Array p = random_array(context_, {kCount}, DType::kFloat32, 1),
          m = filled(context_, {kCount}, DType::kFloat32, 0.0),
          v = filled(context_, {kCount}, DType::kFloat32, 0.0),
          copy = filled(context_, {kCount}, DType::kBfloat16, 7.0);
    if (rule == "adamw") adamw(context_, {}, runs, numbers, p, gradient, m, v, copy);
    if (rule == "sgd") sgd(context_, {}, runs, numbers, p, gradient, m, copy);
    if (rule == "follow") follow(context_, runs, numbers, p, gradient, copy);
    std::vector<double> wanted(kCount, 7.0);
    const std::vector<double> rounded = values_of(cast(context_, p, DType::kBfloat16));
    for (const TrainedRun& run : runs) {
      for (auto i = static_cast<std::size_t>(run.at); i < static_cast<std::size_t>(run.at + run.count); ++i)
        wanted[i] = rounded[i];
    }
    EXPECT_EQ(values_of(copy), wanted) << rule;
  }
}

TEST_P(Optimizer, NothingChangesWhereTheNumbersDoNotApply) {
  constexpr std::int64_t kCount = 5000;
  const std::vector<TrainedRun> runs = made_up_runs(kCount);
  const Array numbers = numbers_of(context_, 1, 1, 1, false);
  const Array gradient = filled(context_, {kCount}, DType::kFloat32, NAN);
  const auto fresh = [&] { return random_array(context_, {kCount}, DType::kFloat32, 1); };
  Array p = fresh(), m = fresh(), v = fresh(), average = fresh(),
        copy = filled(context_, {kCount}, DType::kBfloat16, 7.0);
  const std::vector<double> before = values_of(p);
  adamw(context_, {}, runs, numbers, p, gradient, m, v, copy);
  sgd(context_, {}, runs, numbers, p, gradient, m, copy);
  follow(context_, runs, numbers, p, gradient, copy);
  exponential_average(context_, 0.9, numbers, average, gradient);
  for (const Array* array : {&p, &m, &v, &average}) EXPECT_EQ(values_of(*array), before);
  EXPECT_EQ(values_of(copy), std::vector<double>(kCount, 7.0));
}

/// What is decided of (loss sum, weight, empty samples, Σ g²), behind six updates.
std::vector<double> decided(Context& context, const std::vector<double>& loss, double squares,
                            const GradientTerms& terms) {
  Array numbers = numbers_of(context, 6, 0.125, 99);
  decide_update(context, terms, constant(context, {3}, DType::kFloat64, loss),
                constant(context, {1}, DType::kFloat64, std::array{squares}), numbers);
  return download_values(context, numbers);
}

TEST_P(Optimizer, AnUpdateIsDecidedWhereArraysStand) {
  using Numbers = std::vector<double>;
  // The weight is half of what gradients were divided by: they double, and their norm is 2 · 3.
  EXPECT_EQ(decided(context_, {5, 2, 1}, 9, {.full_weight = 4}), (Numbers{5, 2, 1, 9, 1, 2, 0.125, 7}));
  const Numbers clipped = decided(context_, {5, 2, 1}, 9, {.full_weight = 4, .clip_norm = 1.5});
  EXPECT_NEAR(clipped[UpdateNumbers::kGradientScale], 2 * 1.5 / (6 + 1e-6), 1e-15);
  EXPECT_EQ(clipped[UpdateNumbers::kUpdates], 7);
  EXPECT_EQ(
      decided(context_, {5, 2, 1}, 9, {.full_weight = 4, .clip_norm = 6})[UpdateNumbers::kGradientScale], 2);
  for (const auto& [loss, squares] : {std::pair{Numbers{5, 0, 1}, 9.0},
                                      {{NAN, 2, 0}, 9.0},
                                      {{INFINITY, 2, 0}, 9.0},
                                      {{5, 2, 0}, NAN},
                                      {{5, 2, 0}, INFINITY}}) {
    const Numbers skipped = decided(context_, loss, squares, {.full_weight = 4, .clip_norm = 1});
    EXPECT_EQ(skipped[UpdateNumbers::kApplies], 0) << loss[0] << " " << loss[1] << " " << squares;
    EXPECT_EQ(skipped[UpdateNumbers::kUpdates], 6);
    EXPECT_EQ(skipped[UpdateNumbers::kRateFactor], 0.125);
  }
}

/// Σ x² over all runs, at once or one after the other.
double squares_of(Context& context, std::span<const TrainedRun> runs, const Array& x, bool at_once) {
  Array sum = filled(context, {1}, DType::kFloat64, 0.0);
  for (std::size_t i = 0; i < (at_once ? 1 : runs.size()); ++i)
    add_squares_of_runs(context, at_once ? runs : runs.subspan(i, 1), x, sum);
  return download_values(context, sum)[0];
}

/// How many runs are worked on at once is not seen in any bit.
TEST_P(Optimizer, RunsOneByOneGiveTheSame) {
  constexpr std::int64_t kCount = 50'001;
  std::vector<TrainedRun> runs;
  for (std::int64_t at = 0, count = 1; at + count <= kCount; at += count + 3, count = count * 3 % 9001)
    runs.push_back({at, count, 1e-3 * static_cast<double>(1 + count % 7), 0.1});
  const Array gradient = random_array(context_, {kCount}, DType::kFloat32, 2);
  EXPECT_EQ(squares_of(context_, runs, gradient, true), squares_of(context_, runs, gradient, false));
  std::vector<double> results[2];
  for (const bool at_once : {true, false}) {
    Array p = random_array(context_, {kCount}, DType::kFloat32, 1),
          m = random_array(context_, {kCount}, DType::kFloat32, 3),
          v = filled(context_, {kCount}, DType::kFloat32, 0.25);
    if (at_once) {
      adamw(context_, {}, runs, numbers_of(context_), p, gradient, m, v);
    } else {
      for (const TrainedRun& run : runs)
        adamw(context_, {}, std::span(&run, 1), numbers_of(context_), p, gradient, m, v);
    }
    results[at_once ? 0 : 1] = values_of(p);
  }
  EXPECT_EQ(results[0], results[1]);
}

/// Of the first updates more is taken.
TEST_P(Optimizer, ExponentialAverage) {
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    for (const auto& [updates, keep] : {std::pair{1.0, 2.0 / 11}, {8.0, 0.5}, {80.0, 0.9}, {1e5, 0.9}}) {
      Array average = random_array(context_, {77}, type, 1);
      const Array parameter = random_array(context_, {77}, type, 2);
      std::vector<double> wanted = values_of(average);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        wanted[i] = keep * wanted[i] + (1 - keep) * values_of(parameter)[i];
      exponential_average(context_, 0.9, numbers_of(context_, updates), average, parameter);
      expect_near(values_of(average), wanted, tolerance(type, 2));
    }
  }
}

TEST_P(Optimizer, SumOfSquaresIsFormedInDouble) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    for (const std::int64_t count : {0, 1, 9, 100'003}) {
      const Array x = random_array(context_, {count}, type, 1);
      const std::vector<TrainedRun> runs = made_up_runs(count);
      const std::vector<double> values = values_of(x);
      double wanted = 0;
      for (const TrainedRun& run : runs) {
        for (std::int64_t i = run.at; i < run.at + run.count; ++i)
          wanted += values[static_cast<std::size_t>(i)] * values[static_cast<std::size_t>(i)];
      }
      EXPECT_NEAR(squares_of(context_, runs, x, true), wanted, 1e-11 * wanted);
    }
  }
}

TEST_P(Optimizer, SumOfSquaresDoesNotDependOnThreads) {
  Context one = testing::kernel_context(GetParam(), 1);
  const Array x = random_array(context_, {100'003}, DType::kFloat32, 1);
  const std::vector<TrainedRun> runs = made_up_runs(100'003);
  EXPECT_EQ(squares_of(one, runs, x, true), squares_of(context_, runs, x, true));
}

TEST_P(Optimizer, Errors) {
  Array p = random_array(context_, {4}, DType::kFloat32, 1),
        m = random_array(context_, {4}, DType::kFloat32, 1);
  Array v = random_array(context_, {5}, DType::kFloat32, 1),
        sum = filled(context_, {1}, DType::kFloat64, 0.0);
  const std::vector<TrainedRun> all = {{0, 4}};
  const Array numbers = numbers_of(context_);
  EXPECT_THROW(adamw(context_, {}, all, numbers, p, m, m, v), ShapeError);
  EXPECT_THROW(adamw(context_, {}, all, sum, p, m, m, m), ShapeError);
  EXPECT_THROW(adamw(context_, {}, all, numbers, p, m, m, m, m), Error);
  EXPECT_THROW(sgd(context_, {}, all, numbers, p, m, v), ShapeError);
  EXPECT_THROW(follow(context_, all, numbers, p, v), ShapeError);
  EXPECT_THROW(exponential_average(context_, 0.9, numbers, p, v), ShapeError);
  EXPECT_THROW(exponential_average(context_, 0.9, sum, p, m), ShapeError);
  for (const std::vector<TrainedRun>& runs : std::vector<std::vector<TrainedRun>>{
           {{0, 5}}, {{-1, 2}}, {{0, -1}}, {{0, 3}, {2, 2}}, {{2, 2}, {0, 2}}}) {
    EXPECT_THROW(adamw(context_, {}, runs, numbers, p, m, m, m), ShapeError);
    EXPECT_THROW(add_squares_of_runs(context_, runs, p, sum), ShapeError);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Optimizer, testing::kernel_backends(), testing::backend_name);

}  // namespace optimizer_test
}  // namespace jigsaw
