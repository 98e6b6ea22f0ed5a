// Which dimension is which axis, by the attributes of coordinates that no other test has, and what is refused
// of them.
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "fields/units.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace axes_test {

using testing::NetcdfWriter;
using Texts = std::map<std::string, std::string>;

struct Coordinate {
  std::string name;
  std::vector<double> values;
  Texts texts;
};

const Coordinate kRows{"latitude", {50, 40, 30}, {{"units", "degrees_north"}}};
const Coordinate kColumns{"longitude", {0, 10, 20, 30}, {{"units", "degrees_east"}}};
const Box kPlane = Box::whole({3, 4});

/// A file of one field, `v`, whose values are numbered as they stand.
std::string write(const testing::TemporaryFolder& folder, const std::vector<Coordinate>& coordinates,
                  const Texts& texts = {}) {
  const std::string path = folder.path() + "/v.nc";
  NetcdfWriter file(path);
  std::vector<int> dimensions, variables;
  std::size_t count = 1;
  for (const Coordinate& coordinate : coordinates) {
    dimensions.push_back(file.dimension(coordinate.name, coordinate.values.size()));
    variables.push_back(file.variable(coordinate.name, NC_DOUBLE, {dimensions.back()}));
    for (const auto& [name, text] : coordinate.texts) file.text(variables.back(), name.c_str(), text);
    count *= coordinate.values.size();
  }
  const int v = file.variable("v", NC_DOUBLE, dimensions);
  for (const auto& [name, text] : texts) file.text(v, name.c_str(), text);
  file.end();
  for (std::size_t i = 0; i < coordinates.size(); ++i) file.put(variables[i], coordinates[i].values);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  file.put(v, values);
  return path;
}

/// The first value of a field without time.
double first_of(const std::string& path, const Field& field) {
  FileSet files({path});
  files.select(field, false);
  std::vector<double> values(static_cast<std::size_t>(kPlane.extent.count()));
  files.read(field, 0, kPlane, values);
  return values[0];
}

std::string refusal_of(const std::string& path, const Field& field = {"v", {}}) {
  FileSet files({path});
  return message_of<DataError>([&] { files.select(field, false); });
}

TEST(Axes, DepthsAndHeightsAreLevels) {
  const testing::TemporaryFolder folder;
  const std::vector<Coordinate> upright = {
      {"depth", {}, {{"units", "m"}, {"axis", "Z"}}},
      {"deptht", {}, {{"units", "m"}, {"positive", "down"}}},
      {"z", {}, {{"units", "m"}, {"standard_name", "depth"}}},
      {"z", {}, {{"units", "km"}, {"standard_name", "altitude"}}},
      {"s_rho", {}, {{"units", "1"}, {"standard_name", "ocean_s_coordinate_g2"}}},
      {"lev", {}, {{"units", "metres"}}},
      {"olevel", {}, {{"units", "m"}}},
      {"st_ocean", {}, {{"units", "meters"}}},
      {"z_t", {}, {{"units", "centimeters"}}}};
  for (Coordinate levels : upright) {
    levels.values = {0.494025, 1.541375, 5727.917};
    const std::string path = write(folder, {levels, kRows, kColumns});
    // In hectopascals and metres.
    const std::string units = levels.texts.at("units");
    std::vector<double> named = levels.values;
    for (double& level : named) level = in_level_units(level, units);
    EXPECT_EQ(first_of(path, {"v", named[0]}), 0) << levels.name;
    EXPECT_EQ(first_of(path, {"v", in_level_units(1.54138, units)}), 12) << levels.name;  // as it is told
    EXPECT_EQ(first_of(path, {"v", named[2]}), 24) << levels.name;
    FileSet files({path});
    EXPECT_EQ(files.catalogue()[0].levels, named) << levels.name;
    files.select({"v", named[1]}, false);
    const FieldDescription described = files.describe({"v", named[1]});
    EXPECT_EQ(described.level->values, levels.values) << levels.name;
    EXPECT_EQ(described.level_position, 1) << levels.name;
  }
  const std::string path =
      write(folder, {{"depth", {5, 15}, {{"units", "m"}, {"axis", "Z"}}}, kRows, kColumns});
  const std::string message = refusal_of(path, {"v", 10});
  EXPECT_NE(message.find("has no level 10; levels there: 5, 15"), std::string::npos) << message;
}

