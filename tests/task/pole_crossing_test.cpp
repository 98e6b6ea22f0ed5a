#include "task/pole_crossing.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace pole_crossing_test {

Channel channel_of(const std::string& variable, bool component) {
  Channel channel;
  channel.name = variable;
  channel.field = {variable, {}};
  channel.vector_component = component;
  return channel;
}

TEST(PoleCrossing, TurnsComponentsRoundInTheirOwnUnits) {
  Statistics statistics;
  statistics.fields["t2m"] = {"K", 280, 20, 2};
  statistics.fields["u10"] = {"m s**-1", 3, 8, 2};
  Channel forcing = channel_of("", false);
  forcing.role = Role::kForcing;
  const PoleCrossing crossing =
      pole_crossing({channel_of("t2m", false), channel_of("u10", true), forcing}, statistics);
  ASSERT_EQ(crossing.factor, (std::vector<double>{1, -1, 1}));
  const double wind = 11, normalised = (wind - 3) / 8;
  EXPECT_DOUBLE_EQ(crossing.factor[1] * normalised + crossing.offset[1], (-wind - 3) / 8);
  EXPECT_EQ(crossing.offset[0], 0);
  EXPECT_EQ(crossing.offset[2], 0);
}

TEST(PoleCrossing, OfScalarsIsNothing) {
  EXPECT_EQ(pole_crossing({channel_of("t2m", false)}, {}), PoleCrossing{});
}

}  // namespace pole_crossing_test
}  // namespace jigsaw
