// The clock of one rank against what the numbers say.
#include "estimate/step_clock.h"

#include <gtest/gtest.h>

#include "kernels/pointwise.h"

namespace jigsaw {
namespace step_clock_test {

TEST(StepClock, WhatIsComputedMeanwhileHidesATransfer) {
  Context context = Context::make_meta();
  StepClock clock;
  const auto world = make_record_communicator(context, 0, 2, &clock);
  Mesh mesh(*world, 1, {2, 1}, 1);
  Machine machine{1e9, 1e9, {}};
  machine.links[1] = {1e6, 1e-3};
  clock.begin(mesh, machine, context);
  Communicator& group = mesh.communicator(axis_bit(1));
  const std::vector<std::int64_t> counts = {1000, 1000};
  const Array piece(context, {1000}, DType::kFloat32);
  // One message of 4,000 bytes: 1 ms + 4 ms. Meanwhile 2e6 operations of 1 ns.
  Pending pending = group.start_all_gather(piece, counts);
  context.tally().flops += 2e6;
  pending.wait();
  EXPECT_NEAR(clock.seconds(), 5e-3, 1e-9);
  EXPECT_NEAR(clock.computed(), 2e-3, 1e-9);
  EXPECT_NEAR(clock.stalled(), 3e-3, 1e-9);
  // Two transfers share the link; more work than both hides them, bytes through memory count as work.
  Pending first = group.start_all_gather(piece, counts), second = group.start_all_gather(piece, counts);
  context.tally().bytes += 4e6;
  first.wait();
  EXPECT_NEAR(clock.seconds(), 10e-3, 1e-9);
  context.tally().bytes += 7e6;
  second.wait();
  clock.end();
  EXPECT_NEAR(clock.seconds(), 17e-3, 1e-9);
  EXPECT_NEAR(clock.stalled(), 4e-3, 1e-9);
  const AxisTraffic& traffic = clock.traffic().at({"domain0", Collective::kAllGather});
  EXPECT_EQ(traffic.calls, 3);
  EXPECT_EQ(traffic.messages, 3);
  EXPECT_EQ(traffic.bytes, 12000);
}

TEST(StepClock, CountsFromItsBeginning) {
  Context context = Context::make_meta();
  StepClock clock;
  const auto world = make_record_communicator(context, 0, 4, &clock);
  world->barrier();
  context.tally().flops += 1e9;
  Mesh mesh(*world, 2, {1, 1}, 2);
  clock.begin(mesh, {1e9, 1e9, {}}, context);
  clock.end();
  EXPECT_EQ(clock.seconds(), 0);
  EXPECT_TRUE(clock.traffic().empty());
}

}  // namespace step_clock_test
}  // namespace jigsaw