TEST(Axes, LengthsOfAProjectionAreNone) {
  const testing::TemporaryFolder folder;
  Coordinate y{"y", {0, 3000, 6000}, {{"units", "m"}, {"axis", "Y"}}}, x = kColumns;
  x.name = "x";
  x.texts = {{"units", "m"}, {"standard_name", "projection_x_coordinate"}, {"axis", "X"}};
  const std::string message = refusal_of(write(folder, {y, x}));
  EXPECT_NE(message.find("no latitude and longitude are known among its dimensions (y, x)"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("which pyproj computes"), std::string::npos) << message;
  y.texts["units"] = "1";
  EXPECT_EQ(refusal_of(write(folder, {y, x})), message);
}

TEST(Axes, OneHeightGoesWithoutSaying) {
  const testing::TemporaryFolder folder;
  const Coordinate height{"height", {2}, {{"units", "m"}, {"axis", "Z"}, {"positive", "up"}}};
  const std::string path = write(folder, {height, kRows, kColumns}, {{"standard_name", "air_temperature"}});
  EXPECT_EQ(first_of(path, {"v", {}}), 0);
  EXPECT_EQ(first_of(path, {"air_temperature", {}}), 0);
  EXPECT_EQ(first_of(path, {"v", 2}), 0);
  EXPECT_TRUE(FileSet({path}).catalogue()[0].levels.empty());
  // Beside levels it is none.
  const Coordinate levels{"plev", {85000, 50000}, {{"units", "Pa"}}};
  EXPECT_EQ(first_of(write(folder, {height, levels, kRows, kColumns}), {"v", 500}), 12);
}

/// As of plain HDF5, or of steps that are only counted.
TEST(Axes, ADimensionOfWhichNothingIsKnownIsSaidToLackACoordinate) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/counted.nc";
  {
    NetcdfWriter file(path);
    std::vector<int> dimensions = {file.dimension("step", 5)}, variables;
    for (const Coordinate& coordinate : {kRows, kColumns}) {
      dimensions.push_back(file.dimension(coordinate.name, coordinate.values.size()));
      variables.push_back(file.variable(coordinate.name, NC_DOUBLE, {dimensions.back()}));
      for (const auto& [name, text] : coordinate.texts) file.text(variables.back(), name.c_str(), text);
    }
    file.variable("v", NC_DOUBLE, dimensions);
    file.end();
    file.put(variables[0], kRows.values);
    file.put(variables[1], kColumns.values);
  }
  const std::string message = refusal_of(path),
                    listed = refusal_of(write(folder, {{"band", {1, 2}, {}}, kRows, kColumns}));
  EXPECT_NE(message.find("its dimension step has 5 entries and no coordinate that says what they are"),
            std::string::npos)
      << message;
  EXPECT_NE(listed.find("its dimension band has 2 entries; only one can be chosen from"), std::string::npos)
      << listed;
}

TEST(Axes, ALevelThatStandsTwiceIsRefused) {
  const testing::TemporaryFolder folder;
  const Coordinate levels{"plev", {100000, 85000, 85000}, {{"units", "Pa"}}};
  const std::string message = refusal_of(write(folder, {levels, kRows, kColumns}), {"v", 1000});
  EXPECT_NE(message.find("plev of "), std::string::npos) << message;
  EXPECT_NE(message.find("repeats the level 850;"), std::string::npos) << message;
}

