// Files as the field has them: names, calendars, orders of rows and columns. What they hold is a formula of
// time, level and place, so that what is read can be compared wherever it stands in a file.
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace conventions_test {

using testing::NetcdfWriter;

double formula(double hours, double level, double latitude, double longitude) {
  const double radians = std::numbers::pi / 180;
  return 250 + 20 * std::sin(latitude * radians) + 5 * std::cos((longitude - 7) * radians) +
         2 * std::sin(3 * longitude * radians) + 0.125 * hours + level / 64;
}

std::vector<double> range(double first, double step, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(first + i * step);
  return values;
}

struct Spec {
  std::string variable = "t2m", standard_name, units = "K";
  std::vector<double> latitudes = range(90, -15, 13), longitudes = range(0, 15, 24);
  std::string latitude = "latitude", longitude = "longitude", time = "time";
  std::string time_units = "hours since 2020-02-01", calendar;
  std::vector<double> times = {0, 6, 12, 18};  ///< in hours
  double times_per_hour = 1;                   ///< how times are stored
  std::string level, level_units;
  std::vector<double> levels;
  double levels_per_hpa = 1;
  bool longitude_first = false;
  int mode = NC_NETCDF4;
  double shift = 0;  ///< of all values
};

/// What stands at each point of a file, in its order.
std::vector<double> values_of(const Spec& spec) {
  const std::vector<double> levels = spec.levels.empty() ? std::vector{0.0} : spec.levels;
  std::vector<double> values;
  const auto point = [&](double hours, double level, double latitude, double longitude) {
    values.push_back(formula(hours, level, latitude, longitude) + spec.shift);
  };
  for (const double hours : spec.times) {
    for (const double level : levels) {
      for (const double outer : spec.longitude_first ? spec.longitudes : spec.latitudes) {
        for (const double inner : spec.longitude_first ? spec.latitudes : spec.longitudes) {
          if (spec.longitude_first) {
            point(hours, level, inner, outer);
          } else {
            point(hours, level, outer, inner);
          }
        }
      }
    }
  }
  return values;
}

int coordinate(NetcdfWriter& file, const std::string& name, const std::vector<double>& values, double factor,
               const std::string& units, const std::string& calendar = "") {
  const int dimension = file.dimension(name, values.size());
  const int variable = file.variable(name, NC_DOUBLE, {dimension});
  file.text(variable, "units", units);
  file.text(variable, "calendar", calendar);
  file.end();
  std::vector<double> stored;
  for (const double value : values) stored.push_back(value * factor);
  file.put(variable, stored);
  if (nc_redef(file.root()) != NC_NOERR) ADD_FAILURE();
  return dimension;
}

std::string write(const testing::TemporaryFolder& folder, const std::string& name, const Spec& spec) {
  const std::string path = concat(folder.path(), "/", name);
  NetcdfWriter file(path, spec.mode);
  std::vector<int> dimensions = {
      coordinate(file, spec.time, spec.times, spec.times_per_hour, spec.time_units, spec.calendar)};
  if (!spec.levels.empty()) {
    dimensions.push_back(coordinate(file, spec.level, spec.levels, spec.levels_per_hpa, spec.level_units));
  }
  const int rows = coordinate(file, spec.latitude, spec.latitudes, 1, "degrees_north");
  const int columns = coordinate(file, spec.longitude, spec.longitudes, 1, "degrees_east");
  dimensions.push_back(spec.longitude_first ? columns : rows);
  dimensions.push_back(spec.longitude_first ? rows : columns);
  const int variable = file.variable(spec.variable, NC_DOUBLE, dimensions);
  file.text(variable, "units", spec.units);
  file.text(variable, "standard_name", spec.standard_name);
  file.end();
  file.put(variable, values_of(spec));
  return path;
}

/// What is read of a box; what can be streamed must be the same.
std::vector<double> read_box(FileSet& files, const Field& field, Time time, const Box& box) {
  std::vector<double> found(static_cast<std::size_t>(box.extent.count())), streamed(found);
  std::optional<HyperslabStream> stream = files.stream(field, time, box);
  if (stream) stream->read<double>(streamed);
  files.read(field, time, box, found);
  for (std::size_t i = 0; stream && i < found.size(); ++i)
    EXPECT_TRUE(streamed[i] == found[i] || (std::isnan(streamed[i]) && std::isnan(found[i]))) << box;
  return found;
}

/// Compares every box of a few, at every time, with the formula at the grid's own coordinates.
void expect_formula(FileSet& files, const Field& field, double hours_of_first, double step_hours = 6,
                    double tolerance = 1e-9) {
  const auto& rows = files.grid().axes[0].coordinates;
  const auto& columns = files.grid().axes[1].coordinates;
  const std::int64_t height = std::ssize(rows), width = std::ssize(columns);
  const std::vector<Box> boxes = {Box::whole({height, width}),
                                  {{height / 3, width / 4}, {height / 2, width / 2}},
                                  {{0, width - 2}, {1, 2}},
                                  {{height - 1, 0}, {1, 3}}};
  for (std::size_t t = 0; t < files.times(field).size(); ++t) {
    for (const Box& box : boxes) {
      const std::vector<double> found = read_box(files, field, files.times(field)[t], box);
      std::size_t i = 0;
      for (std::int64_t y = box.begin[0]; y < box.end(0); ++y) {
        for (std::int64_t x = box.begin[1]; x < box.end(1); ++x, ++i) {
          const double wanted =
              formula(hours_of_first + step_hours * static_cast<double>(t), field.level.value_or(0),
                      rows[static_cast<std::size_t>(y)], columns[static_cast<std::size_t>(x)]);
          ASSERT_NEAR(found[i], wanted, tolerance) << "time " << t << ", row " << y << ", column " << x;
        }
      }
    }
  }
}

const Field kT2m{"t2m", {}};

TEST(Conventions, FilesThatDifferInTheOrderOfRowsAndColumnsArePutRight) {
  const testing::TemporaryFolder folder;
  const std::string north = write(folder, "a.nc", {});
  Spec other{.latitudes = range(-90, 15, 13), .longitudes = range(-180, 15, 24), .times = {24, 30}};
  const std::string south = write(folder, "b.nc", other);
  other.times = {36, 42};
  other.longitude_first = true;
  const std::string turned = write(folder, "c.nc", other);
  Spec cyclic{.longitudes = range(0, 15, 25), .times = {48}};  // the first column once more at 360
  const std::string twice = write(folder, "d.nc", cyclic);
  FileSet files({north, south, turned, twice});
  files.select(kT2m, true);
  ASSERT_EQ(files.times(kT2m).size(), 9U);
  EXPECT_EQ(files.grid().axes[0].coordinates, range(90, -15, 13));
  EXPECT_EQ(files.grid().axes[1].coordinates, range(0, 15, 24));
  EXPECT_TRUE(files.grid().periodic);
  expect_formula(files, kT2m, 0);
  FileSet others({twice, south});
  others.select(kT2m, true);
  EXPECT_EQ(others.grid().shape(), (Shape{13, 24}));
  EXPECT_TRUE(others.grid().periodic);
}

TEST(Conventions, ABoxOfATurnedFileCostsItsOwnBytes) {
  const testing::TemporaryFolder folder;
  const std::string north = write(folder, "a.nc", {.times = {0}});
  const std::string south = write(
      folder, "b.nc", {.latitudes = range(-90, 15, 13), .longitudes = range(-180, 15, 24), .times = {6}});
  FileSet files({north, south});
  files.select(kT2m, true);
  const std::int64_t before = files.bytes_read();
  const Box box{{3, 9}, {5, 6}};  // columns 135 to 210, which lie at both ends of the other file
  std::vector<double> values(30);
  files.read(kT2m, files.times(kT2m)[1], box, values);
  EXPECT_EQ(files.bytes_read() - before, 30 * 8);
}

TEST(Conventions, AreasMayCrossTheDateline) {
  const testing::TemporaryFolder folder;
  const std::vector<double> across = {165, 170, 175, -180, -175, -170};
  const std::string path = write(folder, "a.nc", {.latitudes = range(-30, 5, 9), .longitudes = across});
  FileSet files({path});
  files.select(kT2m, true);
  EXPECT_EQ(files.grid().axes[1].coordinates, range(165, 5, 6));
  EXPECT_EQ(files.describe(kT2m).columns.values, range(165, 5, 6)) << "forecasts have them without a jump";
  EXPECT_FALSE(files.grid().periodic);
  expect_formula(files, kT2m, 0);
}

/// As a model saw it that was trained from the dateline on, whatever file it is given.
TEST(Conventions, AWholeCircleIsWrittenWithoutAJump) {
  const testing::TemporaryFolder folder;
  const std::string path = write(folder, "a.nc", {});
  FileSet files({path}, {.like = GridOrder{{90, -90}, {-180, 165}}});
  files.select(kT2m, true);
  EXPECT_EQ(files.grid().axes[1].coordinates, range(-180, 15, 24));
  EXPECT_EQ(files.describe(kT2m).columns.values, range(-180, 15, 24));
  // The corners of a projection say nothing of a geographic grid.
  const std::string west = write(folder, "b.nc", {.longitudes = range(-180, 15, 24)});
  FileSet others({west}, {.like = GridOrder{{}, {}, {1, 2, 3, 4, 5, 6, 7, 8}}});
  others.select(kT2m, true);
  EXPECT_EQ(others.grid().axes[1].coordinates, range(-180, 15, 24));
  EXPECT_EQ(others.grid().axes[0].coordinates, range(90, -15, 13));
}

TEST(Conventions, ARegionIsTakenFromEitherConvention) {
  const testing::TemporaryFolder folder;
  const std::string east = write(folder, "a.nc", {.times = {0, 6}});
  const std::string west = write(folder, "b.nc", {.longitudes = range(-180, 15, 24), .times = {12, 18}});
  const auto check = [&](const RegionOptions& region, const std::vector<double>& rows,
                         const std::vector<double>& columns, const std::vector<std::int64_t>& every = {1}) {
    for (const auto& paths : {std::vector{east, west}, std::vector{west, east}}) {
      FileSet files(paths, {.region = region, .every = every});
      files.select(kT2m, true);
      EXPECT_EQ(files.grid().axes[0].coordinates, rows);
      EXPECT_EQ(files.grid().axes[1].coordinates, columns);
      EXPECT_EQ(files.describe(kT2m).rows.values, rows);
      // Ascending in forecasts, from a western end in [-180, 180) on, whatever files and region say.
      std::vector<double> written = columns;
      for (double& longitude : written) longitude -= columns[0] < 180 ? 0 : 360;
      EXPECT_EQ(files.describe(kT2m).columns.values, written);
      expect_formula(files, kT2m, 0);
    }
  };
  check({{-30, 45}, {-30, 30}}, range(45, -15, 6), range(-30, 15, 5));
  check({{-30, 45}, {330, 30}}, range(45, -15, 6), range(330, 15, 5));
  check({{-31, 46}, {160, -160}}, range(45, -15, 6), range(165, 15, 3));
  check({{}, {-180, 180}}, range(90, -15, 13), range(-180, 15, 24));
  check({{-30, 45}, {-30, 30}}, range(45, -30, 3), range(-30, 30, 3), {2});
  check({{-90, 45}, {-30, 75}}, range(45, -30, 5), range(-30, 45, 3), {2, 3});
  FileSet nothing({east}, {.region = {{1, 2}, {}}});
  const std::string why = message_of<DataError>([&] { nothing.select(kT2m, true); });
  EXPECT_NE(why.find("no point in data.region.latitude; its latitudes go from -90 to 90"), std::string::npos)
      << why;
}

TEST(Conventions, AnotherGridSaysInWhatItDiffers) {
  const testing::TemporaryFolder folder;
  const std::string a = write(folder, "a.nc", {});
  const std::string b = write(folder, "b.nc", {.latitudes = range(82.5, -13.75, 13), .times = {24}});
  FileSet files({a, b});
  const std::string message = message_of<DataError>([&] { files.select(kT2m, true); });
  EXPECT_NE(message.find("another grid (13 x 24)"), std::string::npos) << message;
  EXPECT_NE(
      message.find("its latitudes are 82.5, 68.75 ... -82.5 (13), those of the other 90, 75 ... -90 (13)"),
      std::string::npos)
      << message;
  EXPECT_EQ(message.find("longitudes"), std::string::npos) << message;
}

// int16 with scale and offset, hours since 1900, and each time in one of two versions.
TEST(Conventions, LegacyFilesOfTheClimateDataStore) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/era5.nc";
  const Spec spec;
  constexpr double kScale = 0.002, kOffset = 260;
  const std::size_t points = spec.latitudes.size() * spec.longitudes.size();
  {
    NetcdfWriter file(path, NC_64BIT_OFFSET);
    std::vector<double> since_1900;
    for (const double hours : spec.times) since_1900.push_back(1052640 + hours);  // 2020-02-01
    const std::vector<int> dimensions = {
        coordinate(file, "time", since_1900, 1, "hours since 1900-01-01 00:00:00.0", "gregorian"),
        coordinate(file, "expver", {5, 1}, 1, ""),
        coordinate(file, "latitude", spec.latitudes, 1, "degrees_north"),
        coordinate(file, "longitude", spec.longitudes, 1, "degrees_east")};
    const int variable = file.variable("t2m", NC_SHORT, dimensions);
    file.text(variable, "units", "K");
    file.number(variable, "scale_factor", NC_DOUBLE, kScale);
    file.number(variable, "add_offset", NC_DOUBLE, kOffset);
    file.number(variable, "_FillValue", NC_SHORT, -32767);
    file.number(variable, "missing_value", NC_SHORT, -32767);
    file.end();
    const std::vector<double> values = values_of(spec);
    std::vector<double> stored;
    for (std::size_t t = 0; t < spec.times.size(); ++t) {
      for (const int version : {5, 1}) {
        for (std::size_t i = 0; i < points; ++i) {
          const bool here = (version == 1) == (t < 2);
          // One point is missing in both; another is in both, and the final one holds.
          const bool everywhere = i == 17 && t == 0, nowhere = i == 33;
          double value = std::round((values[t * points + i] - kOffset) / kScale);
          if (everywhere && version == 5) value += 100;
          stored.push_back((here || everywhere) && !nowhere ? value : -32767);
        }
      }
    }
    file.put(variable, stored);
  }
  FileSet files({path});
  files.select(kT2m, true);
  EXPECT_EQ(format_time(files.times(kT2m)[1]), "2020-02-01T06:00");
  const std::vector<double> wanted = values_of(spec);
  std::vector<double> found(points);
  for (std::size_t t = 0; t < spec.times.size(); ++t) {
    found = read_box(files, kT2m, files.times(kT2m)[t], Box::whole({13, 24}));
    for (std::size_t i = 0; i < points; ++i) {
      if (i == 33) {
        EXPECT_TRUE(std::isnan(found[i]));
      } else {
        ASSERT_NEAR(found[i], wanted[t * points + i], kScale * 0.501) << t << " " << i;
      }
    }
  }
}

