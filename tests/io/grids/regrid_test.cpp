// Fields on other grids than the data's, against loops over all pairs of points or cells.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "io/fixtures.h"
#include "io/grids/regrid_fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace regrid_test {

/// A field of one time on latitudes × longitudes, in the order in which they stand in a file.
struct Plane {
  Numbers latitudes, longitudes, values;

  double at(std::size_t row, std::size_t column) const { return values[row * longitudes.size() + column]; }
};

Plane random_plane(const Numbers& latitudes, const Numbers& longitudes, double missing, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Plane plane{latitudes, longitudes, {}};
  for (std::size_t i = 0; i < latitudes.size() * longitudes.size(); ++i) {
    const bool is_missing = 0.5 * (uniform(generator) + 1) < missing;
    plane.values.push_back(is_missing ? std::nan("") : 280 + 20 * uniform(generator));
  }
  return plane;
}

std::string write(const testing::TemporaryFolder& folder, const std::string& name,
                  const std::string& variable, const Plane& plane, double hours = 0) {
  const std::string path = concat(folder.path(), "/", name);
  testing::NetcdfWriter file(path, NC_NETCDF4);
  const std::vector<int> dimensions = {add_axis(file, "time", {hours}, "hours since 2020-01-01"),
                                       add_axis(file, "latitude", plane.latitudes, "degrees_north"),
                                       add_axis(file, "longitude", plane.longitudes, "degrees_east")};
  const int field = file.variable(variable, NC_DOUBLE, dimensions);
  file.text(field, "units", "K");
  file.end();
  file.put(field, plane.values);
  return path;
}

/// Limits of the cells of equally spaced points.
std::pair<double, double> cell(const Numbers& centres, std::size_t i, bool latitude) {
  const double half = std::abs(centres[1] - centres[0]) / 2;
  double low = centres[i] - half, high = centres[i] + half;
  if (latitude) {
    low = std::max(low, -90.0);
    high = std::min(high, 90.0);
  }
  return {low, high};
}

