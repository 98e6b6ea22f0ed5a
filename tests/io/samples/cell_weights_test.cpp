// How points count in means over space: areas that files hold, or those between the places of points.
#include "samples/cell_weights.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "grids/cell_areas.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace cell_weights_test {

using Numbers = std::vector<double>;
using testing::NetcdfWriter;
using testing::TemporaryFolder;

constexpr double kRadians = std::numbers::pi / 180;

/// A globe as points with places of their own.
struct Globe {
  double step;
  bool points;  ///< the outermost rows are the poles

  std::int64_t rows() const { return std::llround(180 / step) + (points ? 1 : 0); }
  std::int64_t columns() const { return std::llround(360 / step); }
  Shape shape() const { return {rows(), columns()}; }
  double latitude(std::int64_t row) const {
    return 90 - step * (static_cast<double>(row) + (points ? 0 : 0.5));
  }
  double area(std::int64_t row) const {
    const double north = std::min(latitude(row) + step / 2, 90.0),
                 south = std::max(latitude(row) - step / 2, -90.0);
    return (std::sin(north * kRadians) - std::sin(south * kRadians)) * step * kRadians;
  }
  PointPlaces places(const Box& box) const {
    PointPlaces found;
    for (std::int64_t row = box.begin[0]; row < box.end(0); ++row) {
      for (std::int64_t column = box.begin[1]; column < box.end(1); ++column) {
        found.latitude.push_back(latitude(row));
        found.longitude.push_back(step * static_cast<double>(column));
      }
    }
    return found;
  }
};

TEST(CellAreas, AreThoseOfRowsAndColumnsOfAGlobe) {
  for (const bool points : {false, true}) {
    const Globe globe{2, points};
    const Box whole = Box::whole(globe.shape());
    const Numbers areas = cell_areas(globe.places(whole), whole, globe.shape());
    ASSERT_EQ(std::ssize(areas), globe.shape().count());
    double sum = 0;
    for (std::int64_t i = 0; i < globe.shape().count(); ++i) {
      const double found = areas[static_cast<std::size_t>(i)];
      sum += found;
      ASSERT_NEAR(found / globe.area(i / globe.columns()), 1, 1e-3) << i;
    }
    EXPECT_NEAR(sum / (4 * std::numbers::pi), 1, 1e-5);
  }
}

TEST(CellAreas, OfPartsAreThoseOfTheWhole) {
  const Globe globe{10, false};
  const Box whole = Box::whole(globe.shape());
  const Numbers areas = cell_areas(globe.places(whole), whole, globe.shape());
  for (const Box& part : {Box{{0, 0}, {5, 36}}, Box{{5, 7}, {13, 29}}, Box{{17, 35}, {1, 1}}}) {
    const Numbers found = cell_areas(globe.places(with_neighbours(part, globe.shape())), part, globe.shape());
    for (std::int64_t i = 0; i < part.extent.count(); ++i) {
      const std::int64_t row = part.begin[0] + i / part.extent[1],
                         column = part.begin[1] + i % part.extent[1];
      EXPECT_EQ(found[static_cast<std::size_t>(i)], areas[static_cast<std::size_t>(row * 36 + column)]);
    }
  }
}

TEST(CellAreas, OfPointsBesideOthersWithoutAPlaceGoOn) {
  const Globe globe{2, false};
  const Box whole = Box::whole(globe.shape());
  PointPlaces places = globe.places(whole);
  const std::int64_t row = 40, column = 50;
  const auto at = [&](std::int64_t y, std::int64_t x) {
    return static_cast<std::size_t>(y * globe.columns() + x);
  };
  places.latitude[at(row, column)] = places.longitude[at(row, column)] = NAN;
  // A point between such ones.
  for (const std::int64_t x : {99, 101}) places.longitude[at(row, x)] = NAN;
  const Numbers areas = cell_areas(places, whole, globe.shape());
  EXPECT_EQ(areas[at(row, column)], 0);
  EXPECT_EQ(areas[at(row, 100)], 0);
  for (std::int64_t y = row - 2; y <= row + 2; ++y) {
    for (std::int64_t x = column - 2; x <= column + 2; ++x) {
      if (y == row && x == column) continue;
      EXPECT_NEAR(areas[at(y, x)] / globe.area(y), 1, 1e-3) << y << " " << x;
    }
  }
  const Numbers line = cell_areas({{10, 11, 12}, {0, 0, 0}}, {{0, 0}, {3, 1}}, {3, 1});
  EXPECT_EQ(line, Numbers(3, 0.0)) << "of one column";
}

