// Weights of points on lists, against loops over all pairs of points or cells.
#include "grids/source_points.h"

#include "grids/listed_grids.h"
#include "io/fixtures.h"
#include "io/grids/source_points_fixtures.h"

namespace jigsaw {
namespace source_points_test {

TEST(RowPoints, EqualLoopsOverAllPointsAndCells) {
  struct {
    const char* name;
    Rows grid;
    Numbers latitudes, longitudes;
  } const cases[] = {
      {"octahedral", octahedral(8, false), range(90, -7.5, 25), range(0, 7.5, 48)},
      {"northward, grid from the west", octahedral(8, true), range(-88, 8, 23), range(-180, 8, 45)},
      {"coarser", octahedral(16, false), range(75, -30, 6), range(0, 30, 12)},
      {"HEALPix", healpix(4), range(84, -7, 25), range(3, 7.2, 50)},
      {"HEALPix, poles", healpix(8), range(90, -5, 37), range(0, 5, 72)},
      {"an area westward", westward(area()), range(56, -1.5, 17), range(-13, 1.5, 20)},
      {"round the globe westward", westward(octahedral(8, false)), range(90, -7.5, 25), range(0, 7.5, 48)},
      {"to and fro", every_other_westward(area()), range(56, -1.5, 17), range(-13, 1.5, 20)},
      {"area", area(), range(56, -1.5, 17), range(-13, 1.5, 20)},
  };
  unsigned seed = 1;
  for (const auto& [name, grid, latitudes, longitudes] : cases) {
    for (const Rows& rows : {grid, in_single_precision(grid)}) {
      const auto points = RowPoints::find(rows.latitudes(), rows.longitudes());
      ASSERT_NE(points, nullptr) << name;
      EXPECT_EQ(points->rows(), std::ssize(grid.rows));
      const TargetPoints wanted = targets(latitudes, longitudes);
      for (const Regrid method : {Regrid::kNearest, Regrid::kLinear, Regrid::kConservative}) {
        for (const double missing : {0.0, 0.3}) {
          const Numbers values = random_values(rows.latitudes().size(), missing, seed++);
          const PointWeights weights = points->weights(wanted, method);
          EXPECT_FALSE(weights.beyond()) << name;
          const Numbers found = applied(weights, values, 0, wanted.latitude.size());
          const Numbers exact = expected(grid, values, wanted, method);
          ASSERT_EQ(found.size(), exact.size());
          const double most = &rows == &grid ? 1e-10 : 1e-3;  // of values between 280 and 300
          for (std::size_t i = 0; i < found.size(); ++i) {
            if (std::isnan(exact[i]) != std::isnan(found[i]) && missing > 0 && &rows != &grid) continue;
            ASSERT_EQ(std::isnan(found[i]), std::isnan(exact[i])) << name << " " << i;
            if (!std::isnan(exact[i])) {
              ASSERT_NEAR(found[i], exact[i], most)
                  << name << ", method " << static_cast<int>(method) << ", target " << i;
            }
          }
        }
      }
    }
  }
}

// Σ area · value is the same on both.
TEST(RowPoints, ConservativeKeepsTheMeanOverTheGlobe) {
  const Rows grid = octahedral(16, false);
  const auto points = RowPoints::find(grid.latitudes(), grid.longitudes());
  ASSERT_NE(points, nullptr);
  const Numbers values = random_values(grid.latitudes().size(), 0, 3);
  const Numbers latitudes = range(85, -10, 18), longitudes = range(0, 10, 36);
  const Numbers found = applied(points->weights(targets(latitudes, longitudes), Regrid::kConservative),
                                values, 0, latitudes.size() * longitudes.size());
  const Numbers areas = make_geographic_grid(latitudes, longitudes).row_weights();
  double mean = 0, exact = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    mean += areas[i / longitudes.size()] * found[i] / static_cast<double>(found.size());
  Numbers all;
  for (const Rows::Row& row : grid.rows) all.push_back(row.latitude);
  const Numbers own = make_geographic_grid(all, {0, 1}).row_weights();
  std::size_t at = 0;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    const std::size_t count = grid.rows[i].longitudes.size();
    for (std::size_t k = 0; k < count; ++k)
      exact += own[i] * values[at++] / static_cast<double>(count * grid.rows.size());
  }
  EXPECT_NEAR(mean, exact, 1e-10);
}

// Only what is needed of each row is read.
TEST(RowPoints, ReadThePartsOfRowsAroundTheTargets) {
  Rows grid;
  for (int i = 0; i < 40; ++i) grid.rows.push_back({78.0 - 4 * i, range(0, 360.0 / 8000, 8000)});
  const auto points = RowPoints::find(grid.latitudes(), grid.longitudes());
  ASSERT_NE(points, nullptr);
  const PointWeights inside = points->weights(targets({12, 11, 10}, range(45, 0.1, 40)), Regrid::kLinear);
  EXPECT_EQ(inside.boxes().size(), 2U);
  EXPECT_NEAR(static_cast<double>(inside.read()), 2 * 3.9 / 0.045, 6);
  const PointWeights across = points->weights(targets({12, 11, 10}, range(-2, 0.1, 40)), Regrid::kLinear);
  EXPECT_LT(across.read(), 4 * 100 + 2 * 1024);
  // And what is read belongs to them.
  const Numbers values = random_values(grid.latitudes().size(), 0, 6);
  const TargetPoints wanted = targets({12, 11, 10}, range(-2, 0.1, 40));
  expect_near(applied(across, values, 0, 120), expected(grid, values, wanted, Regrid::kLinear), "in parts");
}

TEST(RowPoints, OthersAreNoRows) {
  const auto none = [](const Numbers& latitudes, const Numbers& longitudes) {
    return RowPoints::find(latitudes, longitudes) == nullptr;
  };
  const Rows grid = octahedral(4, false);
  const Numbers latitudes = grid.latitudes(), longitudes = grid.longitudes();
  EXPECT_FALSE(none(latitudes, longitudes));
  Numbers moved = longitudes;
  moved[7] += 0.5;
  EXPECT_TRUE(none(latitudes, moved));
  moved = latitudes;
  moved[7] += 0.5;
  EXPECT_TRUE(none(moved, longitudes));
  EXPECT_TRUE(none(random_values(1000, 0, 1), random_values(1000, 0, 2)));
  EXPECT_TRUE(none({}, {}));
  EXPECT_TRUE(none({10, 10, 10, 10}, {0, 1, 2, 3}));
  EXPECT_TRUE(none({10, 10, 10, std::nan("")}, {0, 90, 180, 270}));
  EXPECT_TRUE(none({std::nan(""), 10, 10, 10}, {0, 90, 180, 270}));
  // More than once round.
  EXPECT_TRUE(none({10, 10, 10, 10, 20, 20, 20, 20}, {0, 140, 280, 60, 0, 140, 280, 60}));
  // Two rows of the same latitude.
  EXPECT_TRUE(none({10, 10, 10, 10, 20, 20, 20, 20, 10, 10, 10, 10}, range(0, 90, 12)));
}

TEST(ScatteredPoints, EqualLoopsOverAllPoints) {
  std::mt19937 generator(11);
  std::uniform_real_distribution<double> uniform(-1, 1);
  struct Cloud {
    const char* name;
    Numbers latitudes, longitudes;
  };
  std::vector<Cloud> clouds(3);
  clouds[0].name = "the globe";
  for (int i = 0; i < 3000; ++i) {
    clouds[0].latitudes.push_back(std::asin(uniform(generator)) * 180 / std::numbers::pi);
    clouds[0].longitudes.push_back(180 * uniform(generator));
  }
  clouds[1].name = "two areas, some without a place";
  for (int i = 0; i < 1500; ++i) {
    const double middle = i % 2 == 0 ? 50 : -60;
    clouds[1].latitudes.push_back(i % 50 == 0 ? std::nan("") : middle + 10 * uniform(generator));
    clouds[1].longitudes.push_back((i % 2 == 0 ? 0 : 178) + 15 * uniform(generator));
  }
  clouds[2] = {"five points", {10, 12, 14, -20, 80}, {0, 2, -3, 100, 359}};
  const Numbers all_latitudes = range(90, -9, 21), all_longitudes = range(0, 11.25, 32);
  unsigned seed = 50;
  for (const auto& [name, latitudes, longitudes] : clouds) {
    for (const auto& [down, along] :
         {std::pair{all_latitudes, all_longitudes}, std::pair{range(58, -1.7, 8), range(-9, 2.3, 9)},
          std::pair{range(-52, -2.2, 9), range(165, 3.1, 10)}}) {
      TargetPoints wanted = targets(down, along);
      wanted.latitude[3] = wanted.longitude[3] = std::nan("");
      const ScatteredPoints points(latitudes, longitudes, 0);
      for (const Regrid method : {Regrid::kNearest, Regrid::kInverseDistance}) {
        for (const double missing : {0.0, 0.3}) {
          const Numbers values = random_values(latitudes.size(), missing, seed++);
          const PointWeights weights = points.weights(wanted, method);
          expect_near(applied(weights, values, 0, wanted.latitude.size()),
                      expected_of_scattered(latitudes, longitudes, values, wanted, method),
                      concat(name, ", method ", static_cast<int>(method), ", from ", down[0]));
          // One alone comes out of the same points.
          for (std::size_t p = 0; p < wanted.latitude.size(); p += 17) {
            const TargetPoints one{{wanted.latitude[p]}, {wanted.longitude[p]}, {}};
            const double alone = applied(points.weights(one, method), values, 0, 1)[0],
                         with_others = applied(weights, values, 0, wanted.latitude.size())[p];
            EXPECT_TRUE(alone == with_others || (std::isnan(alone) && std::isnan(with_others)));
          }
        }
      }
    }
  }
}

/// By healpy 1.20, pix2ang.
TEST(ListedGrids, PixelsOfHealpixAreWhereHealpyHasThem) {
  struct {
    std::int64_t sides;
    bool nested;
    std::size_t pixel;
    double latitude, longitude;
  } const cases[] = {
      {1, false, 6, 0.0000000000, 180.0000000000},       {1, true, 9, -41.8103148958, 135.0000000000},
      {4, false, 0, 78.2841476051, 45.0000000000},       {4, false, 7, 66.4435356909, 157.5000000000},
      {4, false, 23, 54.3409123039, 345.0000000000},     {4, false, 24, 41.8103148958, 11.2500000000},
      {4, false, 40, 30.0000000000, 0.0000000000},       {4, false, 71, 19.4712206345, 348.7500000000},
      {4, false, 88, 0.0000000000, 11.2500000000},       {4, false, 119, -9.5940682269, 337.5000000000},
      {4, false, 120, -19.4712206345, 11.2500000000},    {4, false, 167, -41.8103148958, 348.7500000000},
      {4, false, 168, -54.3409123039, 15.0000000000},    {4, false, 191, -78.2841476051, 315.0000000000},
      {4, true, 0, 9.5940682269, 45.0000000000},         {4, true, 7, 54.3409123039, 75.0000000000},
      {4, true, 23, 54.3409123039, 165.0000000000},      {4, true, 40, 30.0000000000, 202.5000000000},
      {4, true, 71, 9.5940682269, 22.5000000000},        {4, true, 72, -9.5940682269, 337.5000000000},
      {4, true, 119, 9.5940682269, 292.5000000000},      {4, true, 168, -54.3409123039, 195.0000000000},
      {4, true, 191, -9.5940682269, 315.0000000000},     {64, false, 8063, 42.6098069776, 359.2857142857},
      {64, false, 20000, 10.8069228749, 225.7031250000}, {64, false, 49151, -89.2690292916, 315.0000000000},
      {64, true, 5, 2.3880154633, 47.1093750000},        {64, true, 8063, 83.4176890859, 175.0000000000},
      {64, true, 8064, 73.1268819145, 119.3478260870},   {64, true, 20000, 12.6356250930, 345.9375000000},
  };
  for (const auto& [sides, nested, pixel, latitude, longitude] : cases) {
    const ListedPlaces places = healpix_places(sides, nested);
    ASSERT_EQ(std::ssize(places.latitudes), 12 * sides * sides);
    EXPECT_NEAR(places.latitudes[pixel], latitude, 1e-8) << sides << nested << pixel;
    EXPECT_NEAR(places.longitudes[pixel], longitude, 1e-8) << sides << nested << pixel;
  }
}

}  // namespace source_points_test
}  // namespace jigsaw
