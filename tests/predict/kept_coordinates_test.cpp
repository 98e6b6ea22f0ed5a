// What files of forecasts keep of the input beside its fields: scalar coordinates, and from when to when a
// state holds.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/netcdf_writer.h"
#include "predict/forecast_file.h"
#include "support/netcdf_reader.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace kept_coordinates_test {

using testing::NetcdfReader;
using testing::TemporaryFolder;

/// Daily means at noon, each with its day as bounds; the height of t2m is 2 m, that of u10 10 m.
std::string write_daily(const std::string& path, bool uneven, const char* units = "days since 1970-01-01") {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", 3), bounds = file.dimension("bnds", 2),
            lat = file.dimension("lat", 2), lon = file.dimension("lon", 3);
  const int times = file.variable("time", NC_DOUBLE, {time}),
            limits = file.variable("time_bnds", NC_DOUBLE, {time, bounds}),
            lats = file.variable("lat", NC_DOUBLE, {lat}), lons = file.variable("lon", NC_DOUBLE, {lon}),
            height = file.variable("height", NC_DOUBLE, {}), mast = file.variable("mast", NC_FLOAT, {}),
            layer = file.variable("layer", NC_FLOAT, {bounds}), run = file.variable("run", NC_DOUBLE, {}),
            other = file.variable("other", NC_DOUBLE, {});
  const int t2m = file.variable("t2m", NC_FLOAT, {time, lat, lon}),
            u10 = file.variable("u10", NC_FLOAT, {time, lat, lon});
  file.text(times, "units", units);
  file.text(times, "bounds", "time_bnds");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.text(height, "units", "m");
  file.text(height, "standard_name", "height");
  file.text(height, "positive", "up");
  file.text(mast, "units", "m");
  file.text(mast, "bounds", "layer");
  file.text(run, "units", "days since 1970-01-01");
  file.text(run, "standard_name", "forecast_reference_time");
  file.text(t2m, "coordinates", "height run");
  file.text(t2m, "cell_methods", "time: mean");
  file.text(u10, "coordinates", "mast");
  file.end();
  file.put(times, std::vector<double>{0.5, 1.5, 2.5});
  file.put(limits, std::vector<double>{0, 1, uneven ? 1.25 : 1, 2, 2, 3});
  file.put(lats, std::vector<double>{10, 20});
  file.put(lons, std::vector<double>{0, 5, 10});
  file.put(height, std::vector<double>{2});
  file.put(mast, std::vector<double>{10});
  file.put(layer, std::vector<double>{9, 11});
  file.put(run, std::vector<double>{0});
  file.put(other, std::vector<double>{7});
  return path;
}

std::string write_of(const TemporaryFolder& folder, const std::string& input, int every, bool means,
                     const RegridOptions& regrid = {}) {
  const std::string path = folder.path() + "/out.nc";
  std::filesystem::remove(path);
  FileSet files({input}, {.regrid = regrid});
  ForecastContents contents{{12 * kHour}, kDay, {0, 4}, {{"t2m", {}}, {"u10", {}}}, false, {}};
  contents.leads.every = every;
  contents.leads.means = means;
  for (const Field& field : contents.fields) files.select(field, true);
  OutputFile output(path, false);
  ForecastFile(files, contents, output, 1).finish();
  return path;
}

TEST(ForecastFile, KeepsScalarCoordinatesOfVariables) {
  const TemporaryFolder folder;
  const NetcdfReader file(write_of(folder, write_daily(folder.path() + "/in.nc", false), 1, false));
  EXPECT_EQ(file.text("t2m", "coordinates"), "valid_time height");
  EXPECT_EQ(file.values("height"), std::vector<double>{2});
  EXPECT_EQ(file.text("height", "units"), "m");
  EXPECT_EQ(file.text("height", "standard_name"), "height");
  EXPECT_EQ(file.text("height", "positive"), "up");
  EXPECT_EQ(file.text("u10", "coordinates"), "valid_time mast");
  EXPECT_EQ(file.values("mast"), std::vector<double>{10});
  EXPECT_EQ(file.text("mast", "bounds"), "layer");
  EXPECT_EQ(file.values("layer"), (std::vector<double>{9, 11}));
  EXPECT_FALSE(file.has("run")) << "the start of the forecasts is another";
  EXPECT_FALSE(file.has("other")) << "no variable names it";
}