TEST(CellWeights, OfRowsAreThoseOfTheirPoints) {
  const CellWeights weights(Numbers{0.5, 1, 1.5});
  EXPECT_TRUE(weights.by_rows());
  EXPECT_EQ(*weights.of({{1, 3}, {2, 2}}), (Numbers{1, 1, 1.5, 1.5}));
  EXPECT_EQ(weights.alike().rows(), Numbers(3, 1.0));
}

TEST(CellWeights, OfPointsAreReadOnceAndOverTheMean) {
  int reads = 0;
  const CellWeights weights(3, 2, [&](const Box& plane, std::span<double> out) {
    ++reads;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<double>(10 * plane.begin[0] + static_cast<std::int64_t>(i));
  });
  EXPECT_FALSE(weights.by_rows());
  const CellWeights same = weights;
  const CellWeights::Values values = weights.of({{1, 0}, {1, 3}});
  EXPECT_EQ(*values, (Numbers{5, 5.5, 6}));
  EXPECT_EQ(same.of({{1, 0}, {1, 3}}), values);
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(*weights.of({{2, 0}, {1, 1}}), Numbers{10});
  EXPECT_EQ(weights.of({{0, 0}, {0, 3}})->size(), 0U);
  EXPECT_EQ(reads, 2);
  EXPECT_TRUE(weights.alike().by_rows());
  EXPECT_EQ(*weights.alike().of({{1, 0}, {1, 2}}), (Numbers{1, 1}));
}

// ---- Of files

constexpr std::int64_t kRows = 70, kColumns = 6, kPoints = kRows * kColumns;

double area(std::int64_t point) {
  if (point % 11 == 3) return NAN;
  if (point % 13 == 5) return 0;
  return 1e9 * (1.5 + std::sin(static_cast<double>(point)));
}

double latitude(std::int64_t point) {
  return 20 + 0.5 * static_cast<double>(point / kColumns) + 0.02 * static_cast<double>(point % kColumns);
}
double longitude(std::int64_t point) {
  return 0.5 * static_cast<double>(point % kColumns) + 0.01 * static_cast<double>(point / kColumns);
}

/// t2m on points with places of their own, or on rows and columns, and areas of its cells.
/// @param factor  of the areas.
std::string write(const TemporaryFolder& folder, const std::string& name, bool projected, double factor = 1) {
  const std::string path = concat(folder.path(), "/", name);
  NetcdfWriter file(path);
  const int time = file.dimension("time", 4), y = file.dimension(projected ? "y" : "lat", kRows),
            x = file.dimension(projected ? "x" : "lon", kColumns);
  const int times = file.variable("time", NC_DOUBLE, {time});
  file.text(times, "units", "hours since 2020-02-01");
  const int north = file.variable(projected ? "nav_lat" : "lat", NC_DOUBLE,
                                  projected ? std::vector{y, x} : std::vector{y}),
            east = file.variable(projected ? "nav_lon" : "lon", NC_DOUBLE,
                                 projected ? std::vector{y, x} : std::vector{x});
  file.text(north, "units", "degrees_north");
  file.text(east, "units", "degrees_east");
  const int t2m = file.variable("t2m", NC_DOUBLE, {time, y, x}),
            cells = file.variable("e1e2t", NC_DOUBLE, {y, x}), deep = file.dimension("depth", 2);
  const int depth = file.variable("depth", NC_DOUBLE, {deep});
  file.text(depth, "units", "m");
  file.text(file.variable("volume", NC_DOUBLE, {deep, y, x}), "units", "m3");
  file.text(cells, "units", "m2");
  file.text(cells, "standard_name", "cell_area");
  file.end();
  file.put(times, {0, 6, 12, 18});
  file.put(depth, {1, 10});
  Numbers latitudes, longitudes, values, areas;
  for (std::int64_t point = 0; point < kPoints; ++point) {
    areas.push_back(factor * area(point));
    if (!projected && (point % kColumns != 0)) continue;
    latitudes.push_back(latitude(point));
  }
  for (std::int64_t point = 0; point < (projected ? kPoints : kColumns); ++point)
    longitudes.push_back(longitude(point));
  for (std::int64_t i = 0; i < 4 * kPoints; ++i) values.push_back(std::sin(static_cast<double>(i)));
  file.put(north, latitudes);
  file.put(east, longitudes);
  file.put(t2m, values);
  file.put(cells, areas);
  return path;
}