TEST(Conventions, FilesOfTheClimateDataStoreSince2024) {
  const testing::TemporaryFolder folder;
  const Spec spec{.variable = "t",
                  .standard_name = "air_temperature",
                  .time = "valid_time",
                  .time_units = "seconds since 1970-01-01",
                  .calendar = "proleptic_gregorian",
                  .times = {439056, 439062},  // 2020-02-02
                  .times_per_hour = 3600,
                  .level = "pressure_level",
                  .level_units = "hPa",
                  .levels = {1000, 850, 500}};
  FileSet files({write(folder, "a.nc", spec)});
  for (const double level : {500.0, 850.0}) {
    files.select({"t", level}, true);
    expect_formula(files, {"t", level}, 439056);
  }
  EXPECT_EQ(format_time(files.times({"t", 500})[0]), "2020-02-02T00:00");
  files.select({"air_temperature", 1000}, true);
  expect_formula(files, {"air_temperature", 1000}, 439056);
}

TEST(Conventions, NamesOfWeatherBenchAndCmip) {
  const testing::TemporaryFolder folder;
  const std::string surface =
      write(folder, "wb2.nc",
            {.variable = "2m_temperature", .latitudes = range(-90, 15, 13), .longitude_first = true});
  const std::string levels = write(folder, "wb2_levels.nc",
                                   {.variable = "temperature",
                                    .latitudes = range(-90, 15, 13),
                                    .level = "level",
                                    .levels = {500, 850},
                                    .longitude_first = true});
  FileSet files({surface, levels});
  files.select(kT2m, true);
  files.select({"t", 850}, true);
  expect_formula(files, kT2m, 0);
  expect_formula(files, {"t", 850}, 0);
  const std::string cmip = write(folder, "cmip.nc",
                                 {.variable = "ta",
                                  .standard_name = "air_temperature",
                                  .latitude = "lat",
                                  .longitude = "lon",
                                  .time_units = "days since 1850-01-01",
                                  .calendar = "noleap",
                                  .times_per_hour = 1.0 / 24,
                                  .level = "plev",
                                  .level_units = "Pa",
                                  .levels = {850, 500},
                                  .levels_per_hpa = 100});
  FileSet model({cmip});
  for (const char* name : {"ta", "t", "temperature", "air_temperature"}) {
    model.select({name, 500}, true);
    expect_formula(model, {name, 500}, 0);
  }
  EXPECT_EQ(model.calendar(), Calendar::kNoLeap);
}

