// A model on a grid of WRF, whose points have latitudes and longitudes of their own: what predict writes of
// them and how evaluate scores a region, alone and on two ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "end_to_end/command.h"
#include "io/netcdf_writer.h"
#include "support/netcdf_reader.h"

namespace jigsaw::e2e {
namespace {

using testing::NetcdfReader;
using testing::NetcdfWriter;

/// More rows than there are degrees of latitude.
constexpr std::size_t kRows = 96, kColumns = 10, kPoints = kRows * kColumns, kTimes = 28;
constexpr std::size_t kFirstValid = 20, kWindows = 7;

double latitude(std::size_t i) {
  return 30 + 0.25 * static_cast<double>(i / kColumns) + 0.125 * static_cast<double>(i % kColumns);
}

/// Across the dateline, in [-180, 180).
double longitude(std::size_t i) {
  const double degrees =
      178 + 0.5 * static_cast<double>(i % kColumns) - 0.03125 * static_cast<double>(i / kColumns);
  return degrees < 180 ? degrees : degrees - 360;
}

class Projected : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    write_wrf(path("wrfout_d01"));
    const Json config = {
        {"data",
         {{"files", {path("wrfout_d01")}},
          {"variables", {"T2"}},
          {"forcings", {"latitude", "longitude"}},
          {"lead_hours", 6},
          {"train", {"2021-01-01", "2021-01-05"}},
          {"valid", {"2021-01-06", "2021-01-07"}}}},
        {"model", {{"type", "weathermixer"}, {"patch", {8, 5}}, {"embed_dim", 8}, {"depth", 1}}},
        {"train", {{"steps", 4}, {"batch_size", 2}, {"precision", "fp64"}}},
        {"checkpoint", {{"every", 4}}}};
    folder_->write("config.json", config.dump());
    const Outcome outcome = run(1, "--config " + path("config.json") + " --set output=" + path("run"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return *folder_ / name; }

  /// Six-hourly from 1 January 2021 on. @param turned  rows and columns the other way round.
  static void write_wrf(const std::string& name, bool turned = false) {
    NetcdfWriter file(name);
    const int time = file.dimension("Time", NC_UNLIMITED), length = file.dimension("DateStrLen", 19),
              y = file.dimension("south_north", kRows), x = file.dimension("west_east", kColumns);
    const int dates = file.variable("Times", NC_CHAR, {time, length}),
              latitudes = file.variable("XLAT", NC_FLOAT, {time, y, x}),
              longitudes = file.variable("XLONG", NC_FLOAT, {time, y, x}),
              t2 = file.variable("T2", NC_FLOAT, {time, y, x}),
              areas = file.variable("AREA", NC_DOUBLE, {y, x});
    file.text(latitudes, "units", "degree_north");
    file.text(longitudes, "units", "degree_east");
    file.text(t2, "units", "K");
    file.end();
    std::string texts;
    std::vector<double> north, east, values;
    for (std::size_t t = 0; t < kTimes; ++t) {
      char text[64];
      std::snprintf(text, sizeof text, "2021-01-%02zu_%02zu:00:00", 1 + t / 4, 6 * (t % 4));
      texts += text;
      for (std::size_t point = 0; point < kPoints; ++point) {
        const std::size_t i = turned ? kPoints - 1 - point : point;
        north.push_back(latitude(i));
        east.push_back(longitude(i));
        values.push_back(280 + 9 * std::sin(0.7 * static_cast<double>(t) + latitude(i)) +
                         std::cos(3 * longitude(i)));
      }
    }
    const std::size_t start[] = {0, 0}, extent[] = {kTimes, 19};
    NetcdfWriter::check(nc_put_vara_text(file.root(), dates, start, extent, texts.c_str()));
    const std::vector<std::size_t> all = {kTimes, kRows, kColumns};
    file.put(latitudes, all, north);
    file.put(longitudes, all, east);
    file.put(t2, all, values);
    std::vector<double> cells;
    for (std::size_t point = 0; point < kPoints; ++point) {
      const std::size_t i = turned ? kPoints - 1 - point : point;
      cells.push_back(2 + std::sin(0.01 * static_cast<double>(i)) + 0.5 * std::cos(static_cast<double>(i)));
    }
    file.put(areas, cells);
  }

  static void command(int ranks, const std::string& name, const std::string& more) {
    const std::string mesh = ranks > 1 ? " --set 'mesh={\"domain\":[2,1]}' " : " ";
    const Outcome outcome =
        run(ranks, name + " --config " + path("config.json") + " --checkpoint " + path("run") + mesh + more);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }

 private:
  inline static std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(Projected, ForecastsHaveThePlacesOfTheirPoints) {
  const std::string dates = "--start 2021-01-06 --steps 2 --output ";
  command(1, "predict", dates + path("one.nc"));
  command(2, "predict", dates + path("two.nc"));
  const NetcdfReader one(path("one.nc")), two(path("two.nc"));
  for (const NetcdfReader* file : {&one, &two}) {
    EXPECT_EQ(file->extents("T2"), (std::vector<std::size_t>{1, 2, kRows, kColumns}));
    EXPECT_EQ(file->text("T2", "coordinates"), "XLAT XLONG valid_time");
    const std::vector<double> north = file->values("XLAT"), east = file->values("XLONG");
    ASSERT_EQ(north.size(), kPoints);
    for (std::size_t i = 0; i < kPoints; ++i) {
      ASSERT_EQ(north[i], latitude(i)) << i;
      ASSERT_EQ(east[i], longitude(i)) << i;
    }
  }
  // Maps of a climate have them, too.
  command(2, "evaluate", "--climate season --maps " + path("maps.nc"));
  const NetcdfReader maps(path("maps.nc"));
  EXPECT_EQ(maps.extents("T2_std"), (std::vector<std::size_t>{5, kRows, kColumns}));
  EXPECT_EQ(maps.text("T2_std", "coordinates"), "XLAT XLONG");
  EXPECT_EQ(maps.values("XLAT"), one.values("XLAT"));
  EXPECT_EQ(maps.values("XLONG"), one.values("XLONG"));
  const std::vector<double> alone = one.values("T2"), together = two.values("T2");
  for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(alone[i], together[i], 3.1e-5) << i;
  if (std::system("/usr/bin/python3 -c 'import xarray, netCDF4' > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "xarray (scripts/setup.sh --readers) is not here";
  const std::string check =
      "import xarray; d = xarray.open_dataset('" + path("one.nc") +
      "'); assert d.T2.dims == ('time', 'lead_time', 'south_north', 'west_east'), d.T2.dims; "
      "assert {'XLAT', 'XLONG', 'valid_time'} <= set(d.T2.coords), d.T2.coords; "
      "assert d.XLAT.dims == ('south_north', 'west_east'); assert float(d.XLAT[4, 2]) == 31.25";
  EXPECT_EQ(std::system(("/usr/bin/python3 -c " + quoted(check)).c_str()), 0);
}

/// A model is given fields as it saw them in training, however later files have them.
TEST_F(Projected, RowsAndColumnsThatRunTheOtherWayAreTurned) {
  write_wrf(path("turned"), true);
  const std::string dates = "--start 2021-01-06 --steps 2 --overwrite --output ";
  command(1, "predict", dates + path("one.nc"));
  for (const int ranks : {1, 2}) {
    command(ranks, "predict", dates + path("turned.nc") + " --set 'data.files=[\"" + path("turned") + "\"]'");
    const NetcdfReader one(path("one.nc")), other(path("turned.nc"));
    const std::vector<double> as_trained = one.values("T2"), turned = other.values("T2"),
                              north = other.values("XLAT");
    ASSERT_EQ(turned.size(), as_trained.size());
    EXPECT_EQ(north.front(), latitude(0));
    for (std::size_t i = 0; i < turned.size(); ++i) ASSERT_NEAR(turned[i], as_trained[i], 3.1e-5) << i;
  }
  const Outcome resumed = run(1, "--config " + path("config.json") + " --set output=" + path("run") +
                                     " --set train.steps=6 --set 'data.files=[\"" + path("turned") + "\"]'");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

/// Beside loops over what predict writes.
TEST_F(Projected, RegionsAreThoseOfThePlaces) {
  command(1, "predict", "--period valid --output " + path("valid.nc"));
  const NetcdfReader forecasts(path("valid.nc")), states(path("wrfout_d01"));
  const std::vector<double> forecast = forecasts.values("T2"), truth = states.values("T2");
  ASSERT_GE(forecast.size(), kWindows * kPoints);
  for (const int ranks : {1, 2}) {
    command(ranks, "evaluate", "--region box=38,45,179,-178.5 --overwrite --json " + path("scores.json"));
    const Json scores = Json::parse(read(path("scores.json")));
    ASSERT_EQ(scores.at("forecasts"), kWindows);
    for (const bool all : {false, true}) {
      double squares = 0, bias = 0;
      std::size_t points = 0;
      for (std::size_t window = 0; window < kWindows; ++window) {
        for (std::size_t i = 0; i < kPoints; ++i) {
          const bool inside =
              latitude(i) >= 38 && latitude(i) <= 45 && (longitude(i) >= 179 || longitude(i) <= -178.5);
          if (!all && !inside) continue;
          const double error =
              forecast[window * kPoints + i] - truth[(kFirstValid + window + 1) * kPoints + i];
          squares += error * error;
          bias += error;
          ++points;
        }
      }
      ASSERT_GT(points, 0U);
      ASSERT_TRUE(all || points < kWindows * kPoints / 2);
      const Json& said = scores.at("scores").at("T2").at(all ? "all" : "box");
      const double rmse = std::sqrt(squares / static_cast<double>(points));
      EXPECT_NEAR(said.at("rmse").at(0).get<double>(), rmse, 1e-5 * rmse) << ranks << all;
      EXPECT_NEAR(said.at("bias").at(0).get<double>(), bias / static_cast<double>(points), 3e-5)
          << ranks << all;
    }
  }
  const Outcome none = run(2, "evaluate --config " + path("config.json") + " --checkpoint " + path("run") +
                                  " --set 'mesh={\"domain\":[2,1]}' --region dot=0,1,2,3");
  EXPECT_EQ(none.exit_code, 2);
  ASSERT_EQ(none.errors().size(), 1U) << none.err;
  EXPECT_NE(none.errors()[0].find("the region dot holds no point"), std::string::npos) << none.err;
}

/// The same with areas that the files hold, of a model that was trained without.
TEST_F(Projected, ScoresCountByTheAreasOfCells) {
  command(1, "predict", "--period valid --overwrite --output " + path("valid.nc"));
  const NetcdfReader forecasts(path("valid.nc")), states(path("wrfout_d01"));
  const std::vector<double> forecast = forecasts.values("T2"), truth = states.values("T2"),
                            areas = states.values("AREA");
  ASSERT_EQ(areas.size(), kPoints);
  double squares = 0, absolute = 0;
  for (std::size_t window = 0; window < kWindows; ++window) {
    double sum = 0, sizes = 0, all = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      const double error = forecast[window * kPoints + i] - truth[(kFirstValid + window + 1) * kPoints + i];
      sum += areas[i] * error * error;
      sizes += areas[i] * std::abs(error);
      all += areas[i];
    }
    squares += sum / all / static_cast<double>(kWindows);
    absolute += sizes / all / static_cast<double>(kWindows);
  }
  const std::string asks = "data.cell_area names a variable with the areas of cells";
  for (const int ranks : {1, 2}) {
    const std::string mesh = ranks > 1 ? " --set 'mesh={\"domain\":[2,1]}' " : " ",
                      evaluate = "evaluate --config " + path("config.json") + " --checkpoint " + path("run") +
                                 mesh + "--overwrite --json " + path("areas.json");
    const Outcome alike = run(ranks, evaluate),
                  weighted = run(ranks, evaluate + " --set data.cell_area=AREA");
    ASSERT_EQ(alike.exit_code, 0) << alike.err;
    ASSERT_EQ(weighted.exit_code, 0) << weighted.err;
    EXPECT_NE(alike.err.find(asks), std::string::npos) << alike.err;
    EXPECT_EQ(weighted.err.find(asks), std::string::npos) << weighted.err;
    const Json said = Json::parse(read(path("areas.json"))).at("scores").at("T2").at("all");
    EXPECT_NEAR(said.at("rmse").at(0).get<double>() / std::sqrt(squares), 1, 1e-5) << ranks;
    EXPECT_NEAR(said.at("mae").at(0).get<double>() / absolute, 1, 1e-5) << ranks;
  }
}

/// Of as many rows and columns, which alone would not tell.
TEST_F(Projected, AClimatologyOfOtherPlacesIsRefused) {
  {
    NetcdfWriter file(path("elsewhere.nc"));
    const int hour = file.dimension("hour", 1), day = file.dimension("dayofyear", 1),
              y = file.dimension("south_north", kRows), x = file.dimension("west_east", kColumns);
    const int latitudes = file.variable("XLAT", NC_FLOAT, {y, x}),
              longitudes = file.variable("XLONG", NC_FLOAT, {y, x});
    file.variable("T2", NC_FLOAT, {hour, day, y, x});
    file.end();
    std::vector<double> north, east;
    for (std::size_t i = 0; i < kPoints; ++i) {
      north.push_back(latitude(i) + 0.25);
      east.push_back(longitude(i));
    }
    file.put(latitudes, north);
    file.put(longitudes, east);
  }
  const Outcome refused =
      run(2, "evaluate --config " + path("config.json") + " --checkpoint " + path("run") +
                 " --set 'mesh={\"domain\":[2,1]}' --climatology " + path("elsewhere.nc"));
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  ASSERT_EQ(refused.errors().size(), 1U) << refused.err;
  EXPECT_NE(refused.errors()[0].find("lies at other latitudes"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace jigsaw::e2e