DataOptions options_of(const std::string& path, const std::string& cell_area) {
  DataOptions options;
  options.files = {path};
  options.variables = {{"t2m", {}}};
  options.train = {period("2020-02-01", "2020-02-02")};
  options.cell_area = cell_area;
  return options;
}

/// Of the whole grid, as each rank of several finds its rows; the same bits on any number of ranks.
Numbers weights_of(const DataOptions& options) {
  Numbers alone;
  for (const int ranks : {1, 2, 4}) {
    Numbers all(static_cast<std::size_t>(kPoints), NAN);
    std::mutex mutex;
    run_ranks(ranks, [&](Communicator& communicator) {
      Dataset data(options, "", 1, communicator);
      const std::int64_t first = kRows * communicator.rank() / ranks,
                         end = kRows * (communicator.rank() + 1) / ranks;
      const auto values = data.cell_weights().of({{first, 0}, {end - first, kColumns}});
      const std::lock_guard lock(mutex);
      std::ranges::copy(*values, all.begin() + first * kColumns);
    });
    if (ranks == 1) alone = all;
    EXPECT_EQ(all, alone) << ranks;
  }
  return alone;
}

TEST(CellWeights, OfAVariableAreItsValuesOverTheirMean) {
  const TemporaryFolder folder;
  double sum = 0;
  for (std::int64_t point = 0; point < kPoints; ++point) sum += std::isnan(area(point)) ? 0 : area(point);
  const double mean = sum / static_cast<double>(kPoints);
  for (const bool projected : {true, false}) {
    const std::string path = write(folder, projected ? "projected.nc" : "rows.nc", projected);
    const Numbers weights = weights_of(options_of(path, "e1e2t"));
    double total = 0;
    for (std::int64_t point = 0; point < kPoints; ++point) {
      const double found = weights[static_cast<std::size_t>(point)];
      EXPECT_NEAR(found, std::isnan(area(point)) ? 0 : area(point) / mean, 1e-12) << point;
      total += found;
    }
    EXPECT_NEAR(total / static_cast<double>(kPoints), 1, 1e-13);
    EXPECT_EQ(weights_of(options_of(path, "cell_area")), weights) << "by its standard_name";
  }
}

TEST(CellWeights, AreThoseOfRowsOrAlikeWhereNothingIsNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(weights_of(options_of(write(folder, "projected.nc", true), "")),
            Numbers(static_cast<std::size_t>(kPoints), 1.0));
  const std::string rows = write(folder, "rows.nc", false);
  const Numbers weights = weights_of(options_of(rows, ""));
  EXPECT_GT(weights.front(), weights.back());
  EXPECT_EQ(weights_of(options_of(rows, "auto")), weights);
}

TEST(CellWeights, AutomaticOnesAreThoseBetweenThePlaces) {
  const TemporaryFolder folder;
  const Numbers weights = weights_of(options_of(write(folder, "projected.nc", true), "auto"));
  PointPlaces places;
  for (std::int64_t point = 0; point < kPoints; ++point) {
    places.latitude.push_back(latitude(point));
    places.longitude.push_back(longitude(point));
  }
  const Shape grid{kRows, kColumns};
  const Numbers areas = cell_areas(places, Box::whole(grid), grid);
  double sum = 0;
  for (const double each : areas) sum += each;
  for (std::size_t i = 0; i < areas.size(); ++i) {
    EXPECT_NEAR(weights[i], areas[i] * static_cast<double>(kPoints) / sum, 1e-12) << i;
    // Parallelograms of the sides (0.02, 0.5) and (0.5, 0.01) in degrees of latitude and longitude.
    const double along = std::cos(latitude(static_cast<std::int64_t>(i)) * kRadians);
    EXPECT_NEAR(areas[i] / (0.2498 * kRadians * kRadians * along), 1, 1e-3) << i;
  }
}

