// The time that is left, on a virtual clock: a simulated run is told forward, and what was said at each step
// is compared with what then came.
#include "train/time_left.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace jigsaw {
namespace time_left_test {

struct SimulatedRun {
  std::int64_t steps = 0, validate_every = 0, save_every = 0;
  std::function<double(std::int64_t step)> step_seconds;
  double validation_seconds = 0, save_seconds = 0;
  double expected_validation = 0, expected_save = 0;
};

/// The largest |said − true| / true from a step on, as long as a hundredth of the run is left.
double worst_error(const SimulatedRun& run, std::size_t from = 10) {
  const auto every = [&](std::int64_t count) {
    return [&run, count](std::int64_t step) { return count > 0 && (step == run.steps || step % count == 0); };
  };
  TimeLeft left(run.steps, run.validate_every, run.save_every);
  left.expect_validation(run.expected_validation);
  left.expect_save(run.expected_save);
  double clock = 0;
  std::vector<double> said, at;
  for (std::int64_t step = 1; step <= run.steps; ++step) {
    clock += run.step_seconds(step);
    // As the trainer does: a line is shown before what follows the step.
    said.push_back(left.after(step, true).value_or(NAN));
    at.push_back(clock);
    left.step(run.step_seconds(step));
    if (every(run.save_every)(step)) {
      clock += run.save_seconds;
      left.save(run.save_seconds);
    }
    if (every(run.validate_every)(step)) {
      clock += run.validation_seconds;
      left.validation(run.validation_seconds);
    }
  }
  double worst = 0;
  for (std::size_t i = from - 1; i < said.size(); ++i) {
    const double truth = clock - at[i];
    if (truth < 0.01 * clock) break;
    worst = std::max(worst, std::abs(said[i] - truth) / truth);
  }
  return worst;
}

/// Numbers between 0 and 1 that look random.
double noise(std::int64_t step) {
  const double value = std::sin(12.9898 * static_cast<double>(step)) * 43758.5453;
  return value - std::floor(value);
}

constexpr double kPromised = 0.2;

TEST(TimeLeft, IsRightFromTheTenthStepOnWithValidationsAndSaves) {
  // The first step plans and allocates; validations are a third of the run, and the first is estimated.
  const SimulatedRun run{
      600,  100, 200,  [](std::int64_t step) { return step == 1 ? 30.0 : 0.9 + 0.2 * noise(step); },
      50.0, 2.0, 55.0, 0.5};
  EXPECT_LT(worst_error(run), kPromised);
}

TEST(TimeLeft, HiccupsAmongTheFirstStepsDoNotDecide) {
  SimulatedRun run{1000, 0, 0, [](std::int64_t step) { return step == 5 ? 10.0 : 1.0; }};
  EXPECT_LT(worst_error(run), kPromised);
  // Every tenth step is slow for good, as where data come in blocks.
  run.step_seconds = [](std::int64_t step) { return step % 10 == 7 ? 3.0 : 1.0; };
  EXPECT_LT(worst_error(run), kPromised);
}

TEST(TimeLeft, FollowsRolloutsOfRandomLength) {
  const SimulatedRun run{
      2000, 500, 0, [](std::int64_t step) { return 1.0 + std::floor(3 * noise(step)); }, 100.0, 0, 100.0, 0};
  EXPECT_LT(worst_error(run), kPromised);
}

TEST(TimeLeft, LearnsWhatValidationsTakeWhereTheyWereExpectedToTakeMore) {
  SimulatedRun run{400, 50, 0, [](std::int64_t) { return 1.0; }, 25.0, 0, 25.0, 0};
  EXPECT_LT(worst_error(run), 1e-9);
  // Without what was expected the first fifty steps know nothing of validations.
  run.expected_validation = 0;
  EXPECT_GT(worst_error(run), kPromised);
}

TEST(TimeLeft, FollowsAMachineThatBecomesSlower) {
  const SimulatedRun run{10000, 0, 0, [](std::int64_t step) { return step < 2000 ? 1.0 : 3.0; }, 0, 0, 0, 0};
  EXPECT_LT(worst_error(run, 4500), kPromised);
  EXPECT_GT(worst_error(run, 10), 0.5);  // what comes nobody knew
}

TEST(TimeLeft, SaysNothingBeforeASecondStep) {
  TimeLeft left(3, 0, 0);
  EXPECT_FALSE(left.after(0, true).has_value());
  left.step(100);
  EXPECT_FALSE(left.after(1, true).has_value());
  left.step(2);
  EXPECT_EQ(left.after(2, true).value(), 2);
  EXPECT_EQ(left.after(3, true).value(), 0);
}

/// Validations and saves of a long run are counted at once, those after its last step among them.
TEST(TimeLeft, CountsWhatARunOfAnyLengthHasAhead) {
  const std::int64_t steps = 1'000'000'001;
  TimeLeft left(steps, 2, 1000);
  left.expect_validation(3);
  left.expect_save(7);
  left.step(100);
  left.step(1);
  EXPECT_DOUBLE_EQ(left.after(4, true).value(), 999'999'997.0 + 3 * 500'000'000.0 + 7 * 1'000'001.0);
  EXPECT_DOUBLE_EQ(left.after(4, false).value(), 999'999'997.0 + 3 * 499'999'999.0 + 7 * 1'000'001.0);
  EXPECT_EQ(left.after(steps, true).value(), 10);
  EXPECT_EQ(left.after(steps, false).value(), 0);
}

/// What a run of steps of two seconds says it is expected to take, after which of its steps.
std::map<std::int64_t, std::string> expectations(std::int64_t first, std::int64_t steps) {
  TimeLeft left(steps, 100, steps);
  left.expect_validation(60);
  left.expect_save(5);
  std::map<std::int64_t, std::string> said;
  for (std::int64_t step = first; step <= steps; ++step) {
    left.step(step == first ? 500 : 2);
    if (const auto line = left.expectation(step)) said[step] = *line;
  }
  return said;
}

TEST(TimeLeft, SaysOnceWhatIsExpectedAfterTheTenthStepOfTheRun) {
  using Said = std::map<std::int64_t, std::string>;
  // 990 steps of 2 s, ten validations of 60 s and a save of 5 s are 2585 s.
  EXPECT_EQ(expectations(1, 1000),
            (Said{{10, "expected time: 43:05 for the 990 steps to come, with their validations and saves"}}));
  EXPECT_EQ(expectations(51, 100),
            (Said{{60, "expected time: 2:25 for the 40 steps to come, with their validations and saves"}}));
  EXPECT_EQ(expectations(1, 11),
            (Said{{10, "expected time: 1:07 for the 1 step to come, with their validations and saves"}}));
  EXPECT_EQ(expectations(1, 10), Said{});
}

}  // namespace time_left_test
}  // namespace jigsaw