TEST(Axes, LatitudesAndLongitudesAreInDegrees) {
  const testing::TemporaryFolder folder;
  for (const char* const units :
       {"", "degrees_north", "degrees_N", "degreeN", "Degrees_North", "degree", "deg", "degrees", "°"}) {
    Coordinate rows = kRows;
    rows.texts = {{"units", units}, {"standard_name", "latitude"}};
    EXPECT_EQ(first_of(write(folder, {rows, kColumns}), {"v", {}}), 0) << units;
  }
  for (const char* const units : {"radians", "rad", "m", "1"}) {
    Coordinate columns = kColumns;
    columns.texts = {{"units", units}, {"standard_name", "longitude"}};
    const std::string message = refusal_of(write(folder, {kRows, columns}));
    EXPECT_NE(message.find("longitude of "), std::string::npos) << message;
    EXPECT_NE(message.find(concat("is in \"", units, "\"; latitudes and longitudes are read in degrees")),
              std::string::npos)
        << message;
  }
}

TEST(Axes, AnAreaAcrossGreenwichThatIsSortedHasAGap) {
  const testing::TemporaryFolder folder;
  Coordinate columns = kColumns;
  columns.values = {0, 5, 10, 15, 345, 350, 355, 360};
  const std::string path = write(folder, {kRows, columns});
  const std::string message = refusal_of(path);
  EXPECT_NE(message.find("v.nc have a gap between 15 and 345;"), std::string::npos) << message;
  EXPECT_NE(message.find("\"longitude\": [-15, 15]"), std::string::npos) << message;
  FileSet files({path}, {.region = {{}, {-15, 15}}});
  files.select({"v", {}}, false);
  EXPECT_EQ(files.grid().axes[1].coordinates, (std::vector<double>{-15, -10, -5, 0, 5, 10, 15}));
  std::vector<double> row(7);
  files.read({"v", {}}, 0, {{1, 0}, {1, 7}}, row);
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_EQ(row[i], 8 + 4 + static_cast<double>(i));
  for (const std::size_t i : {4U, 5U, 6U}) EXPECT_EQ(row[i], 8 + static_cast<double>(i) - 3);
  EXPECT_EQ(files.describe({"v", {}}).columns.values, (std::vector<double>{-15, -10, -5, 0, 5, 10, 15}));
  // About the dateline, from east to west.
  columns.values = {175, 170, 165, -165, -170, -175};
  const testing::TemporaryFolder other;  // the file above is open
  const std::string dateline = refusal_of(write(other, {kRows, columns}));
  EXPECT_NE(dateline.find("a gap between -165 and 165;"), std::string::npos) << dateline;
  EXPECT_NE(dateline.find("\"longitude\": [165, -165]"), std::string::npos) << dateline;
}

/// Opens a file as another rank described it. @param described  a variable whose values the description has.
FileOpener described_opener(const std::string& described) {
  return [=](const std::string& path) {
    const FileDescription known =
        FileDescription::from_bytes(opener(Dimensions::kByName)(path)->describe().to_bytes());
    EXPECT_TRUE(known.values.contains(described));
    return open_described(known, External::kRefused);
  };
}