/// As of ICON: a dimension of one height, of fields on a list of points that are brought to rows and columns.
TEST(ForecastFile, KeepsTheHeightOfADimensionOfOneEntry) {
  const TemporaryFolder folder;
  const std::string input = folder.path() + "/cells.nc";
  {
    testing::NetcdfWriter file(input);
    const int time = file.dimension("time", 3), upright = file.dimension("height_2", 1),
              cell = file.dimension("ncells", 4);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              height = file.variable("height_2", NC_DOUBLE, {upright}),
              lats = file.variable("clat", NC_DOUBLE, {cell}),
              lons = file.variable("clon", NC_DOUBLE, {cell});
    file.text(times, "units", "days since 1970-01-01");
    file.text(height, "units", "m");
    file.text(height, "standard_name", "height");
    file.text(lats, "units", "degrees_north");
    file.text(lons, "units", "degrees_east");
    for (const char* const name : {"t2m", "u10"}) {
      const int field = file.variable(name, NC_FLOAT, {time, upright, cell});
      file.put(field, std::vector<double>(12, 280));
    }
    file.put(times, std::vector<double>{0.5, 1.5, 2.5});
    file.put(height, std::vector<double>{2});
    file.put(lats, std::vector<double>{50, 50, 60, 60});
    file.put(lons, std::vector<double>{0, 10, 0, 10});
  }
  const NetcdfReader file(
      write_of(folder, input, 1, false, {Regrid::kNearest, {}, {60, 50, 10}, {0, 10, 10}}));
  EXPECT_EQ(file.text("t2m", "coordinates"), "valid_time height_2");
  EXPECT_EQ(file.text("u10", "coordinates"), "valid_time height_2");
  EXPECT_EQ(file.values("height_2"), std::vector<double>{2});
  EXPECT_EQ(file.text("height_2", "units"), "m");
  EXPECT_EQ(file.text("height_2", "standard_name"), "height");
}

TEST(ForecastFile, DailyMeansKeepTheBoundsOfTheirTimes) {
  const TemporaryFolder folder;
  const std::string input = write_daily(folder.path() + "/in.nc", false);
  {
    const NetcdfReader file(write_of(folder, input, 1, false));
    EXPECT_EQ(file.values("valid_time"), (std::vector<double>{36, 60, 84, 108}));
    EXPECT_EQ(file.text("valid_time", "bounds"), "valid_time_bnds");
    EXPECT_EQ(file.values("valid_time_bnds"), (std::vector<double>{24, 48, 48, 72, 72, 96, 96, 120}));
    EXPECT_FALSE(file.has("lead_time_bnds"));
  }
  {
    const NetcdfReader file(write_of(folder, input, 2, false));
    EXPECT_EQ(file.values("valid_time_bnds"), (std::vector<double>{48, 72, 96, 120}));
  }
  {
    const NetcdfReader file(write_of(folder, input, 2, true));
    EXPECT_EQ(file.values("valid_time_bnds"), (std::vector<double>{24, 72, 72, 120})) << "two whole days";
    EXPECT_EQ(file.values("time"), std::vector<double>{12});
    EXPECT_EQ(file.values("lead_time_bnds"), (std::vector<double>{12, 60, 60, 108})) << "the same from there";
  }
  const std::string uneven = write_daily(folder.path() + "/uneven.nc", true);
  EXPECT_FALSE(NetcdfReader(write_of(folder, uneven, 1, false)).has("valid_time_bnds"));
}

/// As simulations count them: forecasts of them do, too.
TEST(ForecastFile, TimesWithoutDatesStayWithoutThem) {
  const TemporaryFolder folder;
  const NetcdfReader file(write_of(folder, write_daily(folder.path() + "/in.nc", false, "days"), 1, false));
  for (const char* name : {"time", "valid_time"}) {
    EXPECT_EQ(file.text(name, "units"), "hours");
    EXPECT_EQ(file.text(name, "calendar"), "");
  }
  EXPECT_EQ(file.values("valid_time"), (std::vector<double>{36, 60, 84, 108}));
}

}  // namespace kept_coordinates_test
}  // namespace jigsaw
