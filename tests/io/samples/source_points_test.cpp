// Fields on lists of points and on projections, brought to rows and columns and to projections, against loops
// over all pairs of points or cells.
#include "samples/source_points.h"

#include <filesystem>

#include "base/error.h"
#include "io/fixtures.h"
#include "io/samples/regrid_fixtures.h"

namespace jigsaw {
namespace source_points_test {

using namespace regrid_test;

/// Points in rows, and what stands at them.
struct Rows {
  struct Row {
    double latitude;
    Numbers longitudes;
  };
  std::vector<Row> rows;

  Numbers latitudes() const {
    Numbers all;
    for (const Row& row : rows) all.insert(all.end(), row.longitudes.size(), row.latitude);
    return all;
  }
  Numbers longitudes() const {
    Numbers all;
    for (const Row& row : rows) all.insert(all.end(), row.longitudes.begin(), row.longitudes.end());
    return all;
  }
};

/// 20, 24, … points in a row from each pole on, as octahedral grids have them.
Rows octahedral(int half, bool northward) {
  Rows grid;
  for (int i = 0; i < 2 * half; ++i) {
    const int count = 20 + 4 * std::min(i, 2 * half - 1 - i);
    const double latitude = 89.0 - 178.0 * i / (2 * half - 1);
    grid.rows.push_back({northward ? -latitude : latitude, range(0, 360.0 / count, count)});
  }
  return grid;
}

/// Rings of HEALPix (Górski et al., 2005, ApJ 622:759, equations 4 to 9).
Rows healpix(int sides) {
  Rows grid;
  for (int i = 1; i < 4 * sides; ++i) {
    const int ring = std::min(i, 4 * sides - i);
    const bool cap = ring < sides;
    const int count = cap ? 4 * ring : 4 * sides;
    const double z = cap ? 1 - ring * ring / (3.0 * sides * sides) : 4.0 / 3 - 2.0 * ring / (3.0 * sides);
    const double latitude = std::asin(i <= 2 * sides ? z : -z) * 180 / std::numbers::pi;
    const double step = 360.0 / count, first = cap || (ring - sides) % 2 == 0 ? step / 2 : 0;
    grid.rows.push_back({latitude, range(first, step, count)});
  }
  return grid;
}

/// The points of rows in the other order.
Rows westward(Rows grid) {
  for (Rows::Row& row : grid.rows) std::ranges::reverse(row.longitudes);
  return grid;
}

/// Every other row the other way.
Rows every_other_westward(Rows grid) {
  for (std::size_t i = 1; i < grid.rows.size(); i += 2) std::ranges::reverse(grid.rows[i].longitudes);
  return grid;
}

/// Rows of several steps in an area across Greenwich.
Rows area() {
  Rows grid;
  for (int i = 0; i < 12; ++i) {
    const double step = 2.0 + 0.25 * i;
    Numbers longitudes = range(-15, step, static_cast<int>(50 / step) + 1);
    for (double& longitude : longitudes) longitude += longitude < 0 ? 360 : 0;
    grid.rows.push_back({30.0 + 2.5 * i, longitudes});
  }
  return grid;
}

Rows in_single_precision(Rows grid) {
  for (Rows::Row& row : grid.rows) {
    row.latitude = static_cast<float>(row.latitude);
    for (double& longitude : row.longitudes) longitude = static_cast<float>(longitude);
  }
  return grid;
}

Numbers random_values(std::size_t count, double missing, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Numbers values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(uniform(generator) < missing ? std::nan("") : 280 + 20 * uniform(generator));
  return values;
}

Numbers applied(const PointWeights& weights, const Numbers& values, std::int64_t columns, std::size_t count) {
  Numbers there, out(count);
  for (const Box& box : weights.boxes()) {
    for (std::int64_t i = box.begin[0]; i < box.end(0); ++i)
      for (std::int64_t j = box.begin[1]; j < box.end(1); ++j)
        there.push_back(values[static_cast<std::size_t>(i * columns + j)]);
  }
  weights.apply<double>(there, out);
  return out;
}

/// Targets on latitudes × longitudes of equal steps.
TargetPoints targets(const Numbers& latitudes, const Numbers& longitudes) {
  TargetPoints points;
  const double tall = std::abs(latitudes[1] - latitudes[0]) / 2,
               wide = std::abs(longitudes[1] - longitudes[0]) / 2;
  for (const double latitude : latitudes) {
    for (const double longitude : longitudes) {
      points.latitude.push_back(latitude);
      points.longitude.push_back(longitude);
      points.cells.push_back({std::max(latitude - tall, -90.0), std::min(latitude + tall, 90.0),
                              longitude - wide, longitude + wide});
    }
  }
  return points;
}

/// A weight for each point of a list.
Numbers expected_weights(const Rows& grid, const TargetPoints& points, std::size_t target, Regrid method) {
  Numbers latitudes, weights;
  for (const Rows::Row& row : grid.rows) latitudes.push_back(row.latitude);
  const auto append = [&](Numbers along, double share) {
    for (double& weight : along) weight *= share;
    weights.insert(weights.end(), along.begin(), along.end());
  };
  const double latitude = points.latitude[target], longitude = points.longitude[target];
  if (method != Regrid::kConservative) {
    const auto find = method == Regrid::kLinear ? hats : nearest;
    const Numbers down = find(latitudes, latitude, false);
    for (std::size_t i = 0; i < grid.rows.size(); ++i)
      append(find(grid.rows[i].longitudes, longitude, true), down[i]);
    return weights;
  }
  Numbers ascending = latitudes;
  std::ranges::sort(ascending);
  const auto limit = [&](double of, int side) {  // of the cell around a row, to the south or north
    const auto at = std::ranges::lower_bound(ascending, of) - ascending.begin();
    const auto last = std::ssize(ascending) - 1;
    const auto value = [&](std::ptrdiff_t i) { return ascending[static_cast<std::size_t>(i)]; };
    const bool globe = grid.rows[0].longitudes.size() *
                           std::abs(apart(grid.rows[0].longitudes[0], grid.rows[0].longitudes[1])) >
                       359;
    if (side < 0 && at == 0)
      return globe && of + 90 < 1.5 * (value(1) - value(0)) ? -90
                                                            : std::max(-90.0, of - (value(1) - value(0)) / 2);
    if (side > 0 && at == last)
      return globe && 90 - of < 1.5 * (value(last) - value(last - 1))
                 ? 90
                 : std::min(90.0, of + (value(last) - value(last - 1)) / 2);
    return (of + value(at + side)) / 2;
  };
  const TargetPoints::Cell& cell = points.cells[target];
  const auto sine = [](double degrees) { return std::sin(degrees * std::numbers::pi / 180); };
  for (const Rows::Row& row : grid.rows) {
    const double south = std::max(cell.south, limit(row.latitude, -1)),
                 north = std::min(cell.north, limit(row.latitude, 1));
    const double half = std::abs(apart(row.longitudes[0], row.longitudes[1])) / 2;
    Numbers along;
    for (const double centre : row.longitudes) {
      double overlap = 0;
      for (const double turn : {-720.0, -360.0, 0.0, 360.0, 720.0}) {
        overlap += std::max(
            0.0, std::min(cell.east, centre + half + turn) - std::max(cell.west, centre - half + turn));
      }
      along.push_back(overlap);
    }
    append(along, std::max(0.0, sine(north) - sine(south)));
  }
  return weights;
}

Numbers expected(const Rows& grid, const Numbers& values, const TargetPoints& points, Regrid method) {
  Numbers result;
  for (std::size_t p = 0; p < points.latitude.size(); ++p) {
    const Numbers weights = expected_weights(grid, points, p, method);
    double sum = 0, there = 0, all = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      all += weights[i];
      if (weights[i] == 0 || std::isnan(values[i])) continue;
      sum += weights[i] * values[i];
      there += weights[i];
    }
    result.push_back(there < (0.5 - 1e-3) * all ? std::nan("") : sum / there);
  }
  return result;
}

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

/// Degrees along a great circle (haversines).
double angle(double latitude, double longitude, double other_latitude, double other_longitude) {
  const double r = std::numbers::pi / 180;
  const double a = std::sin((latitude - other_latitude) * r / 2),
               b = std::sin((longitude - other_longitude) * r / 2);
  const double h = a * a + std::cos(latitude * r) * std::cos(other_latitude * r) * b * b;
  return 2 * std::asin(std::min(1.0, std::sqrt(h))) / r;
}

/// @param columns  0: the points are a list.
Numbers expected_of_scattered(const Numbers& latitudes, const Numbers& longitudes, const Numbers& values,
                              const TargetPoints& wanted, Regrid method, std::size_t columns = 0) {
  const auto sorted_from = [&](double latitude, double longitude) {
    std::vector<std::pair<double, std::size_t>> all;
    for (std::size_t i = 0; i < latitudes.size(); ++i) {
      if (!std::isnan(latitudes[i] + longitudes[i]))
        all.emplace_back(angle(latitude, longitude, latitudes[i], longitudes[i]), i);
    }
    std::ranges::sort(all);
    return all;
  };
  const auto eighth = [&](std::size_t i) {
    const auto all = sorted_from(latitudes[i], longitudes[i]);
    return all[std::min<std::size_t>(8, all.size() - 1)].first;
  };
  // Along a chord, as it is compared.
  const auto chord = [](double degrees) { return 2 * std::sin(degrees * std::numbers::pi / 360); };
  double usual = 0;
  if (columns == 0) {
    Numbers distances;
    for (std::size_t k = 0; k < 63; ++k) {
      const std::size_t i = k * latitudes.size() / 63;
      if (!std::isnan(latitudes[i])) distances.push_back(chord(eighth(i)));
    }
    std::ranges::sort(distances);
    usual = 1.5 * distances[distances.size() / 2];
  }
  const auto reach = [&](std::size_t i) {
    if (columns == 0) return std::max(usual, chord(eighth(i)));
    double furthest = 0;
    const auto look_at = [&](bool there, std::size_t other) {
      if (there)
        furthest = std::fmax(furthest,
                             chord(angle(latitudes[i], longitudes[i], latitudes[other], longitudes[other])));
    };
    look_at(i % columns > 0, i - 1);
    look_at(i % columns + 1 < columns, i + 1);
    look_at(i >= columns, i - columns);
    look_at(i + columns < latitudes.size(), i + columns);
    return furthest;
  };
  Numbers result;
  for (std::size_t p = 0; p < wanted.latitude.size(); ++p) {
    if (std::isnan(wanted.latitude[p])) {
      result.push_back(std::nan(""));
      continue;
    }
    const auto around = sorted_from(wanted.latitude[p], wanted.longitude[p]);
    const std::size_t first = around[0].second;
    if (latitudes.size() > 1 && chord(around[0].first) > reach(first)) {
      result.push_back(std::nan(""));
      continue;
    }
    if (method == Regrid::kNearest || around[0].first < 1e-4) {
      result.push_back(values[first]);
      continue;
    }
    double sum = 0, there = 0, all = 0;
    for (std::size_t k = 0; k < std::min<std::size_t>(4, around.size()); ++k) {
      const auto [distance, i] = around[k];
      all += 1 / distance;
      if (std::isnan(values[i])) continue;
      sum += values[i] / distance;
      there += 1 / distance;
    }
    result.push_back(there < (0.5 - 1e-3) * all ? std::nan("") : sum / there);
  }
  return result;
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

/// A list of points with t2m at one time on it, called sst.
std::string write_list(const testing::TemporaryFolder& folder, const std::string& name,
                       const Numbers& latitudes, const Numbers& longitudes, const Numbers& values,
                       bool radians = false) {
  const std::string path = concat(folder.path(), "/", name);
  testing::NetcdfWriter file(path, NC_NETCDF4);
  const int time = add_axis(file, "time", {0}, "hours since 2020-01-01"),
            cell = file.dimension("ncells", latitudes.size());
  const int north = file.variable("clat", NC_DOUBLE, {cell}), east = file.variable("clon", NC_DOUBLE, {cell});
  file.text(north, "standard_name", "latitude");
  file.text(east, "standard_name", "longitude");
  file.text(north, "units", radians ? "radian" : "degrees_north");
  file.text(east, "units", radians ? "radian" : "degrees_east");
  const int field = file.variable("sst", NC_DOUBLE, {time, cell});
  file.text(field, "units", "K");
  file.text(field, "coordinates", "clat clon");
  file.end();
  const double unit = radians ? std::numbers::pi / 180 : 1;
  Numbers down = latitudes, along = longitudes;
  for (double& degrees : down) degrees *= unit;
  for (double& degrees : along) degrees *= unit;
  file.put(north, down);
  file.put(east, along);
  file.put(field, values);
  return path;
}

TEST(Regrid, ListsOfPointsAreBroughtToRowsAndColumns) {
  const Rows grid = octahedral(8, false);
  const Numbers values = random_values(grid.latitudes().size(), 0.2, 9);
  const TargetPoints wanted = targets(range(90, -10, 19), range(-180, 10, 36));
  for (const Regrid method : {Regrid::kNearest, Regrid::kLinear, Regrid::kConservative}) {
    const testing::TemporaryFolder folder;
    const std::string path = write_list(folder, "list.nc", grid.latitudes(), grid.longitudes(), values);
    FileSet files({path}, {.regrid = {method, {}, {90, -90, 10}, {-180, 170, 10}}});
    files.select(kSst, true);
    EXPECT_EQ(files.grid().shape(), Shape({19, 36}));
    const Numbers found = read_all(files, kSst);
    expect_near(found, expected(grid, values, wanted, method), concat("method ", static_cast<int>(method)));
    expect_pieces(files, kSst, found);
    const FieldDescription described = files.describe(kSst);
    EXPECT_EQ(described.rows.name, "latitude");
    EXPECT_EQ(described.rows.texts.at("units"), "degrees_north");
    EXPECT_EQ(described.columns.values, range(-180, 10, 36));
    EXPECT_EQ(described.texts.at("units"), "K");
    EXPECT_EQ(files.catalogue().size(), 1U);
    EXPECT_FALSE(files.exact_in_float(kSst));
  }
}

TEST(Regrid, PointsInNoOrderAreBroughtToRowsAndColumns) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Numbers latitudes, longitudes;
  for (int i = 0; i < 2000; ++i) {
    latitudes.push_back(std::asin(uniform(generator)) * 180 / std::numbers::pi);
    longitudes.push_back(180 * uniform(generator));
  }
  const Numbers values = random_values(latitudes.size(), 0.1, 4);
  for (const Regrid method : {Regrid::kNearest, Regrid::kInverseDistance}) {
    const testing::TemporaryFolder folder;
    const std::string path = write_list(folder, "icon.nc", latitudes, longitudes, values, true);
    FileSet files({path}, {.regrid = {method, {}, {90, -90, 10}, {0, 350, 10}}});
    files.select(kSst, true);
    const Numbers found = read_all(files, kSst);
    expect_near(found,
                expected_of_scattered(latitudes, longitudes, values,
                                      targets(range(90, -10, 19), range(0, 10, 36)), method),
                concat("method ", static_cast<int>(method)));
    expect_pieces(files, kSst, found);
  }
}

/// The field of a projection, t2m, at a grid.
TEST(Regrid, ProjectionsAreBroughtToRowsAndColumnsAndToOthers) {
  const Projection lambert = projection(50, 3, 2), other = projection(52, 5, 1);
  const testing::TemporaryFolder folder, elsewhere;
  const std::string path = write(folder, lambert);
  {
    FileSet files({path}, {.regrid = {Regrid::kInverseDistance, {}, {58, 42, 2}, {-5, 11, 2}}});
    files.select(kT2m, true);
    EXPECT_TRUE(files.grid().geographic);
    const Numbers found = read_all(files, kT2m);
    expect_near(
        found,
        expected_of_scattered(lambert.latitudes, lambert.longitudes, Numbers(99, 1.0),
                              targets(range(58, -2, 9), range(-5, 2, 9)), Regrid::kInverseDistance, 11),
        "a projection");
    expect_pieces(files, kT2m, found);
    EXPECT_EQ(files.describe(kT2m).columns.name, "longitude");
  }
  // A second projection to the points of the first one.
  const std::string second = write(elsewhere, other, "sst", random_values(99, 0.1, 8));
  FileSet files({path, second}, {.regrid = {.method = Regrid::kInverseDistance}});
  files.select(kT2m, true);
  EXPECT_EQ(read_all(files, kT2m), Numbers(99, 1.0)) << "the grid's own fields stay as they are";
  files.select(kSst, true);
  const Numbers found = read_all(files, kSst);
  expect_near(
      found,
      expected_of_scattered(other.latitudes, other.longitudes, random_values(99, 0.1, 8),
                            {lambert.latitudes, lambert.longitudes, {}}, Regrid::kInverseDistance, 11),
      "to a projection");
  expect_pieces(files, kSst, found);
  EXPECT_TRUE(std::ranges::any_of(found, [](double value) { return std::isnan(value); }));
  // A list in rows to the points of a projection.
  const Rows grid = octahedral(8, false);
  const Numbers values = random_values(grid.latitudes().size(), 0, 9);
  const std::string list = write_list(elsewhere, "list.nc", grid.latitudes(), grid.longitudes(), values);
  FileSet with_list({path, list}, {.regrid = {.method = Regrid::kLinear}});
  with_list.select(kT2m, true);
  with_list.select(kSst, true);
  expect_near(read_all(with_list, kSst),
              expected(grid, values, {lambert.latitudes, lambert.longitudes, {}}, Regrid::kLinear), "a list");
}

TEST(Regrid, RowsAndColumnsAreBroughtByInverseDistance) {
  const testing::TemporaryFolder folder;
  Numbers latitudes, longitudes;
  for (const double latitude : range(88, -4, 45)) {
    for (const double longitude : range(2, 4, 90)) {
      latitudes.push_back(latitude);
      longitudes.push_back(longitude);
    }
  }
  const Numbers values = random_values(latitudes.size(), 0.1, 4);
  const std::string path = concat(folder.path(), "/a.nc");
  {
    testing::NetcdfWriter file(path, NC_NETCDF4);
    const std::vector<int> dimensions = {add_axis(file, "time", {0}, "hours since 2020-01-01"),
                                         add_axis(file, "latitude", range(88, -4, 45), "degrees_north"),
                                         add_axis(file, "longitude", range(2, 4, 90), "degrees_east")};
    const int field = file.variable("sst", NC_DOUBLE, dimensions);
    file.end();
    file.put(field, values);
  }
  FileSet files({path}, {.regrid = {Regrid::kInverseDistance, {}, {80.5, -81.5, 9}, {0.7, 351.7, 9}}});
  files.select(kSst, true);
  const Numbers found = read_all(files, kSst);
  expect_near(
      found,
      expected_of_scattered(latitudes, longitudes, values, targets(range(80.5, -9, 19), range(0.7, 9, 40)),
                            Regrid::kInverseDistance, 90),
      "a grid");
  expect_pieces(files, kSst, found);
  // No holes at the poles, where the points of a row are much nearer to each other than rows are.
  FileSet at_poles({path}, {.regrid = {Regrid::kInverseDistance, {}, {89.6, -87.4, 3}, {0.7, 351.7, 9}}});
  at_poles.select(kSst, true);
  Numbers there(60 * 40);
  at_poles.read(kSst, {at_poles.times(kSst).front(), 0}, {{0, 0}, {60, 40}}, there);
  expect_near(
      there,
      expected_of_scattered(latitudes, longitudes, values, targets(range(89.6, -3, 60), range(0.7, 9, 40)),
                            Regrid::kInverseDistance, 90),
      "to the poles");
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

/// The grid mapping alone says where points are.
TEST(Regrid, HealpixIsKnownByItsMapping) {
  const Rows grid = healpix(8);
  const Numbers values = random_values(grid.latitudes().size(), 0.1, 9);
  const auto write_pixels = [&](const std::string& path, const std::string& order, const Numbers& pixels,
                                double sides) {
    testing::NetcdfWriter file(path);
    const int time = add_axis(file, "time", {0}, "hours since 2020-01-01"),
              cell = file.dimension("cell", pixels.size());
    const int crs = file.variable("crs", NC_INT, {}), field = file.variable("sst", NC_DOUBLE, {time, cell});
    file.text(crs, "grid_mapping_name", "healpix");
    file.text(crs, "healpix_order", order);
    file.number(crs, "healpix_nside", NC_INT, sides);
    file.text(field, "grid_mapping", "crs");
    file.end();
    file.put(field, pixels);
  };
  const testing::TemporaryFolder folder;
  const std::string ring = folder.path() + "/ring.nc", nested = folder.path() + "/nested.nc";
  write_pixels(ring, "ring", values, 8);
  FileSet files({ring}, {.regrid = {Regrid::kLinear, {}, {90, -90, 5}, {0, 355, 5}}});
  files.select(kSst, true);
  expect_near(read_all(files, kSst),
              expected(grid, values, targets(range(90, -5, 37), range(0, 5, 72)), Regrid::kLinear), "ring");
  expect_pieces(files, kSst, read_all(files, kSst));
  write_pixels(nested, "nested", values, 8);
  FileSet in_faces({nested}, {.regrid = {Regrid::kInverseDistance, {}, {82.7, -81.3, 4}, {1.3, 351.3, 5}}});
  in_faces.select(kSst, true);
  const ListedPlaces places = healpix_places(8, true);
  expect_near(
      read_all(in_faces, kSst),
      expected_of_scattered(places.latitudes, places.longitudes, values,
                            targets(range(82.7, -4, 42), range(1.3, 5, 71)), Regrid::kInverseDistance),
      "nested");
  const std::string unknown = folder.path() + "/unknown.nc";
  write_pixels(unknown, "peano", values, 8);
  FileSet other({unknown}, {.regrid = {Regrid::kNearest, {}, {83, -81, 4}, {1, 351, 5}}});
  const std::string refused = message_of<DataError>([&] { other.select(kSst, true); });
  EXPECT_NE(refused.find("healpix_order must be \"ring\" or \"nested\""), std::string::npos) << refused;
}

/// As CDO writes them: `reduced_points` beside `lat`.
TEST(Regrid, ReducedRowsOfCdoAreAList) {
  const Rows grid = octahedral(8, false);
  const Numbers values = random_values(grid.latitudes().size(), 0.1, 9);
  const testing::TemporaryFolder folder;
  const auto write_rows = [&](double first_row) {
    const std::string path = concat(folder.path(), "/rgrid", first_row, ".nc");
    testing::NetcdfWriter file(path);
    const int time = add_axis(file, "time", {0}, "hours since 2020-01-01");
    Numbers latitudes, counts;
    for (const Rows::Row& row : grid.rows) {
      latitudes.push_back(row.latitude);
      counts.push_back(static_cast<double>(row.longitudes.size()));
    }
    counts[0] = first_row;
    add_axis(file, "lat", latitudes, "degrees_north");
    const int rows = file.dimension("reduced_points", counts.size()),
              cell = file.dimension("rgrid", values.size());
    const int points = file.variable("reduced_points", NC_INT, {rows}),
              field = file.variable("sst", NC_DOUBLE, {time, cell});
    file.end();
    file.put(points, counts);
    file.put(field, values);
    return path;
  };
  FileSet files({write_rows(20)}, {.regrid = {Regrid::kConservative, {}, {90, -90, 10}, {0, 350, 10}}});
  files.select(kSst, true);
  expect_near(read_all(files, kSst),
              expected(grid, values, targets(range(90, -10, 19), range(0, 10, 36)), Regrid::kConservative),
              "reduced");
  FileSet wrong({write_rows(21)}, {.regrid = {Regrid::kConservative, {}, {90, -90, 10}, {0, 350, 10}}});
  const std::string refused = message_of<DataError>([&] { wrong.select(kSst, true); });
  EXPECT_NE(refused.find("the rows of reduced_points of "), std::string::npos) << refused;
}

TEST(Regrid, ListsAndProjectionsThatCannotBeBroughtSayWhatCan) {
  const testing::TemporaryFolder folder;
  const Rows grid = octahedral(4, false), part = area();
  Numbers southward = random_values(400, 0, 1);
  for (double& latitude : southward) latitude -= 330;
  const auto list = [&](const std::string& name, const Numbers& latitudes, const Numbers& longitudes) {
    return write_list(folder, name, latitudes, longitudes, Numbers(latitudes.size(), 1.0));
  };
  const std::string rows = list("rows.nc", grid.latitudes(), grid.longitudes()),
                    of_area = list("area.nc", part.latitudes(), part.longitudes()),
                    scattered = list("scattered.nc", southward, random_values(400, 0, 2)),
                    projected = write(folder, projection(50, 3, 2));
  const auto why = [&](const std::vector<std::string>& paths, const RegridOptions& options,
                       const std::vector<Field>& fields) {
    FileSet files(paths, {.regrid = options});
    return message_of<DataError>([&] {
      for (const Field& field : fields) files.select(field, true);
    });
  };
  const auto contains = [](const std::string& message, const std::string& text) {
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  contains(why({rows}, {}, {kSst}),
           "lies on a list of 208 points, which are no rows and columns; data.regrid");
  contains(
      why({rows}, {.method = Regrid::kLinear}, {kSst}),
      "data.regrid says to which it brings them by its latitude and longitude, as {\"method\": \"linear\"");
  contains(why({scattered}, {}, {kSst}), "{\"method\": \"inverse_distance\", \"latitude\": [90, -90, 1]");
  const std::string degrees_as_radians =
      write_list(folder, "wrong.nc", grid.longitudes(), grid.longitudes(), Numbers(208, 1.0), true);
  contains(why({degrees_as_radians}, {Regrid::kNearest, {}, {90, -90, 10}, {0, 350, 10}}, {kSst}),
           "clat in " + degrees_as_radians + " holds the latitude ");
  contains(why({scattered}, {Regrid::kLinear, {}, {90, -90, 10}, {0, 350, 10}}, {kSst}),
           "lies on 400 points that are in no rows of one latitude and equal steps; data.regrid brings it to "
           "the grid by \"inverse_distance\" or \"nearest\"");
  contains(why({of_area}, {Regrid::kLinear, {}, {90, -90, 10}, {0, 350, 10}}, {kSst}),
           "does not reach 90° N");
  contains(why({projected, rows}, {.method = Regrid::kConservative}, {kT2m, kSst}),
           "is brought to a projection, to which data.regrid has \"linear\", \"nearest\"");
  contains(why({projected}, {Regrid::kLinear, {}, {58, 42, 2}, {-5, 11, 2}}, {kT2m}),
           "from a projection data.regrid brings fields by \"nearest\" or \"inverse_distance\"");
  const testing::TemporaryFolder elsewhere;
  const std::string other = write(elsewhere, projection(52, 5, 1), "sst", Numbers(99, 1.0));
  contains(why({projected, other}, {}, {kT2m, kSst}),
           "data.regrid with \"nearest\" or \"inverse_distance\" brings it to theirs");
}

// Places are read once for all files that have them.
TEST(Regrid, FilesOfTheSamePointsAreReadForThemOnce) {
  const testing::TemporaryFolder folder;
  const Rows grid = octahedral(32, false);
  const Numbers values = random_values(grid.latitudes().size(), 0, 9);
  std::vector<std::string> paths;
  for (int f = 0; f < 3; ++f) {
    paths.push_back(
        write_list(folder, concat("list", f, ".nc"), grid.latitudes(), grid.longitudes(), values));
  }
  const auto bytes = [&](std::size_t count) {
    FileSet files({paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(count)},
                  {.regrid = {Regrid::kLinear, {}, {90, -90, 10}, {0, 350, 10}}});
    files.select(kSst, true);
    return files.bytes_read();
  };
  const auto places = static_cast<std::int64_t>(2 * 8 * values.size());
  EXPECT_GE(bytes(1), places);
  EXPECT_LT(bytes(3), places + 3 * 20000);
}

}  // namespace source_points_test
}  // namespace jigsaw
