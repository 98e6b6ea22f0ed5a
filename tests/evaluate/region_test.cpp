#include "evaluate/region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "support/error_of.h"

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
  EXPECT_EQ(testing::error_of<ConfigError>([] { parse_region("uk=49,120,-11,2"); }),
            "command line: --region uk=49,120,-11,2 is NAME=SOUTH,NORTH,WEST,EAST, and its north 120 is no "
            "latitude");
  EXPECT_EQ(testing::error_of<ConfigError>([] { parse_region("uk=61,49,-11,2"); }),
            "command line: --region uk=61,49,-11,2 is NAME=SOUTH,NORTH,WEST,EAST, and its south 61 is not "
            "south of its north 49");
  EXPECT_EQ(testing::error_of<ConfigError>([] { parse_region("uk=49,61,-11,5020"); }),
            "command line: --region uk=49,61,-11,5020 is NAME=SOUTH,NORTH,WEST,EAST, and its east 5020 is no "
            "longitude");
  EXPECT_TRUE(parse_region("equator=0,0,-180,180").holds(0, 10)) << "a row is a region";
}

TEST(Region, TakesLongitudesModulo360) {
  const Grid grid = make_geographic_grid(steps(90, -5, 37), steps(0, 5, 72));
  const auto columns = [&](double west, double east) {
    const Region region{"a", -90, 90, west, east};
    return std::ranges::count_if(grid.axes[1].coordinates,
                                 [&](double longitude) { return region.holds(0, longitude); });
  };
  EXPECT_EQ(columns(-10, 10), 5);
  EXPECT_EQ(columns(350, 370), 5);
  EXPECT_EQ(columns(170, -170), 5);
  EXPECT_EQ(columns(0, 360), 72);
  EXPECT_EQ(columns(1, 4), 0);
}

/// 50.2F is above 50.2, and 49.7F below 49.7.
TEST(Region, HoldsEdgesThatFilesHaveRounded) {
  const Region region{"a", 49.7, 50.2, -2.8, -1.3};
  for (const double latitude : {49.7, 50.2, double{49.7F}, double{50.2F}}) {
    for (const double longitude : {-2.8, -1.3, double{-2.8F}, double{-1.3F}, double{357.2F}, double{358.7F}})
      EXPECT_TRUE(region.holds(latitude, longitude)) << latitude << " " << longitude;
  }
  EXPECT_FALSE(region.holds(49.69, -2));
  EXPECT_FALSE(region.holds(50.21, -2));
  EXPECT_FALSE(region.holds(50, -2.81));
  EXPECT_FALSE(region.holds(50, -1.29));
}

/// Of a piece; the weights of all pieces are those of the grid's rows.
TEST(Region, WeighsThePointsOfAPiece) {
  const Grid grid = make_geographic_grid(steps(90, -5, 37), steps(0, 5, 72));
  const std::vector<double> rows = grid.row_weights();
  const Region region{"a", -20, 20, -10, 10};
  // Rows 13 to 23, of which 14 to 22 are inside; columns 70 to 71, both inside, from −10 on.
  const std::vector<double> piece =
      region.point_weights(grid, {{13, 69}, {11, 3}}, nullptr, CellWeights(rows));
  ASSERT_EQ(piece.size(), 33U);
  for (std::size_t i = 0; i < piece.size(); ++i) {
    const std::size_t row = 13 + i / 3, column = 69 + i % 3;
    EXPECT_EQ(piece[i], row >= 14 && row <= 22 && column >= 70 ? rows[row] : 0) << i;
  }
  EXPECT_NEAR(sum(Region{"all"}.point_weights(grid, Box::whole(grid.shape()), nullptr, CellWeights(rows))),
              37 * 72, 1e-9);
}

/// Whose rows and columns are numbers, not degrees.
TEST(Region, GoesByThePlacesOfProjectedPoints) {
  const Grid grid = make_plain_grid({120, 2});
  const Box piece{{100, 0}, {2, 2}};
  const PointPlaces places{{49, 51, 50, std::nan("")}, {-1, 359, 2, std::nan("")}};
  const CellWeights alike(std::vector<double>(120, 1.0));
  const Region box{"a", 50, 60, -5, 1};
  const std::vector<double> inside = box.point_weights(grid, piece, &places, alike);
  EXPECT_EQ(inside, (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(Region{"all"}.point_weights(grid, piece, &places, alike), std::vector<double>(4, 1.0));
  // Of cells of other areas, mean 4 over the grid: 1, 2 … of the piece.
  const CellWeights areas(120, 4, [](const Box& plane, std::span<double> out) {
    EXPECT_EQ(plane, (Box{{100, 0}, {2, 2}}));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(i + 1);
  });
  EXPECT_EQ(box.point_weights(grid, piece, &places, areas), (std::vector<double>{0, 0.5, 0, 0}));
  EXPECT_EQ(Region{"all"}.point_weights(grid, piece, &places, areas),
            (std::vector<double>{0.25, 0.5, 0.75, 1}));
}

TEST(Region, UsualOnesAreThoseOfTheGrid) {
  const Grid globe = make_geographic_grid(steps(90, -5, 37), steps(0, 5, 72)),
             area = make_geographic_grid(steps(60, -1, 11), steps(-10, 1, 12));
  EXPECT_EQ(usual_regions(globe).size(), 4U);
  EXPECT_EQ(usual_regions(area).size(), 1U);
}

}  // namespace
}  // namespace jigsaw