/// Of a globe whose first two columns stand once more at the end: a point counts once, whatever its copies.
TEST(CellWeights, CopiesShareTheWeightOfOnePoint) {
  const TemporaryFolder folder;
  const Globe globe{10, false};
  const std::int64_t rows = globe.rows(), columns = globe.columns() + 2;
  const std::string path = concat(folder.path(), "/halo.nc");
  {
    NetcdfWriter file(path);
    const int time = file.dimension("time", 4), y = file.dimension("y", static_cast<std::size_t>(rows)),
              x = file.dimension("x", static_cast<std::size_t>(columns));
    const int times = file.variable("time", NC_DOUBLE, {time}),
              north = file.variable("nav_lat", NC_DOUBLE, {y, x}),
              east = file.variable("nav_lon", NC_DOUBLE, {y, x}),
              t2m = file.variable("t2m", NC_DOUBLE, {time, y, x}),
              cells = file.variable("e1e2t", NC_DOUBLE, {y, x}),
              once = file.variable("inner", NC_DOUBLE, {y, x});
    file.text(times, "units", "hours since 2020-02-01");
    file.text(north, "units", "degrees_north");
    file.text(east, "units", "degrees_east");
    file.end();
    Numbers latitudes, longitudes, values, areas, inner;
    for (std::int64_t point = 0; point < rows * columns; ++point) {
      const std::int64_t row = point / columns, column = point % columns;
      latitudes.push_back(globe.latitude(row));
      longitudes.push_back(10 * static_cast<double>(column % 36));
      areas.push_back(globe.area(row));
      inner.push_back(column == 0 || column == columns - 1 ? 0 : globe.area(row));
    }
    for (std::int64_t i = 0; i < 4 * rows * columns; ++i) values.push_back(std::sin(static_cast<double>(i)));
    file.put(times, {0, 6, 12, 18});
    file.put(north, latitudes);
    file.put(east, longitudes);
    file.put(t2m, values);
    file.put(cells, areas);
    file.put(once, inner);
  }
  for (const auto& [cell_area, first, second] :
       {std::tuple{"auto", 0.5, 0.5}, std::tuple{"e1e2t", 0.5, 0.5}, std::tuple{"inner", 0.0, 1.0}}) {
    run_ranks(1, [&, &name = cell_area, &outer = first, &next = second](Communicator& communicator) {
      Dataset data(options_of(path, name), "", 1, communicator);
      const auto weights = data.cell_weights().of(Box::whole({rows, columns}));
      for (const Box& part : {Box{{3, 0}, {2, 1}}, Box{{0, columns - 3}, {rows, 3}}}) {
        const auto of_part = data.cell_weights().of(part);
        for (std::int64_t i = 0; i < part.extent.count(); ++i) {
          const std::int64_t row = part.begin[0] + i / part.extent[1],
                             column = part.begin[1] + i % part.extent[1];
          EXPECT_EQ((*of_part)[static_cast<std::size_t>(i)],
                    (*weights)[static_cast<std::size_t>(row * columns + column)]);
        }
      }
      const double mean = 4 * std::numbers::pi / static_cast<double>(rows * columns);
      for (std::int64_t point = 0; point < rows * columns; ++point) {
        const std::int64_t row = point / columns, column = point % columns;
        const bool outermost = column == 0 || column == columns - 1,
                   beside = column == 1 || column == columns - 2;
        const double share = outermost ? outer : beside ? next : 1;
        EXPECT_NEAR((*weights)[static_cast<std::size_t>(point)], share * globe.area(row) / mean,
                    0.02 * globe.area(row) / mean)
            << name << " " << row << " " << column;
      }
    });
  }
}

TEST(CellWeights, AreasThatAreNoneAreRefused) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& path, const std::string& cell_area) {
    std::string message;
    std::mutex mutex;
    run_ranks(2, [&](Communicator& communicator) {
      const std::string found =
          message_of<Error>([&] { Dataset(options_of(path, cell_area), "", 1, communicator); });
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(message.empty() || message == found);
      message = found;
    });
    return message;
  };
  const std::string negative = write(folder, "negative.nc", true, -1),
                    none = write(folder, "none.nc", true, 0);
  EXPECT_EQ(
      refusal(negative, "e1e2t"),
      concat("data.cell_area: e1e2t in ", negative,
             " is -1.5e+09 at row 0, column 0 of the grid; areas of cells must be numbers from 0 on, or "
             "missing"));
  EXPECT_EQ(refusal(none, "e1e2t"),
            concat("data.cell_area: e1e2t in ", none,
                   " is above 0 nowhere; it must hold the areas of the grid's cells"));
  EXPECT_EQ(refusal(none, "volume"),
            "data.cell_area: volume has levels; areas of cells are one field, without levels");
  const std::string absent = refusal(none, "areacello");
  EXPECT_EQ(absent.find("data.cell_area: "), 0U) << absent;
  EXPECT_NE(absent.find("areacello"), std::string::npos) << absent;
}

