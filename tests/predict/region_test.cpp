#include "predict/region.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace jigsaw {
namespace {

std::vector<double> steps(double first, double step, int count) {
  std::vector<double> result;
  for (int i = 0; i < count; ++i) result.push_back(first + step * i);
  return result;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(Region, IsReadFromText) {
  const Region region = parse_region("uk=49,61,-11,2");
  EXPECT_EQ(region.name, "uk");
  EXPECT_EQ(region.south, 49);
  EXPECT_EQ(region.north, 61);
  EXPECT_EQ(region.west, -11);
  EXPECT_EQ(region.east, 2);
  for (const char* wrong : {"", "uk", "uk=", "=1,2,3,4", "uk=1,2,3", "uk=1,2,3,4,5", "uk=1,2,3,x",
                            "uk=2,1,3,4", "uk=1,2,3,nan", "uk=1,2,3,4,"}) {
    EXPECT_THROW(parse_region(wrong), ConfigError) << wrong;
  }
}

TEST(Region, TakesLongitudesModulo360) {
  const Grid grid = make_geographic_grid(steps(90, -5, 37), steps(0, 5, 72));
  EXPECT_EQ(sum(Region{"a", -90, 90, -10, 10}.columns(grid)), 5);
  EXPECT_EQ(sum(Region{"a", -90, 90, 350, 370}.columns(grid)), 5);
  EXPECT_EQ(sum(Region{"a", -90, 90, 170, -170}.columns(grid)), 5);
  EXPECT_EQ(sum(Region{"a", -90, 90, 0, 360}.columns(grid)), 72);
  EXPECT_EQ(sum(Region{"a", -90, 90, 1, 4}.columns(grid)), 0);
  const std::vector<double> ones(37, 1.0);
  EXPECT_EQ(sum(Region{"a", -20, 20}.row_weights(grid, ones)), 9);
}

TEST(Region, UsualOnesAreThoseOfTheGrid) {
  const Grid globe = make_geographic_grid(steps(90, -5, 37), steps(0, 5, 72)),
             area = make_geographic_grid(steps(60, -1, 11), steps(-10, 1, 12));
  EXPECT_EQ(usual_regions(globe).size(), 4U);
  EXPECT_EQ(usual_regions(area).size(), 1U);
  EXPECT_NO_THROW(require_points({"a", 50, 51, -10, -9}, area));
  EXPECT_THROW(require_points({"a", 0, 40, -10, -9}, area), ConfigError);
  EXPECT_THROW(require_points({"a", 50, 51, 20, 30}, area), ConfigError);
}

}  // namespace
}  // namespace jigsaw
