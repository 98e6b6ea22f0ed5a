#include "grids/axis_map.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace axis_map_test {

using Runs = std::vector<AxisRun>;

TEST(AxisMap, FindsPointsWhereverTheyStand) {
  const std::vector<double> wanted = {0, 90, 180, 270};
  EXPECT_EQ(AxisMap::make(wanted, {0, 90, 180, 270}, true)->runs(0, 4), (Runs{{0, 4, 0, 1}}));
  EXPECT_EQ(AxisMap::make(wanted, {-180, -90, 0, 90}, true)->runs(0, 4), (Runs{{0, 2, 2, 1}, {2, 2, 0, 1}}));
  EXPECT_EQ(AxisMap::make(wanted, {-180, -90, 0, 90}, true)->runs(1, 2), (Runs{{1, 1, 3, 1}, {2, 1, 0, 1}}));
  EXPECT_EQ(AxisMap::make({60, 30, 0}, {0, 15, 30, 45, 60}, false)->runs(1, 2), (Runs{{1, 2, 2, -2}}));
  EXPECT_EQ(AxisMap::make({359.99999, 10}, {0, 10}, true)->runs(0, 2), (Runs{{0, 2, 0, 1}}));
  EXPECT_TRUE(AxisMap::make({1}, {1.00000001}, false));
  EXPECT_FALSE(AxisMap::make({1}, {1.001}, false));
  EXPECT_FALSE(AxisMap::make({0, 45}, {0, 90, 180}, true));
  EXPECT_FALSE(AxisMap::make({-90}, {270}, false));
  EXPECT_FALSE(AxisMap::make({1}, {}, true));
}

TEST(AxisMap, LongitudesLoseTheirJumps) {
  EXPECT_EQ(without_jumps({170, 180, -170}), (std::vector<double>{170, 180, 190}));
  EXPECT_EQ(without_jumps({10, 0, 350}), (std::vector<double>{10, 0, -10}));
  EXPECT_EQ(without_jumps({0, 120, 240, 360}), (std::vector<double>{0, 120, 240}));
  EXPECT_EQ(without_jumps({5}), (std::vector<double>{5}));
}

TEST(AxisMap, FollowsTheOrderOfOthers) {
  using Numbers = std::vector<double>;
  EXPECT_EQ(latitudes_like({-1, 0, 1}, {90, -90}), (Numbers{1, 0, -1}));
  EXPECT_EQ(latitudes_like({1, 0, -1}, {90, -90}), (Numbers{1, 0, -1}));
  EXPECT_EQ(latitudes_like({1}, {-90, 90}), (Numbers{1}));
  EXPECT_EQ(longitudes_like({-180, -90, 0, 90}, {0, 270}), (Numbers{0, 90, 180, 270}));
  EXPECT_EQ(longitudes_like({0, 90, 180, 270}, {-180, 90}), (Numbers{-180, -90, 0, 90}));
  EXPECT_EQ(longitudes_like({90, 0, -90, -180}, {0, 270}), (Numbers{0, 90, 180, 270}));
  EXPECT_EQ(longitudes_like({0, 90, 180, 270}, {45, 315}), (Numbers{0, 90, 180, 270})) << "other points";
  EXPECT_EQ(longitudes_like({10, 20, 30}, {30, 20}), (Numbers{30, 20, 10})) << "a part of the circle";
  EXPECT_TRUE(alike({{1, 0}, {0, 270}}, {{1, 0.00001}, {360, -90}}));
  EXPECT_FALSE(alike({{1, 0}, {0, 270}}, {{0, 1}, {0, 270}}));
  EXPECT_FALSE(alike({{1, 0}, {0, 270}}, {{1, 0}, {-180, 90}}));
}

TEST(AxisMap, RegionsIncludeTheirEnds) {
  const std::vector<double> circle = {0, 90, 180, 270};
  EXPECT_EQ(longitudes_within(circle, -90, 90), (std::vector<double>{-90, 0, 90}));
  EXPECT_EQ(longitudes_within(circle, 270, 90), (std::vector<double>{270, 360, 450}));
  EXPECT_EQ(longitudes_within(circle, 90, -90), (std::vector<double>{90, 180, 270}));
  EXPECT_EQ(longitudes_within(circle, -180, 180), (std::vector<double>{-180, -90, 0, 90}));
  EXPECT_EQ(longitudes_within({270, 180, 90, 0}, 0, 180), (std::vector<double>{180, 90, 0}));
  EXPECT_TRUE(longitudes_within(circle, 10, 20).empty());
  EXPECT_EQ(longitudes_within({0, 90, 180, 270, 360}, -90, 90), (std::vector<double>{-90, 0, 90}));
  EXPECT_EQ(longitudes_within({0, 15, 345, 360}, -15, 15), (std::vector<double>{-15, 0, 15}));
  EXPECT_EQ(latitudes_within({60, 50, 40}, 40, 55), (std::vector<double>{50, 40}));
  EXPECT_EQ(every_of({1, 2, 3, 4, 5}, 2), (std::vector<double>{1, 3, 5}));
}

}  // namespace axis_map_test
}  // namespace jigsaw