/// Files of one state each, such as xarray writes of ds.isel(time=i), and cfgrib of forecasts: there `time`
/// is when these began.
TEST(Axes, AScalarTimeIsThatOfAFileOfOneState) {
  const testing::TemporaryFolder folders[2];
  std::vector<std::string> paths;
  for (int hour : {0, 6}) {
    paths.push_back(write(folders[hour / 6], {kRows, kColumns}));
    int file = 0, began = 0, time = 0, v = 0;
    NetcdfWriter::check(nc_open(paths.back().c_str(), NC_WRITE, &file));
    NetcdfWriter::check(nc_redef(file));
    NetcdfWriter::check(nc_def_var(file, "time", NC_INT64, 0, nullptr, &began));
    NetcdfWriter::check(nc_def_var(file, "valid_time", NC_INT, 0, nullptr, &time));
    const std::string units = "hours since 2020-02-01", name = "time";
    for (const int variable : {began, time}) {
      NetcdfWriter::check(nc_put_att_text(file, variable, "units", units.size(), units.c_str()));
      NetcdfWriter::check(nc_put_att_text(file, variable, "standard_name", name.size(), name.c_str()));
    }
    NetcdfWriter::check(nc_enddef(file));
    const int hours_before = -12;
    const std::vector<double> values(12, hour);
    NetcdfWriter::check(nc_put_var_int(file, began, &hours_before));
    NetcdfWriter::check(nc_put_var_int(file, time, &hour));
    NetcdfWriter::check(nc_inq_varid(file, "v", &v));
    NetcdfWriter::check(nc_put_var_double(file, v, values.data()));
    NetcdfWriter::check(nc_close(file));
  }
  const Time first = days_from_date({2020, 2, 1}, Calendar::kStandard) * kDay;
  for (const FileOpener& open : {opener(Dimensions::kByName), described_opener("valid_time")}) {
    FileSet files(paths, {}, open);
    EXPECT_EQ(files.catalogue().at(0).times, (std::vector<Time>{first, first + 6 * kHour}));
    files.select({"v", {}}, true);
    EXPECT_EQ(files.times({"v", {}}), (std::vector<Time>{first, first + 6 * kHour}));
    std::vector<double> values(12);
    for (const int hour : {0, 6}) {
      files.read({"v", {}}, first + hour * kHour, {{0, 0}, {3, 4}}, values);
      EXPECT_EQ(values[5], hour);
    }
  }
}

/// Forecasts as cfgrib writes them: three states, at 6, 12 and 18 h, of which each value is its number.
/// @param along  the dimension that they stand along: of the reference times or of the steps.
std::string write_forecasts(const testing::TemporaryFolder& folder, const std::string& along) {
  const std::string path = folder.path() + "/" + along + ".nc";
  NetcdfWriter file(path);
  const int states = file.dimension(along, 3), rows = file.dimension("latitude", 3),
            columns = file.dimension("longitude", 4);
  const bool starts = along == "time";
  const int time = file.variable("time", NC_INT64, starts ? std::vector{states} : std::vector<int>()),
            step = file.variable("step", NC_DOUBLE, starts ? std::vector<int>() : std::vector{states}),
            valid = file.variable("valid_time", NC_INT64, {states}),
            latitudes = file.variable("latitude", NC_DOUBLE, {rows}),
            longitudes = file.variable("longitude", NC_DOUBLE, {columns}),
            v = file.variable("v", NC_DOUBLE, {states, rows, columns});
  file.text(time, "units", "hours since 2020-02-01");
  file.text(time, "standard_name", "forecast_reference_time");
  file.text(step, "units", "hours");
  file.text(step, "standard_name", "forecast_period");
  file.text(valid, "units", "hours since 2020-02-01");
  file.text(valid, "standard_name", "time");
  file.end();
  file.put(time, starts ? std::vector<double>{0, 6, 12} : std::vector<double>{0});
  file.put(step, starts ? std::vector<double>{6} : std::vector<double>{6, 12, 18});
  file.put(valid, {6, 12, 18});
  file.put(latitudes, kRows.values);
  file.put(longitudes, kColumns.values);
  std::vector<double> values;
  for (int i = 0; i < 36; ++i) values.push_back(i / 12);
  file.put(v, values);
  return path;
}

TEST(Axes, StatesOfForecastsHoldAtTheirValidTimes) {
  const testing::TemporaryFolder folder;
  const Time first = days_from_date({2020, 2, 1}, Calendar::kStandard) * kDay + 6 * kHour;
  const std::vector<Time> times = {first, first + 6 * kHour, first + 12 * kHour};
  for (const char* along : {"time", "step"}) {
    const std::string path = write_forecasts(folder, along);
    for (const FileOpener& open : {opener(Dimensions::kByName), described_opener("valid_time")}) {
      FileSet files({path}, {}, open);
      EXPECT_EQ(files.catalogue().at(0).times, times) << along;
      files.select({"v", {}}, true);
      EXPECT_EQ(files.times({"v", {}}), times) << along;
      std::vector<double> values(12);
      files.read({"v", {}}, times[2], kPlane, values);
      EXPECT_EQ(values[5], 2) << along;
    }
  }
}

