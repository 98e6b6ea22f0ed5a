// What a run may differ from another in, by what perturbed runs show of rounding.
#include "verify/comparison.h"

#include <gtest/gtest.h>

#include <cstring>

#include "comm/thread/run_ranks.h"

namespace jigsaw {
namespace {

using Values = std::vector<double>;

KeptPart part_of(const Values& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  KeptPart part{Box::whole(Shape{count}), 0, count, ""};
  for (const double value : values) {
    const auto stored = static_cast<float>(value);
    char raw[sizeof stored];
    std::memcpy(raw, &stored, sizeof stored);
    part.bytes.append(raw, sizeof raw);
  }
  return part;
}

/// One step of a model of one parameter, which is 1 everywhere behind it.
RecordedRun run_of(const Values& gradient, const Values& update) {
  RecordedRun run;
  run.parameters.push_back({"w", Shape{static_cast<std::int64_t>(gradient.size())}, 1});
  RecordedStep step;
  step.loss = 1;
  step.gradients["w"].push_back(part_of(gradient));
  step.updates["w"].push_back(part_of(update));
  step.squares["w"] = static_cast<double>(gradient.size());
  run.steps.push_back(std::move(step));
  return run;
}
RecordedRun descent_of(const Values& gradient) {
  Values update = gradient;
  for (double& value : update) value *= -0.1;
  return run_of(gradient, update);
}

/// By perturbed runs that are known one after the other.
Comparison compared(const RecordedRun& tested, const RecordedRun& reference,
                    const std::vector<RecordedRun>& perturbed) {
  Comparison result;
  run_ranks(1, [&](Communicator& world) {
    RunNoise noise;
    for (const RecordedRun& run : perturbed)
      result = compare(world, {&tested, &reference, &run}, Precision::kFloat32, noise);
  });
  return result;
}

/// A gradient that a maximum sends to the point that wins.
Values gradient_to(std::size_t winner) {
  Values gradient(1000, 1.0);
  gradient[winner] = 2;
  return gradient;
}

TEST(Comparison, AWinnerThatRoundingDecidesIsSeenBySeveralPerturbedRuns) {
  const RecordedRun reference = descent_of(gradient_to(7)), other_winner = descent_of(gradient_to(8));
  Values shaken = gradient_to(7);
  for (std::size_t i = 0; i < shaken.size(); ++i) shaken[i] *= i % 2 == 0 ? 1 + 1e-7 : 1 - 1e-7;
  const RecordedRun smooth = descent_of(shaken);
  const Comparison one = compared(other_winner, reference, {smooth});
  EXPECT_EQ(one.first_failing, 1) << one.to_text();
  EXPECT_EQ(one.first_failure, "step 1: the gradient of w");
  const Comparison two = compared(other_winner, reference, {smooth, other_winner});
  EXPECT_EQ(two.first_failing, 0) << two.to_text();
  const Comparison later = compared(other_winner, reference, {smooth, other_winner, smooth});
  EXPECT_EQ(later.first_failing, 0) << later.to_text();
}

TEST(Comparison, AFaultBeyondWhatRoundingDecidesIsFound) {
  const RecordedRun reference = descent_of(gradient_to(7)), other_winner = descent_of(gradient_to(8));
  Values wrong = gradient_to(7);
  for (double& value : wrong) value *= 1.3;
  const Comparison comparison =
      compared(descent_of(wrong), reference, {reference, other_winner, other_winner});
  EXPECT_EQ(comparison.first_failing, 1) << comparison.to_text();
}

/// Of an update that is small beside the parameter the last digits are those of the sum as it is stored.
TEST(Comparison, AStoredUpdateMayBeRoundedToTheOtherNeighbour) {
  constexpr double kApart = 0x1p-24;  // of numbers just below 1
  const Values gradient(32, 1.0), update(32, -336 * kApart);
  const RecordedRun reference = run_of(gradient, update);
  Values neighbour = update;
  neighbour[5] += kApart;
  const Comparison one = compared(run_of(gradient, neighbour), reference, {reference});
  EXPECT_EQ(one.first_failing, 0) << one.to_text();
  for (double& value : neighbour) value += 3 * kApart;
  const Comparison all = compared(run_of(gradient, neighbour), reference, {reference});
  EXPECT_EQ(all.first_failure, "step 1: the update of w");
}

/// Steps by the sign of the gradient, as Adam's first is: of an element that is what is left of large ones
/// its own rounding decides, though perturbed runs do not move it.
TEST(Comparison, WhatIsLeftOfASumMayMoveAnUpdate) {
  const Values gradient = {1, -1, 1, 3e-9};
  Values other = gradient;
  other[3] = -2e-9;
  const auto by_sign = [](const Values& of) {
    Values update;
    for (const double value : of) update.push_back(value > 0 ? -0.001 : 0.001);
    return run_of(of, update);
  };
  const RecordedRun reference = by_sign(gradient);
  EXPECT_EQ(compared(by_sign(other), reference, {reference}).first_failing, 0);
  other[3] = -0.001;
  EXPECT_EQ(compared(by_sign(other), reference, {reference}).first_failing, 1);
}

/// The same, a step later: the loss is moved by as much as the gradient there makes of the other update.
TEST(Comparison, WhatMovedAnUpdateMayMoveTheNextLoss) {
  const auto run = [](double first, double second, double loss) {
    RecordedRun two = run_of({1, -1, 1, first}, {-0.001, 0.001, -0.001, first > 0 ? -0.001 : 0.001});
    RecordedStep step = run_of({1, -1, 1, second}, {-0.001, 0.001, -0.001, -0.001}).steps[0];
    step.loss = loss;
    two.steps.push_back(std::move(step));
    return two;
  };
  const RecordedRun reference = run(3e-9, 0.1, 0.5);
  const Comparison moved = compared(run(-2e-9, 0.1, 0.5001), reference, {reference});
  EXPECT_EQ(moved.first_failing, 0) << moved.to_text();
  const Comparison wrong = compared(run(-2e-9, 0.1, 0.501), reference, {reference});
  EXPECT_EQ(wrong.first_failure, "step 2: the loss") << wrong.to_text();
  const Comparison unmoved = compared(run(3e-9, 0.1, 0.5001), run(1, 0.1, 0.5), {run(1, 0.1, 0.5)});
  EXPECT_EQ(unmoved.first_failing, 1) << unmoved.to_text();
}

/// Numbers that are others in every run prove nothing by being as far apart as they are.
TEST(Comparison, AGradientThatDoesNotRepeatIsNoProof) {
  const RecordedRun reference = descent_of(Values(100, 1e20)), other = descent_of(Values(100, -1e22)),
                    perturbed = descent_of(Values(100, 1e22));
  const Comparison comparison = compared(other, reference, {perturbed});
  EXPECT_EQ(comparison.first_failure, "step 1: the gradient of w") << comparison.to_text();
}

/// Behind a layer that begins at zero.
TEST(Comparison, AGradientOfZeroIsNoNoise) {
  const Values zeros(4, 0.0), update(4, 0.1);
  const RecordedRun reference = run_of(zeros, update);
  const Comparison same = compared(reference, reference, {reference});
  EXPECT_EQ(same.first_failing, 0);
  EXPECT_EQ(same.parameters[0].compared, 1);
  const Comparison other = compared(run_of(zeros, Values(4, 0.2)), reference, {reference});
  EXPECT_EQ(other.first_failing, 1) << other.to_text();
}

}  // namespace
}  // namespace jigsaw