TEST(Conventions, OneCalendarForAllFiles) {
  const testing::TemporaryFolder folder;
  const std::string a = write(folder, "a.nc", {.calendar = "noleap"});
  const std::string b = write(folder, "b.nc", {.calendar = "360_day", .times = {24}});
  FileSet files({a, b});
  const std::string message = message_of<DataError>([&] { files.select(kT2m, true); });
  EXPECT_NE(message.find("360_day"), std::string::npos) << message;
  EXPECT_NE(message.find("noleap"), std::string::npos) << message;
}

TEST(Conventions, OverlappingFilesAgreeOrAKeySaysWhichWins) {
  const testing::TemporaryFolder folder;
  const std::string a = write(folder, "a.nc", {.times = {0, 6, 12}});
  const std::string b = write(folder, "b.nc", {.times = {12, 18}});
  {
    FileSet files({a, b});
    files.select(kT2m, true);
    EXPECT_EQ(files.times(kT2m).size(), 4U);
    expect_formula(files, kT2m, 0);
    // What must be compared is not streamed.
    for (const std::size_t t : {0U, 2U})
      EXPECT_EQ(files.stream(kT2m, files.times(kT2m)[t], Box::whole({13, 24})).has_value(), t == 0);
  }
  const std::string c = write(folder, "c.nc", {.times = {12, 18}, .shift = 1});
  const auto value = [&](Overlap overlap) {
    FileSet files({a, c}, {.overlap = overlap});
    files.select(kT2m, true);
    std::vector<double> found(1);
    files.read(kT2m, files.times(kT2m)[2], {{0, 0}, {1, 1}}, found);
    return found[0] - formula(12, 0, 90, 0);
  };
  EXPECT_NEAR(value(Overlap::kFirst), 0, 1e-9);
  EXPECT_NEAR(value(Overlap::kLast), 1, 1e-9);
  const std::string message = message_of<DataError>([&] { value(Overlap::kEqual); });
  for (const char* part : {"t2m at 2020-02-01T12:00", "a.nc", "c.nc", "data.overlap"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(Conventions, TimesOfAStep) {
  const testing::TemporaryFolder folder;
  FileSet files({write(folder, "a.nc", {.times = range(1, 1, 30)})}, {.time_step = {12 * kHour}});
  files.select(kT2m, true);
  ASSERT_EQ(files.times(kT2m).size(), 2U);
  EXPECT_EQ(format_time(files.times(kT2m)[0]), "2020-02-01T12:00");
  expect_formula(files, kT2m, 12, 12);
  FileSet daily({write(folder, "daily.nc", {.times = range(12, 24, 4)})}, {.time_step = {24 * kHour}});
  const std::string message = message_of<DataError>([&] { daily.select(kT2m, true); });
  for (const char* part :
       {"data.time_step 24 h takes times at multiples of it since 1970-01-01T00:00, and none of t2m",
        "daily.nc lie beside, 2020-02-01T12:00 by 12 h; 0 takes all"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(Conventions, TimesNearAStep) {
  const testing::TemporaryFolder folder;
  // Of two near 6 h the nearer one, of two as near as each other the first; 12 h 12 min is too far.
  const std::vector<double> own = {0.01, 5.98, 6.01, 12.2, 17.95, 18.05};
  FileSet files({write(folder, "a.nc", {.times = own})},
                {.time_step = {6 * kHour}, .time_tolerance = kHour / 10});
  files.select(kT2m, true);
  EXPECT_EQ(files.times(kT2m).size(), 3U);
  const std::vector<double> taken = {0.01, 6.01, 17.95};
  const Box box{{1, 2}, {1, 1}};
  for (std::size_t t = 0; t < taken.size(); ++t) {
    const Time time = files.times(kT2m)[t];
    EXPECT_EQ(format_time(time), concat("2020-02-01T", std::array{"00:00", "06:00", "18:00"}[t]));
    EXPECT_NEAR(
        read_box(files, kT2m, time, box)[0],
        formula(taken[t], 0, files.grid().axes[0].coordinates[1], files.grid().axes[1].coordinates[2]), 1e-9);
  }
}

// Variables in a group, with a dimension of their own and inherited ones; chunked, deflated, shuffled, with
// checksums, big-endian, and an unlimited time.
TEST(Conventions, GroupsOfNetcdf) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/groups.nc";
  const Spec spec;
  {
    NetcdfWriter file(path);
    const int rows = coordinate(file, "latitude", spec.latitudes, 1, "degrees_north");
    const int columns = coordinate(file, "longitude", spec.longitudes, 1, "degrees_east");
    const int group = file.group("surface");
    const int times = file.dimension("time", NC_UNLIMITED, group);
    const int time = file.variable("time", NC_INT64, {times}, group);
    file.text(time, "units", "hours since 2020-02-01", group);
    const int variable = file.variable("t2m", NC_DOUBLE, {times, rows, columns}, group);
    file.text(variable, "units", "K", group);
    const std::vector<std::size_t> chunk = {1, 5, 7};
    NetcdfWriter::check(nc_def_var_chunking(group, variable, NC_CHUNKED, chunk.data()));
    NetcdfWriter::check(nc_def_var_deflate(group, variable, 1, 1, 4));
    NetcdfWriter::check(nc_def_var_fletcher32(group, variable, NC_FLETCHER32));
    NetcdfWriter::check(nc_def_var_endian(group, variable, NC_ENDIAN_BIG));
    file.end();
    const std::vector<std::size_t> start = {0, 0, 0}, extents = {4, 13, 24};
    NetcdfWriter::check(nc_put_vara_double(group, time, start.data(), extents.data(), spec.times.data()));
    NetcdfWriter::check(
        nc_put_vara_double(group, variable, start.data(), extents.data(), values_of(spec).data()));
  }
  FileSet files({path});
  for (const char* name : {"surface/t2m", "t2m"}) {
    files.select({name, {}}, true);
    expect_formula(files, {name, {}}, 0);
  }
}

// Dimensions with scales that hold names: fields[timestamp, channel, lat, lon], the time in seconds without
// units.
TEST(Conventions, ChannelsAsMakaniHasThem) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/2020.h5";
  const Spec spec;
  {
    NetcdfWriter file(path);
    std::vector<double> seconds;
    for (const double hours : spec.times) seconds.push_back(1580515200 + hours * 3600);
    const int time = coordinate(file, "timestamp", seconds, 1, "");
    const int channels = file.dimension("channel", 3);
    const int names = file.variable("channel", NC_STRING, {channels});
    const int rows = coordinate(file, "lat", spec.latitudes, 1, "");
    const int columns = coordinate(file, "lon", spec.longitudes, 1, "");
    const int variable = file.variable("fields", NC_DOUBLE, {time, channels, rows, columns});
    file.end();
    file.put(names, std::vector<std::string>{"u10m", "t2m", "t850"});
    std::vector<double> values;
    for (const double hours : spec.times) {
      for (const double level : {-1.0, 0.0, 850.0}) {
        for (const double latitude : spec.latitudes) {
          for (const double longitude : spec.longitudes)
            values.push_back(formula(hours, level, latitude, longitude));
        }
      }
    }
    file.put(variable, values);
  }
  FileSet files({path});
  files.select(kT2m, true);
  files.select({"t", 850}, true);
  expect_formula(files, kT2m, 0);
  expect_formula(files, {"t", 850}, 0);
  EXPECT_EQ(format_time(files.times(kT2m)[0]), "2020-02-01T00:00");
  EXPECT_EQ(files.catalogue().size(), 3U);
  EXPECT_NE(message_of<DataError>([&] {
              files.select({"q500", {}}, true);
            }).find("fields there: t2m, t850, u10m"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              files.select({"fields", {}}, true);
            }).find("u10m, t2m, t850"),
            std::string::npos);
}

// Written by h5py: the names are of one length, which the longest of them fill.
TEST(Conventions, AFileOfMakani) {
  FileSet files({fixture("makani.h5")});
  for (const Field& field : {kT2m, Field{"t", 850}, Field{"2m_temperature", {}}, Field{"t850", {}}}) {
    files.select(field, true);
    if (field.variable != "t850") expect_formula(files, field, 0, 6, 1e-4);
  }
  EXPECT_EQ(format_time(files.times(kT2m)[3]), "2020-02-01T18:00");
}

TEST(Conventions, AUsualNameIsNotThatOfAnotherVariableThatIsRead) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> paths = {
      write(folder, "a.nc", {}), write(folder, "b.nc", {.variable = "tas", .times = {24}, .shift = 9})};
  FileSet one(paths);
  one.select(kT2m, true);
  EXPECT_EQ(one.times(kT2m).size(), 5U);
  FileSet both(paths, {.sources = {.names = {"t2m", "tas"}}});
  both.select(kT2m, true);
  both.select({"tas", {}}, true);
  EXPECT_EQ(both.times(kT2m).size(), 4U);
  EXPECT_EQ(both.times({"tas", {}}).size(), 1U);
}

TEST(Conventions, TimesStandForTheirMonths) {
  const testing::TemporaryFolder folder;
  const std::string monthly =
      write(folder, "a.nc", {.times = {15 * 24, 44.5 * 24, 74 * 24}});  // from 16 February on
  FileSet files({monthly}, {.time_step = {.month = true}});
  files.select(kT2m, true);
  EXPECT_TRUE(files.of_months());
  EXPECT_EQ(files.calendar(), Calendar::k360Day);
  EXPECT_EQ(files.file_calendar(), Calendar::kStandard);
  std::vector<std::string> months;
  for (const Time time : files.times(kT2m)) months.push_back(format_time(time, files.calendar()));
  EXPECT_EQ(months, (std::vector<std::string>{"2020-02-16T00:00", "2020-03-16T00:00", "2020-04-16T00:00"}));
  FileSet daily({write(folder, "b.nc", {.times = {0, 24}})}, {.time_step = {.month = true}});
  const std::string why = message_of<DataError>([&] { daily.select(kT2m, true); });
  EXPECT_NE(why.find("holds 2020-02-01T00:00 and 2020-02-02T00:00, two times of one month"),
            std::string::npos)
      << why;
}

/// Limits of the times of a file that is there.
void add_time_bounds(const std::string& path, const std::vector<double>& limits) {
  int file = -1, time = -1, dimension = -1, two = -1, bounds = -1;
  ASSERT_EQ(nc_open(path.c_str(), NC_WRITE, &file), NC_NOERR);
  nc_redef(file);
  nc_inq_varid(file, "time", &time);
  nc_inq_dimid(file, "time", &dimension);
  nc_def_dim(file, "two", 2, &two);
  const int dimensions[] = {dimension, two};
  ASSERT_EQ(nc_def_var(file, "time_bnds", NC_DOUBLE, 2, dimensions, &bounds), NC_NOERR);
  nc_put_att_text(file, time, "bounds", 9, "time_bnds");
  nc_enddef(file);
  ASSERT_EQ(nc_put_var_double(file, bounds, limits.data()), NC_NOERR);
  ASSERT_EQ(nc_close(file), NC_NOERR);
}

// Of means whose times are the ends of their months, as CESM writes them, the bounds say which.
TEST(Conventions, MonthsAreThoseOfTheBounds) {
  const testing::TemporaryFolder folder;
  for (const bool filled : {true, false}) {
    const std::string path =
        write(folder, filled ? "a.nc" : "b.nc", {.times = {29 * 24, 60 * 24}});  // of February
    add_time_bounds(path,
                    filled ? std::vector<double>{0, 29 * 24, 29 * 24, 60 * 24} : std::vector<double>(4, 1e6));
    FileSet files({path}, {.time_step = {.month = true}});
    files.select(kT2m, true);
    EXPECT_EQ(files.text_of(files.times(kT2m)[0]), filled ? "2020-02" : "2020-03");
    EXPECT_EQ(files.text_of(files.times(kT2m)[1]), filled ? "2020-03" : "2020-04");
  }
}

}  // namespace conventions_test
}  // namespace jigsaw