/// A coordinate of times that does not say what it is stands behind a valid_time; one lead alone, and no time
/// at which it holds, is refused.
TEST(Axes, OneLeadIsNotLeftOut) {
  const testing::TemporaryFolder folder;
  const Time first = days_from_date({2020, 2, 1}, Calendar::kStandard) * kDay;
  for (const double lead : {0.0, 6.0}) {
    for (const bool says_valid : {true, false}) {
      const std::string path = folder.path() + "/lead.nc";
      {
        NetcdfWriter file(path);
        const int time = file.dimension("time", 2), step = file.dimension("prediction_timedelta", 1),
                  rows = file.dimension("latitude", 3), columns = file.dimension("longitude", 4);
        const int times = file.variable("time", NC_INT64, {time}),
                  leads = file.variable("prediction_timedelta", NC_INT64, {step}),
                  valid = file.variable(says_valid ? "valid_time" : "other", NC_INT64, {time}),
                  latitudes = file.variable("latitude", NC_DOUBLE, {rows}),
                  longitudes = file.variable("longitude", NC_DOUBLE, {columns}),
                  v = file.variable("v", NC_DOUBLE, {time, step, rows, columns});
        file.text(times, "units", "hours since 2020-02-01");
        file.text(leads, "units", "hours");
        file.text(valid, "units", "hours since 2020-02-01");
        file.end();
        file.put(times, std::vector<double>{0, 24});
        file.put(leads, std::vector<double>{lead});
        file.put(valid, std::vector<double>{lead, 24 + lead});
        file.put(latitudes, kRows.values);
        file.put(longitudes, kColumns.values);
        file.put(v, std::vector<double>(24, 1));
      }
      FileSet files({path}, {}, opener(Dimensions::kByName));
      if (!says_valid && lead > 0) {
        const std::string message = message_of<DataError>([&] { files.select({"v", {}}, true); });
        EXPECT_NE(
            message.find("its dimension prediction_timedelta has the one entry 6 hours, so that time counts"),
            std::string::npos)
            << message;
        continue;
      }
      files.select({"v", {}}, true);
      const Time ahead = says_valid ? static_cast<Time>(lead) * kHour : 0;
      EXPECT_EQ(files.times({"v", {}}), (std::vector<Time>{first + ahead, first + 24 * kHour + ahead}))
          << lead;
    }
  }
}

/// A file of one state of `v`, all of whose values are one number, and a scalar coordinate.
std::string write_scalar(const testing::TemporaryFolder& folder, const std::string& file_name,
                         const Coordinate& scalar, double value, bool along = false) {
  const std::string path = folder.path() + "/" + file_name;
  NetcdfWriter file(path);
  const int rows = file.dimension("latitude", 3), columns = file.dimension("longitude", 4);
  std::vector<int> of_scalar, plane = {rows, columns};
  if (along) of_scalar = {file.dimension(scalar.name, 1)}, plane.insert(plane.begin(), of_scalar[0]);
  const int time = file.variable("time", NC_INT, {}), id = file.variable(scalar.name, NC_DOUBLE, of_scalar),
            latitudes = file.variable("latitude", NC_DOUBLE, {rows}),
            longitudes = file.variable("longitude", NC_DOUBLE, {columns}),
            v = file.variable("v", NC_DOUBLE, plane);
  file.text(time, "units", "hours since 2020-02-01");
  for (const auto& [name, text] : scalar.texts) file.text(id, name.c_str(), text);
  file.text(v, "standard_name", "air_temperature");
  file.end();
  file.put(time, std::vector<double>{0});
  file.put(id, scalar.values);
  file.put(latitudes, kRows.values);
  file.put(longitudes, kColumns.values);
  file.put(v, std::vector<double>(12, value));
  return path;
}

