// Limits of states by hand, and which forecasts leave them first, on any number of ranks.
#include "predict/outside_range.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/pieces.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace outside_range_test {

Channel target(const std::string& name, TransformKind kind = TransformKind::kStandard) {
  Channel channel;
  channel.name = name;
  channel.field = {name, {}};
  channel.transform.kind = kind;
  return channel;
}

StateLimits limits(const FieldStatistics& field, TransformKind kind = TransformKind::kStandard,
                   std::optional<double> deviations = {}) {
  Channels channels;
  channels.targets = {target("x", kind)};
  Statistics statistics;
  statistics.fields["x"] = field;
  return state_limits(channels, statistics, deviations)[0];
}

FieldStatistics seen(double mean, double deviation, std::optional<double> least = {},
                     std::optional<double> largest = {}) {
  FieldStatistics field{"K", mean, deviation, 0};
  field.least = least;
  field.largest = largest;
  return field;
}

TEST(StateLimits, LieFiveDeviationsBeyondTheEnds) {
  EXPECT_EQ(limits(seen(280, 20, 220, 320)).low, 120);
  EXPECT_EQ(limits(seen(280, 20, 220, 320)).high, 420);
  // Rain of up to 100 deviations: half of all that was seen, as 5 deviations are no change there.
  EXPECT_EQ(limits(seen(1, 2, 0, 200)).high, 300);
  EXPECT_EQ(limits(seen(280, 20, 220, 320), TransformKind::kStandard, 1.0).high, 340);
  EXPECT_EQ(limits(seen(280, 20, 220, 320), TransformKind::kStandard, 1.0).low, 200);
}

TEST(StateLimits, WithoutEndsLieFarFromTheMean) {
  EXPECT_EQ(limits(seen(280, 20)).low, -120);
  EXPECT_EQ(limits(seen(280, 20)).high, 680);
  EXPECT_EQ(limits(seen(1, 2)).low, -39);
  EXPECT_EQ(limits(seen(1, 2)).high, 311) << "it may be skewed";
}

TEST(StateLimits, KnowTransforms) {
  EXPECT_TRUE(std::isinf(limits(seen(0, 1), TransformKind::kNone).high));
  // Of min_max mean and deviation are the least value and the range.
  EXPECT_EQ(limits(seen(220, 100), TransformKind::kMinMax).high, 420);
  EXPECT_EQ(limits(seen(220, 100), TransformKind::kMinMax).low, 120);
  // √x from 0 to 3 is x from 0 to 9.
  EXPECT_EQ(limits(seen(1, 1, 0, 3), TransformKind::kSqrt).high, 18);
  EXPECT_TRUE(std::isinf(limits(seen(1, 1), TransformKind::kLog).high));
}

TEST(OutsideRange, FindsTheFirstStepOfEachChannel) {
  constexpr std::int64_t kSamples = 2, kRows = 4, kColumns = 6, kChannels = 3;
  const std::vector<Time> starts = {5 * kDay, 9 * kDay};
  // Channel 0 leaves its limits at step 3 of the second sample, at one point; channel 1 at step 2 of both,
  // downward; channel 2 is missing at a point and else inside.
  const auto value = [](int step, std::int64_t i) {
    const std::int64_t channel = i % kChannels, point = i / kChannels % (kRows * kColumns),
                       sample = i / kChannels / (kRows * kColumns);
    if (channel == 0) return step == 3 && sample == 1 && point == 17 ? 11.0 : 9.0;
    if (channel == 1) return step >= 2 && point == 3 ? -11.0 : 0.0;
    return point == 5 ? std::nan("") : 1.0;
  };
  struct Cut {
    int data;
    std::vector<int> domain;
    int tensor;
  };
  for (const Cut& cut : {Cut{1, {1, 1}, 1}, Cut{2, {1, 1}, 1}, Cut{1, {2, 1}, 3}}) {
    testing::run_test_ranks(cut.data * cut.domain[0] * cut.domain[1] * cut.tensor, [&](Communicator& world) {
      Mesh mesh(world, cut.data, cut.domain, cut.tensor);
      const Rank rank{world.context(), mesh};
      Layout layout{{kSamples, kRows, kColumns, kChannels}, {}};
      layout.placements[Mesh::kData] = Placement::shard(0);
      for (int dim = 0; dim < 2; ++dim) layout.placements[mesh.domain(dim)] = Placement::shard(1 + dim);
      layout.placements[mesh.tensor()] = Placement::shard(3);
      OutsideRange outside(std::vector<StateLimits>(kChannels, {-10, 10}));
      bool before = false;
      for (int step = 1; step <= 4; ++step) {
        const Array states = testing::make_piece(rank, layout, DType::kFloat64,
                                                 [&](std::int64_t i) { return value(step, i); });
        const bool any = outside.add(rank, layout, states, step, starts);
        if (step == 1) before = any;
      }
      EXPECT_FALSE(before);
      const std::vector<OutsideRange::Found> found = outside.find(world);
      ASSERT_EQ(found.size(), 2U);
      EXPECT_EQ(found[0].channel, 0);
      EXPECT_EQ(found[0].step, 3);
      EXPECT_EQ(found[0].start, starts[1]);
      EXPECT_TRUE(found[0].above);
      EXPECT_EQ(found[1].channel, 1);
      EXPECT_EQ(found[1].step, 2);
      EXPECT_EQ(found[1].start, starts[0]);
      EXPECT_FALSE(found[1].above);
    });
  }
}

}  // namespace outside_range_test
}  // namespace jigsaw