TEST(CellWeights, OfForecastsThatAreNotScoredNeedNoAreas) {
  const TemporaryFolder folder;
  const std::string path = write(folder, "projected.nc", true);
  run_ranks(1, [&](Communicator& communicator) {
    Dataset trained(options_of(path, ""), "", 1, communicator);
    DataUse use;
    use.statistics = trained.statistics();
    use.train = use.valid = false;
    Dataset data(options_of(path, "elsewhere"), "", 1, communicator, use);
    EXPECT_TRUE(data.cell_weights().by_rows());
  });
}

/// As init looks for it.
TEST(CellAreaVariable, IsFoundByItsNameOrStandardName) {
  const TemporaryFolder folder;
  const auto find = [&](const std::vector<std::pair<std::string, std::string>>& names_and_units) {
    const std::string path = concat(folder.path(), "/areas.nc");
    {
      NetcdfWriter file(path);
      const int y = file.dimension("lat", 2), x = file.dimension("lon", 2);
      const int north = file.variable("lat", NC_DOUBLE, {y}), east = file.variable("lon", NC_DOUBLE, {x});
      file.text(north, "units", "degrees_north");
      file.text(east, "units", "degrees_east");
      for (const auto& [name, units] : names_and_units) {
        const int variable = file.variable(name, NC_DOUBLE, {y, x});
        file.text(variable, "units", units);
        if (name == "e1e2t") file.text(variable, "standard_name", "cell_area");
      }
      file.end();
      file.put(north, {10, 20});
      file.put(east, {1, 2});
    }
    return FileSet({path}).cell_area_variable().value_or("none");
  };
  EXPECT_EQ(find({{"t2m", "K"}, {"area", "km"}}), "none");
  EXPECT_EQ(find({{"t2m", "K"}, {"area", "m^2"}}), "area");
  EXPECT_EQ(find({{"area", "m2"}, {"TAREA", "centimeter^2"}}), "TAREA");
  EXPECT_EQ(find({{"e1e2t", "m2"}, {"t2m", "K"}}), "e1e2t");
  EXPECT_EQ(find({{"e1e2t", "m2"}, {"areacello", ""}}), "areacello");
}

/// Columns of a globe, whole or but for a part of them, as points with places of their own.
TEST(GoesRound, ShowsInThePlacesOfTheEnds) {
  const TemporaryFolder folder;
  const auto columns_go_round = [&](double part, bool land) {
    constexpr std::int64_t kLines = 3, kAround = 12;
    const std::string path = concat(folder.path(), "/round.nc");
    {
      NetcdfWriter file(path);
      const int time = file.dimension("time", 2), y = file.dimension("y", kLines),
                x = file.dimension("x", kAround);
      const int times = file.variable("time", NC_DOUBLE, {time}),
                north = file.variable("nav_lat", NC_DOUBLE, {y, x}),
                east = file.variable("nav_lon", NC_DOUBLE, {y, x}),
                tos = file.variable("tos", NC_DOUBLE, {time, y, x});
      file.text(times, "units", "hours since 2020-02-01");
      file.text(north, "units", "degrees_north");
      file.text(east, "units", "degrees_east");
      file.end();
      Numbers latitudes, longitudes;
      for (std::int64_t i = 0; i < kLines * kAround; ++i) {
        const std::int64_t row = i / kAround, column = i % kAround;
        latitudes.push_back(40 * static_cast<double>(row) - 41 + static_cast<double>(column % 3));
        const double degrees = 75 + 360 * part * static_cast<double>(column) / static_cast<double>(kAround);
        longitudes.push_back(land && row == 1 && column == 0 ? NAN : degrees > 180 ? degrees - 360 : degrees);
      }
      file.put(times, {0, 6});
      file.put(north, latitudes);
      file.put(east, longitudes);
      file.put(tos, Numbers(static_cast<std::size_t>(2 * kLines * kAround), 1.0));
    }
    FileSet files({path});
    files.select({"tos", {}}, true);
    EXPECT_FALSE(files.goes_round().rows);
    return files.goes_round().columns;
  };
  for (const bool land : {false, true}) {
    EXPECT_TRUE(columns_go_round(1, land));
    EXPECT_TRUE(columns_go_round(14.0 / 12, land)) << "with two columns more than once";
    EXPECT_FALSE(columns_go_round(0.75, land));
    EXPECT_FALSE(columns_go_round(0.25, land));
  }
}

}  // namespace cell_weights_test
}  // namespace jigsaw