TEST(Axes, AScalarLevelIsThatOfAFileOfOneLevel) {
  const testing::TemporaryFolder folder;
  const Coordinate upper{"level", {50000}, {{"units", "Pa"}}}, lower{"level", {85000}, {{"units", "Pa"}}};
  const std::vector<std::string> paths = {write_scalar(folder, "a.nc", upper, 5),
                                          write_scalar(folder, "b.nc", lower, 8)};
  const Time time = days_from_date({2020, 2, 1}, Calendar::kStandard) * kDay;
  for (const FileOpener& open : {opener(Dimensions::kByName), described_opener("level")}) {
    FileSet files(paths, {}, open);
    EXPECT_EQ(files.catalogue().at(0).levels, (std::vector<double>{500, 850}));
    for (const char* name : {"v", "air_temperature"}) {
      for (const auto& [level, value] : {std::pair{500.0, 5.0}, {850.0, 8.0}}) {
        files.select({name, level}, true);
        std::vector<double> values(12);
        files.read({name, level}, time, kPlane, values);
        EXPECT_EQ(values[7], value) << name;
      }
    }
    const FieldDescription described = files.describe({"v", 850});
    EXPECT_EQ(described.level->name, "level");
    EXPECT_EQ(described.level->values, (std::vector<double>{85000}));
    EXPECT_EQ(described.level->texts.at("units"), "Pa");
    for (const Field& field : {Field{"v", {}}, Field{"v", 700}}) {
      const std::string message = message_of<DataError>([&] { files.select(field, true); });
      EXPECT_NE(message.find("; levels there: 500, 850"), std::string::npos) << message;
    }
    EXPECT_NO_THROW(files.select({"v", {}}, false)) << "what is constant has any";
  }
  // One height in all files, as of CMIP's tas, goes without saying.
  const Coordinate height{"height", {2}, {{"units", "m"}, {"standard_name", "height"}}};
  FileSet files({write_scalar(folder, "c.nc", height, 5), write_scalar(folder, "d.nc", height, 5)});
  EXPECT_TRUE(files.catalogue().at(0).levels.empty());
  files.select({"v", {}}, true);
  files.select({"air_temperature", {}}, true);
}

TEST(Axes, FilesOfOneMemberEachAreNotMixed) {
  const testing::TemporaryFolder folder;
  const Texts texts = {{"standard_name", "realization"}};
  for (const bool along : {false, true}) {
    FileSet files({write_scalar(folder, "a.nc", {"number", {3}, texts}, 5, along),
                   write_scalar(folder, "b.nc", {"number", {4}, texts}, 8, along)});
    files.select({"v", {}}, true);
    std::vector<double> values(12);
    const std::string message = message_of<DataError>([&] {
      files.read({"v", {}}, files.times({"v", {}})[0], kPlane, values);
    });
    EXPECT_NE(message.find("a.nc is of member 3 of an ensemble (number), and in "), std::string::npos)
        << message;
    EXPECT_EQ(message.find("data.overlap"), std::string::npos) << message;
  }
}

/// As CMIP's ensembles are: v is 5 of the first member, and 3 more of each behind it.
void write_named_members(const std::string& path, const std::vector<std::string>& names_of_members) {
  NetcdfWriter file(path);
  const int members = file.dimension("member_id", names_of_members.size()), time = file.dimension("time", 1),
            rows = file.dimension("latitude", 3), columns = file.dimension("longitude", 4),
            names = file.variable("member_id", NC_STRING, {members}),
            times = file.variable("time", NC_INT, {time}),
            latitudes = file.variable("latitude", NC_DOUBLE, {rows}),
            longitudes = file.variable("longitude", NC_DOUBLE, {columns}),
            v = file.variable("v", NC_DOUBLE, {members, time, rows, columns});
  file.text(times, "units", "hours since 2020-02-01");
  file.end();
  file.put(names, names_of_members);
  file.put(times, std::vector<double>{0});
  file.put(latitudes, kRows.values);
  file.put(longitudes, kColumns.values);
  std::vector<double> values;
  for (std::size_t m = 0; m < names_of_members.size(); ++m)
    values.insert(values.end(), 12, 5 + 3 * static_cast<double>(m));
  file.put(v, values);
}

