// Schedules: factors of every parameter's learning rate.
#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "config/config.h"
#include "optim/registry.h"
#include "support/parameters.h"

namespace jigsaw {
namespace schedule_test {

/// Three steps of warm-up, then torch.optim.lr_scheduler.CosineAnnealingLR(T_max=5, eta_min=0.001) of a rate
/// of 0.01: 0.001 + 0.0045 · (1 + cos(36° · k)), k = 0 … 4, with cos 36° = (1 + √5)/4 and cos 72° = (√5 −
/// 1)/4.
TEST(Schedule, RisesAndFallsAsCosineAnnealing) {
  const auto schedule = make_schedule(CosineOptions{3, 0.001}, 0.01);
  std::vector<double> rates;
  for (int step = 1; step <= 8; ++step) rates.push_back(0.01 * schedule->factor(step, 8));
  const double a = (1 + std::sqrt(5.0)) / 4, b = (std::sqrt(5.0) - 1) / 4;
  const std::vector<double> expected = {0.01 / 3,
                                        0.02 / 3,
                                        0.01,
                                        0.01,
                                        0.001 + 0.0045 * (1 + a),
                                        0.001 + 0.0045 * (1 + b),
                                        0.001 + 0.0045 * (1 - b),
                                        0.001 + 0.0045 * (1 - a)};
  EXPECT_LE(testing::relative_difference(rates, expected), 1e-14);
}

TEST(Schedule, TheLastStepStillMovesWhenTheCosineEndsAt0) {
  const auto schedule = make_schedule(CosineOptions{}, 1.0);
  EXPECT_DOUBLE_EQ(schedule->factor(1, 1), 1.0);
  EXPECT_DOUBLE_EQ(schedule->factor(2, 2), 0.5);
  EXPECT_GT(schedule->factor(1000, 1000), 0.0);
  EXPECT_DOUBLE_EQ(schedule->factor(1001, 1000), 0.0);
}

/// Two steps of warm-up, then torch.optim.lr_scheduler.PolynomialLR(total_iters=5, power=0.9) of a rate of
/// 0.01.
TEST(Schedule, FallsAsPolynomial) {
  const auto schedule = make_schedule(PolyOptions{2, 0.9}, 0.01);
  std::vector<double> rates;
  for (int step = 1; step <= 7; ++step) rates.push_back(0.01 * schedule->factor(step, 7));
  const std::vector<double> expected = {0.005,
                                        0.01,
                                        0.01,
                                        0.008180521460508584,
                                        0.006314458674893553,
                                        0.0043838329055408696,
                                        0.0023492378861760376};
  EXPECT_LE(testing::relative_difference(rates, expected), 1e-12);
  EXPECT_DOUBLE_EQ(schedule->factor(8, 7), 0.0);
  EXPECT_DOUBLE_EQ(schedule->factor(100, 7), 0.0);
}

TEST(Schedule, ConstantAfterWarmUp) {
  const auto schedule = make_schedule(ConstantOptions{4}, 2.0);
  EXPECT_DOUBLE_EQ(schedule->factor(1, 100), 0.25);
  EXPECT_DOUBLE_EQ(schedule->factor(4, 100), 1.0);
  EXPECT_DOUBLE_EQ(schedule->factor(100, 100), 1.0);
}

TEST(Schedule, CoolsDownOverItsLastSteps) {
  const auto schedule = make_schedule(ConstantOptions{2, 3}, 1.0);
  std::vector<double> factors;
  for (int step = 1; step <= 9; ++step) factors.push_back(schedule->factor(step, 8));
  EXPECT_EQ(factors, (std::vector<double>{0.5, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0}));
  EXPECT_DOUBLE_EQ(schedule->factor(8, 20), 1.0);
}

/// torch.optim.lr_scheduler.MultiStepLR(milestones=[3, 5], gamma=0.5), whose rates of the steps from 0 on are
/// 1, 1, 1, 0.5, 0.5, 0.25, behind a step of warm-up that counts as one of them.
TEST(Schedule, FallsBySteps) {
  const auto schedule = make_schedule(StepsOptions{2, {3, 5}, 0.5}, 1.0);
  std::vector<double> factors;
  for (int step = 1; step <= 7; ++step) factors.push_back(schedule->factor(step, 7));
  EXPECT_EQ(factors, (std::vector<double>{0.5, 1, 1, 0.5, 0.5, 0.25, 0.25}));
  EXPECT_EQ(schedule->milestones(), (std::vector<std::int64_t>{3, 5}));
  EXPECT_TRUE(make_schedule(CosineOptions{}, 1.0)->milestones().empty());
}

TEST(Schedule, CosineEndsAtItsFinalRateAndStaysThere) {
  const auto schedule = make_schedule(CosineOptions{0, 0.5}, 2.0);
  EXPECT_DOUBLE_EQ(schedule->factor(51, 100), 0.625);
  EXPECT_DOUBLE_EQ(schedule->factor(101, 100), 0.25);
  EXPECT_DOUBLE_EQ(schedule->factor(200, 100), 0.25);
  // All steps warm-up: no division by zero.
  EXPECT_DOUBLE_EQ(make_schedule(CosineOptions{10, 0.5}, 2.0)->factor(10, 10), 1.0);
}

TEST(Schedule, ARateOf0LeavesTheFactorToGroups) {
  const auto schedule = make_schedule(CosineOptions{2, 0.0}, 0.0);
  EXPECT_DOUBLE_EQ(schedule->factor(1, 10), 0.5);
  EXPECT_DOUBLE_EQ(schedule->factor(7, 10), 0.5);
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
  EXPECT_DOUBLE_EQ(factor(Json::object(), 6), 0.5);
  EXPECT_DOUBLE_EQ(factor({{"schedule", {{"type", "constant"}}}}, 5), 1.0);
  EXPECT_THROW(factor({{"schedule", {{"type", "constant"}, {"final_learning_rate", 0.5}}}}, 5), ConfigError);
  EXPECT_DOUBLE_EQ(factor({{"schedule", {{"type", "steps"}, {"at", {2, 4}}}}}, 3), 0.1);
  EXPECT_THROW(factor({{"schedule", {{"type", "steps"}}}}, 5), ConfigError);
  EXPECT_THROW(factor({{"schedule", {{"type", "steps"}, {"at", {4, 2}}}}}, 5), ConfigError);
  EXPECT_THROW(factor({{"schedule", {{"type", "cosin"}}}}, 5), ConfigError);
}

}  // namespace schedule_test
}  // namespace jigsaw