/// Overlaps of one cell with all of another axis.
Numbers overlaps(const Numbers& there, const Numbers& wanted, std::size_t point, bool latitude) {
  const auto [low, high] = cell(wanted, point, latitude);
  Numbers weights;
  double sum = 0;
  for (std::size_t i = 0; i < there.size(); ++i) {
    const auto [from, to] = cell(there, i, latitude);
    double overlap = 0;
    for (const double turn : {-720.0, -360.0, 0.0, 360.0, 720.0}) {
      if (latitude && turn != 0) continue;
      const double a = std::max(low, from + turn), b = std::min(high, to + turn);
      if (b <= a) continue;
      const auto sine = [](double degrees) { return std::sin(degrees * std::numbers::pi / 180); };
      overlap += latitude ? sine(b) - sine(a) : b - a;
    }
    weights.push_back(overlap);
    sum += overlap;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

Numbers expected(const Plane& plane, const Numbers& latitudes, const Numbers& longitudes, Regrid method) {
  const auto weights = [&](const Numbers& there, const Numbers& wanted, std::size_t i, bool latitude) {
    if (method == Regrid::kConservative) return overlaps(there, wanted, i, latitude);
    return method == Regrid::kLinear ? hats(there, wanted[i], !latitude)
                                     : nearest(there, wanted[i], !latitude);
  };
  Numbers result;
  for (std::size_t i = 0; i < latitudes.size(); ++i) {
    const Numbers down = weights(plane.latitudes, latitudes, i, true);
    for (std::size_t j = 0; j < longitudes.size(); ++j) {
      const Numbers along = weights(plane.longitudes, longitudes, j, false);
      double sum = 0, there = 0;
      for (std::size_t y = 0; y < down.size(); ++y) {
        for (std::size_t x = 0; x < along.size(); ++x) {
          const double weight = down[y] * along[x];
          if (weight == 0 || std::isnan(plane.at(y, x))) continue;
          sum += weight * plane.at(y, x);
          there += weight;
        }
      }
      result.push_back(there < 0.5 - 1e-3 ? std::nan("") : sum / there);
    }
  }
  return result;
}

struct Case {
  std::string name;
  Numbers there_latitudes, there_longitudes, latitudes, longitudes;
};

std::vector<Case> cases() {
  return {
      {"finer with the poles", range(90, -5, 37), range(0, 5, 72), range(90, -15, 13), range(0, 15, 24)},
      {"coarser", range(90, -30, 7), range(0, 30, 12), range(90, -10, 19), range(0, 10, 36)},
      {"half a row off the poles, from west", range(-87, 6, 30), range(-176, 8, 45), range(90, -15, 13),
       range(0, 15, 24)},
      {"the grid from west", range(90, -5, 37), range(0, 5, 72), range(-82.5, 15, 12), range(-180, 15, 24)},
      {"an area of the globe", range(-88, 4, 45), range(2, 4, 90), range(60, -2.5, 13), range(-25, 2.5, 21)},
      {"an area of an area across Greenwich", range(70, -2, 26), range(-30, 2, 31), range(60, -3, 11),
       range(-20, 3, 14)},
      {"longitudes that stand sorted",
       range(70, -2, 26),
       {0, 2, 4, 6, 8, 10, 350, 352, 354, 356, 358},
       range(66, -3, 10),
       range(-8, 3, 6)},
      {"eastward numbers beyond a turn", range(70, -2, 26), range(320, 2, 41), range(60, -3, 11),
       range(-30, 3, 21)},
  };
}

TEST(Regrid, EqualsLoopsOverAllPointsAndCells) {
  unsigned seed = 1;
  for (const Case& one : cases()) {
    for (const Regrid method : {Regrid::kNearest, Regrid::kLinear, Regrid::kConservative}) {
      for (const double missing : {0.0, 0.3}) {
        const testing::TemporaryFolder folder;
        const Plane grid = random_plane(one.latitudes, one.longitudes, 0, seed++);
        const Plane there = random_plane(one.there_latitudes, one.there_longitudes, missing, seed++);
        FileSet files({write(folder, "a.nc", "t2m", grid), write(folder, "b.nc", "sst", there)},
                      {.regrid = {.method = method}});
        files.select(kT2m, true);
        files.select(kSst, true);
        EXPECT_EQ(read_all(files, kT2m), grid.values) << "the grid's own fields stay as they are";
        EXPECT_FALSE(files.exact_in_float(kSst));
        const Numbers found = read_all(files, kSst);
        const std::string what =
            concat(one.name, ", method ", static_cast<int>(method), ", missing ", missing);
        expect_near(found, expected(there, one.latitudes, one.longitudes, method), what);
        expect_pieces(files, kSst, found);
      }
    }
  }
}

// Σ area · value is the same on both grids.
TEST(Regrid, ConservativeKeepsTheMeanOverTheGlobe) {
  const testing::TemporaryFolder folder;
  const Plane there = random_plane(range(90, -2.5, 73), range(0, 2.5, 144), 0, 5);
  FileSet files({write(folder, "b.nc", "sst", there)},
                {.regrid = {Regrid::kConservative, {}, {90, -90, 7.5}, {0, 352.5, 7.5}}});
  files.select(kSst, true);
  const Numbers found = read_all(files, kSst);
  const auto mean = [](const Grid& grid, const Numbers& values) {
    const Numbers weights = grid.row_weights();
    const std::size_t columns = grid.axes[1].coordinates.size();
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += weights[i / columns] * values[i];
    return sum / static_cast<double>(values.size());
  };
  EXPECT_EQ(files.grid().shape(), Shape({25, 48}));
  EXPECT_NEAR(mean(files.grid(), found),
              mean(make_geographic_grid(there.latitudes, there.longitudes), there.values), 1e-10);
}

// 0.2 between 0 and 0.4: rounding does not decide, but that of two as near the southern and western one
// counts.
TEST(Regrid, NearestOfTwoAsNearIsTheSouthernOrWesternOne) {
  const testing::TemporaryFolder folder;
  Plane there{range(40, 0.4, 26), range(0, 0.4, 900), {}};
  for (std::size_t i = 0; i < there.latitudes.size() * there.longitudes.size(); ++i)
    there.values.push_back(static_cast<double>(i));
  FileSet files({write(folder, "b.nc", "sst", there)},
                {.regrid = {Regrid::kNearest, {}, {40, 50, 0.2}, {0, 359.8, 0.2}}});
  files.select(kSst, true);
  const Numbers found = read_all(files, kSst);
  for (std::size_t i = 0; i < 51; ++i) {
    for (std::size_t j = 0; j < 1800; ++j)
      ASSERT_EQ(found[i * 1800 + j], there.at(i / 2, j / 2)) << i << " " << j;
  }
}

// What the final analysis lacks comes from the preliminary one before anything is made of it.
TEST(Regrid, VersionsAreFilledWhereTheyStand) {
  const testing::TemporaryFolder folder;
  const Numbers latitudes = range(60, -15, 3), longitudes = range(0, 15, 4);
  const std::string path = folder.path() + "/versions.nc";
  {
    testing::NetcdfWriter file(path, NC_NETCDF4);
    const std::vector<int> dimensions = {add_axis(file, "time", {0}, "hours since 2020-01-01"),
                                         add_axis(file, "expver", {1, 5}, ""),
                                         add_axis(file, "latitude", latitudes, "degrees_north"),
                                         add_axis(file, "longitude", longitudes, "degrees_east")};
    const int sst = file.variable("sst", NC_DOUBLE, dimensions);
    file.end();
    Numbers values(24, 1.0);
    std::fill(values.begin() + 12, values.end(), 100.0);
    values[5] = std::nan("");
    file.put(sst, values);
  }
  FileSet files({path}, {.regrid = {Regrid::kLinear, {}, {45, 35, 5}, {5, 15, 5}}});
  files.select(kSst, true);
  const Numbers found = read_all(files, kSst);
  EXPECT_NEAR(found[0], 34, 1e-9);
  EXPECT_NEAR(found[1], 67, 1e-9);
  EXPECT_NEAR(found[2], 100, 1e-9);
}

TEST(Regrid, AFileWithoutColumnsIsAnError) {
  const testing::TemporaryFolder folder;
  const Plane grid = random_plane(range(60, -2, 11), range(-10, 2, 11), 0, 1);
  const std::string a = write(folder, "a.nc", "t2m", grid),
                    b = write(folder, "b.nc", "sst", {range(60, -2, 11), {}, {}});
  FileSet files({a, b}, {.regrid = {.method = Regrid::kLinear}});
  files.select(kT2m, true);
  const std::string why = message_of<DataError>([&] { files.select(kSst, true); });
  EXPECT_NE(why.find("sst in " + b + ": the longitude axis has no points"), std::string::npos) << why;
}

// A named grid, cut to a region; every second of its points.
TEST(Regrid, AGridCanBeNamed) {
  const testing::TemporaryFolder folder;
  const Plane there = random_plane(range(90, -5, 37), range(0, 5, 72), 0, 5);
  const std::string path = write(folder, "b.nc", "sst", there);
  FileSet whole({path}, {.regrid = {Regrid::kLinear, {}, {-90, 90, 7.5}, {0, 352.5, 7.5}}});
  whole.select(kSst, true);
  EXPECT_EQ(whole.grid().axes[0].coordinates, range(-90, 7.5, 25));
  EXPECT_EQ(whole.grid().axes[1].coordinates, range(0, 7.5, 48));
  EXPECT_TRUE(whole.grid().periodic);
  expect_near(read_all(whole, kSst), expected(there, range(-90, 7.5, 25), range(0, 7.5, 48), Regrid::kLinear),
              "a named grid");
  const FieldDescription description = whole.describe(kSst);
  EXPECT_EQ(description.rows.values, range(-90, 7.5, 25));
  EXPECT_EQ(description.columns.values, range(0, 7.5, 48));
  FileSet part({path}, {.region = {{-30, 30}, {-30, 30}},
                        .every = {2},
                        .regrid = {Regrid::kLinear, {}, {-90, 90, 7.5}, {0, 352.5, 7.5}}});
  part.select(kSst, true);
  expect_near(read_all(part, kSst), expected(there, range(-30, 15, 5), range(-30, 15, 5), Regrid::kLinear),
              "a part of it");
}

// A grid of every fourth row and column of a file, of whose others means over cells lose none.
TEST(Regrid, MeansOverCellsOfEveryFourthPoint) {
  const testing::TemporaryFolder folder;
  const Plane there = random_plane(range(90, -5, 37), range(0, 5, 72), 0, 5);
  const std::string path = write(folder, "b.nc", "sst", there);
  const Numbers latitudes = range(90, -20, 10), longitudes = range(0, 20, 18);
  for (const Regrid method : {Regrid::kLinear, Regrid::kConservative}) {
    FileSet files({path}, {.every = {4}, .regrid = {.method = method}});
    files.select(kSst, true);
    EXPECT_EQ(files.grid().axes[0].coordinates, latitudes);
    expect_near(read_all(files, kSst), expected(there, latitudes, longitudes, method), "every fourth");
  }
}

TEST(Regrid, EachVariableMayHaveItsMethod) {
  const testing::TemporaryFolder folder;
  const Plane grid = random_plane(range(90, -15, 13), range(0, 15, 24), 0, 1);
  const Plane there = random_plane(range(90, -5, 37), range(2.5, 5, 72), 0, 2);
  FileSet files({write(folder, "a.nc", "t2m", grid), write(folder, "b.nc", "sst", there),
                 write(folder, "c.nc", "slt", there)},
                {.regrid = {Regrid::kConservative, {{"slt", Regrid::kNearest}}, {}, {}}});
  const Field soil{"slt", {}};
  for (const Field& field : {kT2m, kSst, soil}) files.select(field, true);
  expect_near(read_all(files, kSst), expected(there, grid.latitudes, grid.longitudes, Regrid::kConservative),
              "sst");
  expect_near(read_all(files, soil), expected(there, grid.latitudes, grid.longitudes, Regrid::kNearest),
              "slt");
}

TEST(Regrid, WhatDoesNotReachSoFarIsRefused) {
  const testing::TemporaryFolder folder;
  const Plane grid = random_plane(range(60, -2, 11), range(-10, 2, 11), 0, 1);
  const std::string a = write(folder, "a.nc", "t2m", grid);
  const auto why = [&](const Numbers& latitudes, const Numbers& longitudes, Regrid method) {
    const std::string b = write(folder, "b.nc", "sst", random_plane(latitudes, longitudes, 0, 2));
    FileSet files({a, b}, {.regrid = {.method = method}});
    files.select(kT2m, true);
    return message_of<DataError>([&] { files.select(kSst, true); });
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(why(range(59, -3, 11), range(-10, 3, 11), Regrid::kNone),
           "; data.regrid with \"method\": \"linear\" or \"conservative\" brings it to that grid");
  contains(
      why(range(57, -3, 6), range(-10, 3, 11), Regrid::kLinear),
      "its latitudes are 57, 54 ... 42 (6), those of the other 60, 58 ... 40 (11), to which data.regrid can "
      "bring it only where it has values; both have points in data.region {\"latitude\": [42, 56], "
      "\"longitude\": [-10, 10]}");
  contains(why(range(66, -3, 11), range(20, 3, 11), Regrid::kConservative), "its longitudes are 20, 23");
}

/// At points anywhere.
Numbers expected_at(const Plane& plane, const Projection& points, Regrid method) {
  const auto weights = method == Regrid::kLinear ? hats : nearest;
  Numbers result;
  for (std::size_t p = 0; p < points.latitudes.size(); ++p) {
    if (std::isnan(points.latitudes[p])) {
      result.push_back(std::nan(""));
      continue;
    }
    const Numbers down = weights(plane.latitudes, points.latitudes[p], false),
                  along = weights(plane.longitudes, points.longitudes[p], true);
    double sum = 0, there = 0;
    for (std::size_t y = 0; y < down.size(); ++y) {
      for (std::size_t x = 0; x < along.size(); ++x) {
        const double weight = down[y] * along[x];
        if (weight == 0 || std::isnan(plane.at(y, x))) continue;
        sum += weight * plane.at(y, x);
        there += weight;
      }
    }
    result.push_back(there < 0.5 - 1e-3 ? std::nan("") : sum / there);
  }
  return result;
}

// Across Greenwich, across the dateline, and around a pole, out of the whole globe and of an area.
TEST(Regrid, PointsOfAProjectionLieBetweenRowsAndColumns) {
  const Numbers rows = range(90, -5, 37);
  struct {
    Projection grid;
    Numbers latitudes, longitudes;
  } const cases[] = {{projection(50, 3, 2), rows, range(0, 5, 72)},
                     {projection(50, 3, 2), rows, range(-180, 5, 72)},
                     {projection(-40, 178, 2), rows, range(0, 5, 72)},
                     {projection(86, -100, 2), rows, range(2.5, 5, 72)},
                     {projection(50, 3, 2), range(70, -2, 26), range(330, 2, 31)},
                     {projection(50, 3, 2), range(30, 2, 26), range(-30, 2, 31)}};
  unsigned seed = 100;
  for (const auto& [grid, latitudes, longitudes] : cases) {
    for (const Regrid method : {Regrid::kNearest, Regrid::kLinear}) {
      for (const double missing : {0.0, 0.3}) {
        const testing::TemporaryFolder folder;
        const Plane there = random_plane(latitudes, longitudes, missing, seed++);
        FileSet files({write(folder, grid), write(folder, "b.nc", "sst", there)},
                      {.regrid = {.method = method}});
        files.select(kT2m, true);
        files.select(kSst, true);
        const Numbers found = read_all(files, kSst);
        expect_near(found, expected_at(there, grid, method),
                    concat("seed ", seed, " method ", static_cast<int>(method)));
        expect_pieces(files, kSst, found);
      }
    }
  }
  // A point without a place, and one that the area lacks; rows and columns are those of the projection.
  const testing::TemporaryFolder folder;
  Projection grid = projection(50, 3, 2);
  grid.latitudes[50] = grid.longitudes[50] = std::nan("");
  const Plane there = random_plane(rows, range(0, 5, 72), 0, 1);
  const std::string projected = write(folder, grid),
                    area = write(folder, "area.nc", "sst",
                                 random_plane(range(56, -2, 8), range(-30, 2, 31), 0, 2));
  FileSet files({projected, write(folder, "b.nc", "sst", there)}, {.regrid = {.method = Regrid::kLinear}});
  files.select(kT2m, true);
  files.select(kSst, true);
  expect_near(read_all(files, kSst), expected_at(there, grid, Regrid::kLinear), "a hole");
  EXPECT_EQ(files.describe(kSst).rows.name, "y");
  EXPECT_EQ(files.describe(kSst).columns.name, "x");
  const auto why = [&](const std::vector<std::string>& paths, Regrid method) {
    FileSet others(paths, {.regrid = {.method = method}});
    others.select(kT2m, true);
    return message_of<DataError>([&] { others.select(kSst, true); });
  };
  std::string message = why({projected, area}, Regrid::kLinear);
  EXPECT_NE(message.find("does not reach "), std::string::npos) << message;
  message = why({projected, area}, Regrid::kConservative);
  EXPECT_NE(message.find("to a projection data.regrid brings fields by \"linear\", \"nearest\" or"),
            std::string::npos)
      << message;
}

// What is read of a file whose circle begins between the points.
TEST(Regrid, PointsAcrossTheEndOfACircleReadWhatIsAroundThem) {
  const SourceAxis rows = SourceAxis::latitude(range(90, -5, 37)),
                   columns = SourceAxis::longitude(range(0, 5, 72));
  const Numbers latitudes = {50, 51, 52}, longitudes = {2, 357, -1};
  const PointWeights weights =
      GridPoints(rows, columns).weights({latitudes, longitudes, {}}, Regrid::kLinear);
  ASSERT_EQ(weights.boxes().size(), 1U);
  EXPECT_EQ(weights.boxes()[0].extent, Shape({2, 3}));  // columns 355, 0 and 5
}

}  // namespace regrid_test
}  // namespace jigsaw