TEST(Axes, MembersThatHaveNamesCountFromZero) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/v.nc";
  write_named_members(path, {"r1i1p1f1", "r2i1p1f1"});
  FileSelection selection;
  selection.member.number = 1;
  FileSet files({path}, selection);
  files.select({"v", {}}, true);
  std::vector<double> values(12);
  files.read({"v", {}}, files.times({"v", {}})[0], kPlane, values);
  EXPECT_EQ(values[3], 8);
  EXPECT_EQ(files.member()->values, std::vector<double>{1});
  selection.member.number = 2;
  FileSet others({path}, selection);
  EXPECT_NE(message_of<DataError>([&] {
              others.select({"v", {}}, true);
            }).find("has the members 0 (r1i1p1f1), 1 (r2i1p1f1)"),
            std::string::npos);
}

TEST(Axes, WhereAMemberIsToBeChosenNamesAndNumbersAreTold) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/v.nc";
  const auto refusal = [&] {
    return message_of<DataError>([&] {
      FileSet files({path}, {});
      files.select({"v", {}}, true);
    });
  };
  write_named_members(path, {"r1i1p1f1", "r2\x1b[2J"});
  EXPECT_EQ(refusal(),
            "v in " + path +
                " is of an ensemble, whose dimension member_id has 2 members, "
                "0 (r1i1p1f1), 1 (r2\\x1b[2J); data.member (of init: --member) says which one is taken, "
                "or \"all\"");
  std::vector<std::string> many;
  for (int m = 1; m <= 9; ++m) many.push_back(concat("r", m));
  write_named_members(path, many);
  EXPECT_NE(refusal().find("has 9 members, 0 (r1), 1 (r2), 2 (r3), 3 (r4), 4 (r5), 5 (r6), 6 (r7), 7 (r8), 8 "
                           "(r9); "),
            std::string::npos)
      << refusal();
  for (int m = 10; m <= 40; ++m) many.push_back(concat("r", m));
  write_named_members(path, many);
  EXPECT_NE(
      refusal().find("has 40 members, 0 (r1), 1 (r2), 2 (r3), 3 (r4), 4 (r5), 5 (r6), 6 (r7), 7 (r8), …, "
                     "39 (r40); "),
      std::string::npos)
      << refusal();
}

/// Rows of a swath have times, too, and are rows.
TEST(Axes, TimesOfRowsMakeThemNoTimes) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/swath.nc";
  {
    NetcdfWriter file(path);
    const int rows = file.dimension("y", 3), columns = file.dimension("x", 4),
              seconds = file.variable("scan", NC_DOUBLE, {rows});
    const std::vector<int> of_points = {rows, columns};
    const int latitudes = file.variable("lat", NC_DOUBLE, of_points),
              longitudes = file.variable("lon", NC_DOUBLE, of_points),
              v = file.variable("v", NC_DOUBLE, of_points);
    file.text(seconds, "units", "seconds since 2020-01-01");
    file.text(seconds, "standard_name", "time");
    file.text(latitudes, "units", "degrees_north");
    file.text(longitudes, "units", "degrees_east");
    file.end();
    file.put(seconds, {0, 1, 2});
    std::vector<double> numbers(12);
    for (std::size_t i = 0; i < 12; ++i) numbers[i] = static_cast<double>(i);
    for (const int variable : {latitudes, longitudes, v}) file.put(variable, numbers);
  }
  DataFile file(opener(Dimensions::kByName)(path));
  EXPECT_EQ(file.axes(*file.file().find("v")).time, -1);
  EXPECT_TRUE(file.axes(*file.file().find("v")).projected);
}

