// Schedules: factors of every parameter's learning rate.
#include "optim/schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/config.h"
#include "optim/registry.h"
#include "support/golden_file.h"
#include "support/parameters.h"

namespace jigsaw {
namespace {

TEST(Schedule, RisesAndFallsAsTheGoldenRates) {
  const testing::GoldenFile golden("weathermixer.h5");
  const double rate = golden.number("/", "learning_rate");
  const auto schedule =
      make_schedule(CosineOptions{static_cast<std::int64_t>(golden.number("/", "warmup_steps")),
                                  golden.number("/", "final_learning_rate")},
                    rate);
  std::vector<double> rates;
  for (int step = 1; step <= 10; ++step) rates.push_back(rate * schedule->factor(step, 10));
  EXPECT_LE(testing::relative_difference(rates, golden.values("learning_rate")), 1e-14);
}

TEST(Schedule, ConstantAfterWarmUp) {
  const auto schedule = make_schedule(ConstantOptions{4}, 2.0);
  EXPECT_DOUBLE_EQ(schedule->factor(1, 100), 0.25);
  EXPECT_DOUBLE_EQ(schedule->factor(4, 100), 1.0);
  EXPECT_DOUBLE_EQ(schedule->factor(100, 100), 1.0);
}

TEST(Schedule, CosineEndsAtItsFinalRateAndStaysThere) {
  const auto schedule = make_schedule(CosineOptions{0, 0.5}, 2.0);
  EXPECT_DOUBLE_EQ(schedule->factor(50, 100), 0.625);
  EXPECT_DOUBLE_EQ(schedule->factor(100, 100), 0.25);
  EXPECT_DOUBLE_EQ(schedule->factor(200, 100), 0.25);
  // All steps warm-up: no division by zero.
  EXPECT_DOUBLE_EQ(make_schedule(CosineOptions{10, 0.5}, 2.0)->factor(10, 10), 1.0);
}

TEST(Schedule, ARateOf0LeavesTheFactorToGroups) {
  const auto schedule = make_schedule(CosineOptions{2, 0.0}, 0.0);
  EXPECT_DOUBLE_EQ(schedule->factor(1, 10), 0.5);
  EXPECT_DOUBLE_EQ(schedule->factor(6, 10), 0.5);
  EXPECT_THROW(make_schedule(CosineOptions{0, 0.1}, 0.0), ConfigError);
}

struct Section {
  Tagged schedule;
};
void declare(Keys<Section>& keys) {
  keys.tagged("schedule", &Section::schedule, schedule_types).doc("The schedule.");
}

TEST(Schedule, IsChosenByName) {
  const auto factor = [](const Json& json, std::int64_t step) {
    return make_schedule(parse<Section>(json).schedule, 1.0)->factor(step, 10);
  };
  EXPECT_DOUBLE_EQ(factor(Json::object(), 5), 0.5);
  EXPECT_DOUBLE_EQ(factor({{"schedule", {{"type", "constant"}}}}, 5), 1.0);
  EXPECT_THROW(factor({{"schedule", {{"type", "constant"}, {"final_learning_rate", 0.5}}}}, 5), ConfigError);
  EXPECT_THROW(factor({{"schedule", {{"type", "cosin"}}}}, 5), ConfigError);
}

}  // namespace
}  // namespace jigsaw