/// CMIP's `height` is that of tas at 2 m and of uas at 10 m, and not of psl and orography beside them.
TEST(Axes, AScalarLevelIsOfTheFieldsThatNameIt) {
  const testing::TemporaryFolder folders[2];
  std::vector<std::string> paths;
  for (const int height : {2, 10}) {
    paths.push_back(folders[height / 10].path() + "/v.nc");
    NetcdfWriter file(paths.back());
    const int rows = file.dimension("lat", 3), columns = file.dimension("lon", 4);
    const int lat = file.variable("lat", NC_INT, {rows}), lon = file.variable("lon", NC_INT, {columns}),
              at = file.variable("height", NC_DOUBLE, {});
    file.text(at, "units", "m");
    file.text(at, "axis", "Z");
    file.text(file.variable(height == 2 ? "tas" : "uas", NC_DOUBLE, {rows, columns}), "coordinates",
              "height");
    file.variable("psl", NC_DOUBLE, {rows, columns});
    file.end();
    file.put(lat, {10, 0, -10});
    file.put(lon, {0, 1, 2, 3});
    file.put(at, std::vector<double>{static_cast<double>(height)});
  }
  FileSet files(paths);
  for (const VariableSummary& summary : files.catalogue())
    EXPECT_TRUE(summary.levels.empty()) << summary.name;
  for (const char* name : {"tas", "uas", "psl"}) files.select({name, {}}, false);
}

TEST(Axes, AConstantFieldThatChangesIsSeen) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/v.nc";
  {
    NetcdfWriter file(path);
    const int time = file.dimension("time", 2), rows = file.dimension("lat", 3),
              columns = file.dimension("lon", 4);
    const std::vector<int> at = {file.variable("time", NC_INT, {time}), file.variable("lat", NC_INT, {rows}),
                                 file.variable("lon", NC_INT, {columns})};
    file.text(at[0], "units", "days since 2020-01-01");
    const int same = file.variable("same", NC_DOUBLE, {time, rows, columns}),
              other = file.variable("other", NC_DOUBLE, {time, rows, columns}),
              gone = file.variable("gone", NC_DOUBLE, {time, rows, columns});
    file.end();
    file.put(at[0], {0, 1});
    file.put(at[1], {10, 0, -10});
    file.put(at[2], {0, 1, 2, 3});
    std::vector<double> values(24);
    for (std::size_t i = 0; i < 24; ++i) values[i] = static_cast<double>(i % 12) * (i < 12 ? 1 : 1.0001);
    file.put(same, values);
    values[20] += 1;
    file.put(other, values);
    values[20] = NAN;
    file.put(gone, values);
  }
  FileSet files({path});
  for (const char* name : {"same", "other", "gone"}) files.select({name, {}}, false);
  EXPECT_EQ(files.changes_in({"same", {}}), std::nullopt);
  EXPECT_EQ(files.changes_in({"other", {}}), path);
  EXPECT_EQ(files.changes_in({"gone", {}}), path);
}

/// The first field that is taken says which grid it is, not one that was refused before.
TEST(Axes, WhatIsRefusedLeavesNothingBehind) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/grids.nc";
  {
    NetcdfWriter file(path);
    const int fine = file.dimension("latitude", 3), coarse = file.dimension("lat", 2),
              columns = file.dimension("longitude", 4),
              fine_rows = file.variable("latitude", NC_DOUBLE, {fine}),
              coarse_rows = file.variable("lat", NC_DOUBLE, {coarse}),
              longitudes = file.variable("longitude", NC_DOUBLE, {columns});
    file.variable("a", NC_DOUBLE, {fine, columns});
    file.variable("b", NC_DOUBLE, {coarse, columns});
    file.end();
    file.put(fine_rows, kRows.values);
    file.put(coarse_rows, {45, 35});
    file.put(longitudes, kColumns.values);
  }
  FileSet files({path});
  EXPECT_THROW(files.select({"a", {}}, true), DataError) << "it has no times";
  files.select({"b", {}}, false);
  EXPECT_EQ(files.grid().shape(), (Shape{2, 4}));
  EXPECT_THROW(files.select({"a", {}}, false), DataError) << "its rows are others";
}

}  // namespace axes_test
}  // namespace jigsaw
