// What stands of the fields of data files in a file of forecasts, as NetCDF sees it.
#include "predict/written_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "predict/forecast_file.h"
#include "support/netcdf_reader.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace written_fields_test {

using testing::NetcdfReader;
using testing::TemporaryFolder;

/// Coordinates with limits of their cells, and two variables on other levels of one dimension's name.
TEST(WrittenFields, KeepsBoundsAndTellsLevelsApart) {
  const TemporaryFolder folder;
  const std::string input = folder.path() + "/in.nc", path = folder.path() + "/out.nc";
  {
    NetcdfOutput file(input, NetcdfOutput::Format::kNetcdf4);
    using Type = NetcdfOutput::Type;
    const int time = file.add_dimension("time", 1), level = file.add_dimension("level", 3),
              lat = file.add_dimension("lat", 3), lon = file.add_dimension("lon", 2),
              two = file.add_dimension("two", 2);
    const int times = file.add_variable("time", Type::kDouble, {time}),
              levels = file.add_variable("level", Type::kDouble, {level}),
              lats = file.add_variable("lat", Type::kDouble, {lat}),
              bounds = file.add_variable("lat_bnds", Type::kDouble, {lat, two}),
              lons = file.add_variable("lon", Type::kFloat, {lon});
    file.add_text(times, "units", "hours since 1970-01-01");
    file.add_text(levels, "units", "Pa");
    file.add_text(lats, "units", "degrees_north");
    file.add_text(lats, "bounds", "lat_bnds");
    file.add_text(lons, "units", "degrees_east");
    for (const char* name : {"t", "q"}) file.add_variable(name, Type::kFloat, {time, level, lat, lon});
    file.end_definitions();
    file.write(times, std::vector<double>{0});
    file.write(levels, std::vector<double>{100000, 85000, 50000});
    file.write(lats, std::vector<double>{10, 20, 40});
    file.write(bounds, std::vector<double>{0, 15, 15, 30, 30, 50});
    file.write(lons, std::vector<float>{5, 7});
    file.close();
  }
  FileSet files({input});
  const ForecastContents contents{{0}, 6 * kHour, {}, {{"t", 1000}, {"t", 500}, {"q", 850}}, false, {}};
  for (const Field& field : contents.fields) files.select(field, true);
  OutputFile output(path, false);
  ForecastFile(files, contents, output, 1).finish();
  const NetcdfReader file(path);
  EXPECT_EQ(file.text("lat", "bounds"), "lat_bnds");
  EXPECT_EQ(file.values("lat_bnds"), (std::vector<double>{0, 15, 15, 30, 30, 50}));
  EXPECT_EQ(file.text("lon", "bounds"), "");
  EXPECT_EQ(file.values("level"), (std::vector<double>{100000, 50000}));
  EXPECT_EQ(file.values("level_2"), (std::vector<double>{85000}));
  EXPECT_EQ(file.dimensions("q")[2], "level_2");
  EXPECT_EQ(file.text("level_2", "units"), "Pa");
  EXPECT_EQ(file.values("t"), std::vector<double>(12, NC_FILL_FLOAT));
}

/// As many people have them: each level in a file of its own.
TEST(WrittenFields, LevelsOfSeveralFilesAreOneAxis) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (const std::vector<double>& in_file : {std::vector<double>{850}, {500}, {250, 100}}) {
    paths.push_back(concat(folder.path(), "/", in_file.front(), ".nc"));
    NetcdfOutput file(paths.back(), NetcdfOutput::Format::kNetcdf4);
    using Type = NetcdfOutput::Type;
    const int time = file.add_dimension("time", 1), level = file.add_dimension("level", in_file.size()),
              lat = file.add_dimension("lat", 2), lon = file.add_dimension("lon", 2);
    const int times = file.add_variable("time", Type::kDouble, {time}),
              levels = file.add_variable("level", Type::kDouble, {level}),
              lats = file.add_variable("lat", Type::kDouble, {lat}),
              lons = file.add_variable("lon", Type::kDouble, {lon});
    file.add_text(times, "units", "hours since 1970-01-01");
    file.add_text(levels, "units", "hPa");
    file.add_text(lats, "units", "degrees_north");
    file.add_text(lons, "units", "degrees_east");
    file.add_variable("t", Type::kFloat, {time, level, lat, lon});
    file.end_definitions();
    file.write(times, std::vector<double>{0});
    file.write(levels, in_file);
    file.write(lats, std::vector<double>{10, 20});
    file.write(lons, std::vector<double>{5, 7});
    file.close();
  }
  for (const bool downwards : {false, true}) {
    FileSet files(paths);
    std::vector<Field> fields = {{"t", 850}, {"t", 250}, {"t", 500}, {"t", 100}};
    if (downwards) std::ranges::reverse(fields);
    for (const Field& field : fields) files.select(field, true);
    const std::string path = concat(folder.path(), "/out", downwards, ".nc");
    OutputFile output(path, false);
    ForecastFile forecast(files, {{0}, 6, {}, fields, false, {}}, output, 1);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      std::vector<float> values(4, static_cast<float>(*fields[f].level));
      forecast.write(f, 0, 0, Box::whole({2, 2}), values);
    }
    forecast.finish();
    const NetcdfReader file(path);
    const std::vector<double> levels =
        downwards ? std::vector<double>{100, 250, 500, 850} : std::vector<double>{850, 500, 250, 100};
    EXPECT_EQ(file.values("level"), levels);
    std::vector<double> at_levels;
    for (const double level : levels) at_levels.insert(at_levels.end(), 4, level);
    EXPECT_EQ(file.values("t"), at_levels);
  }
}

constexpr std::int64_t kProjectedRows = 5, kProjectedColumns = 7;

double latitude_at(std::int64_t y, std::int64_t x) {
  return 40 + 0.5 * static_cast<double>(y) + 0.125 * static_cast<double>(x);
}
double longitude_at(std::int64_t y, std::int64_t x) {
  return -100 + 0.25 * static_cast<double>(x) - 0.0625 * static_cast<double>(y);
}

/// Of every so manieth row and column of the grid.
std::vector<double> of_points(double (*degrees)(std::int64_t, std::int64_t), std::int64_t every_row,
                              std::int64_t every_column) {
  std::vector<double> values;
  for (std::int64_t y = 0; y < kProjectedRows; y += every_row) {
    for (std::int64_t x = 0; x < kProjectedColumns; x += every_column) values.push_back(degrees(y, x));
  }
  return values;
}

/// On a Lambert projection in kilometres, with limits of the cells along x.
void write_projected(const std::string& path) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", 1), y = file.dimension("y", kProjectedRows),
            x = file.dimension("x", kProjectedColumns), two = file.dimension("two", 2);
  const int times = file.variable("time", NC_DOUBLE, {time}), rows = file.variable("y", NC_DOUBLE, {y}),
            columns = file.variable("x", NC_FLOAT, {x}), bounds = file.variable("x_bnds", NC_FLOAT, {x, two}),
            latitudes = file.variable("lat", NC_DOUBLE, {y, x}),
            longitudes = file.variable("lon", NC_FLOAT, {y, x}), crs = file.variable("crs", NC_CHAR, {}),
            t2m = file.variable("t2m", NC_FLOAT, {time, y, x});
  file.text(times, "units", "hours since 1970-01-01");
  for (const auto& [axis, letter] : {std::pair{rows, "y"}, {columns, "x"}}) {
    file.text(axis, "units", "km");
    file.text(axis, "standard_name", concat("projection_", letter, "_coordinate"));
  }
  file.text(columns, "bounds", "x_bnds");
  file.text(latitudes, "units", "degrees_north");
  file.text(latitudes, "standard_name", "latitude");
  file.text(longitudes, "units", "degrees_east");
  file.text(crs, "grid_mapping_name", "lambert_conformal_conic");
  file.text(crs, "crs_wkt", std::string(2000, 'w'));
  // Of its own type, which is another one in what is written.
  file.text(crs, "_FillValue", "-");
  file.text(crs, "missing_value", "-");
  file.numbers(crs, "standard_parallel", {38.5, 39.5});
  file.number(crs, "earth_radius", NC_FLOAT, 6371229);
  file.text(t2m, "units", "K");
  file.text(t2m, "grid_mapping", "crs: x y");
  file.end();
  file.put(times, std::vector<double>{0});
  file.put(rows, {-6, -3, 0, 3, 6});
  file.put(columns, {10, 13, 16, 19, 22, 25, 28});
  file.put(bounds, {8.5, 11.5, 11.5, 14.5, 14.5, 17.5, 17.5, 20.5, 20.5, 23.5, 23.5, 26.5, 26.5, 29.5});
  file.put(latitudes, of_points(latitude_at, 1, 1));
  file.put(longitudes, of_points(longitude_at, 1, 1));
  file.put(t2m, std::vector<double>(kProjectedRows * kProjectedColumns, 280));
}

void write_nothing_of(FileSet& files, const std::string& path) {
  const ForecastContents contents{{0}, 6 * kHour, {}, {{"t2m", {}}}, false, {}};
  files.select(contents.fields[0], true);
  OutputFile output(path, false);
  ForecastFile(files, contents, output, 1).finish();
}

/// Rows and columns in their own units, places and mapping of the points that are written.
TEST(WrittenFields, KeepsTheCoordinatesOfAProjection) {
  const TemporaryFolder folder;
  const std::string input = folder.path() + "/in.nc", whole = folder.path() + "/whole.nc",
                    part = folder.path() + "/part.nc";
  write_projected(input);
  FileSet all({input}), some({input}, {.every = {2, 3}});
  write_nothing_of(all, whole);
  write_nothing_of(some, part);
  for (const std::string& path : {whole, part}) {
    const NetcdfReader file(path);
    EXPECT_EQ(file.dimensions("t2m"), (std::vector<std::string>{"time", "lead_time", "y", "x"}));
    EXPECT_EQ(file.text("t2m", "coordinates"), "lat lon valid_time");
    EXPECT_EQ(file.text("t2m", "grid_mapping"), "crs");
    EXPECT_EQ(file.text("x", "units"), "km");
    EXPECT_EQ(file.text("y", "standard_name"), "projection_y_coordinate");
    EXPECT_EQ(file.dimensions("lat"), (std::vector<std::string>{"y", "x"}));
    EXPECT_EQ(file.dimensions("lon"), (std::vector<std::string>{"y", "x"}));
    EXPECT_EQ(file.text("lat", "units"), "degrees_north");
    EXPECT_EQ(file.text("lon", "standard_name"), "longitude");
    EXPECT_TRUE(file.dimensions("crs").empty());
    EXPECT_EQ(file.text("crs", "grid_mapping_name"), "lambert_conformal_conic");
    EXPECT_EQ(file.text("crs", "crs_wkt"), std::string(2000, 'w'));
    EXPECT_EQ(file.text("crs", "_FillValue"), "");
    EXPECT_EQ(file.text("crs", "missing_value"), "");
    EXPECT_EQ(file.number("crs", "earth_radius"), 6371229);
    std::vector<double> parallels(2);
    EXPECT_EQ(nc_get_att_double(file.id(), file.variable("crs"), "standard_parallel", parallels.data()),
              NC_NOERR);
    EXPECT_EQ(parallels, (std::vector<double>{38.5, 39.5}));
  }
  const NetcdfReader of_all(whole), of_some(part);
  EXPECT_EQ(of_all.values("x"), (std::vector<double>{10, 13, 16, 19, 22, 25, 28}));
  EXPECT_EQ(of_all.values("y"), (std::vector<double>{-6, -3, 0, 3, 6}));
  EXPECT_EQ(of_all.text("x", "bounds"), "x_bnds");
  EXPECT_EQ(of_all.values("x_bnds"), NetcdfReader(input).values("x_bnds"));
  EXPECT_EQ(of_all.values("lat"), of_points(latitude_at, 1, 1));
  EXPECT_EQ(of_all.values("lon"), of_points(longitude_at, 1, 1));
  EXPECT_EQ(of_some.values("x"), (std::vector<double>{10, 19, 28}));
  EXPECT_EQ(of_some.values("y"), (std::vector<double>{-6, 0, 6}));
  EXPECT_EQ(of_some.text("x", "bounds"), "");
  EXPECT_EQ(of_some.values("lat"), of_points(latitude_at, 2, 3));
  EXPECT_EQ(of_some.values("lon"), of_points(longitude_at, 2, 3));
}

/// Names are those within the group; a mapping may stand in it or around it.
TEST(WrittenFields, AProjectionMayStandInAGroup) {
  const TemporaryFolder folder;
  for (const bool inside : {true, false}) {
    const std::string input = folder.path() + "/in.nc", path = folder.path() + (inside ? "/a.nc" : "/b.nc");
    {
      testing::NetcdfWriter file(input);
      const int group = file.group("surface");
      const int time = file.dimension("time", 1), y = file.dimension("y", kProjectedRows, group),
                x = file.dimension("x", kProjectedColumns, group);
      const int times = file.variable("time", NC_DOUBLE, {time}),
                rows = file.variable("y", NC_DOUBLE, {y}, group),
                latitudes = file.variable("lat", NC_DOUBLE, {y, x}, group),
                longitudes = file.variable("lon", NC_DOUBLE, {y, x}, group),
                t2m = file.variable("t2m", NC_FLOAT, {time, y, x}, group);
      const int around = inside ? group : file.root();
      const int crs = file.variable("crs", NC_INT, {}, around);
      file.text(times, "units", "hours since 1970-01-01");
      file.text(rows, "units", "km", group);
      file.text(latitudes, "units", "degrees_north", group);
      file.text(longitudes, "units", "degrees_east", group);
      file.text(crs, "grid_mapping_name", "lambert_conformal_conic", around);
      file.text(t2m, "grid_mapping", "crs", group);
      file.end();
      file.put(times, std::vector<double>{0});
      file.put(rows, std::vector<double>{-6, -3, 0, 3, 6}, group);
      file.put(latitudes, of_points(latitude_at, 1, 1), group);
      file.put(longitudes, of_points(longitude_at, 1, 1), group);
    }
    FileSet files({input});
    write_nothing_of(files, path);
    const NetcdfReader file(path);
    EXPECT_EQ(file.dimensions("t2m"), (std::vector<std::string>{"time", "lead_time", "y", "x"}));
    EXPECT_EQ(file.text("t2m", "coordinates"), "lat lon valid_time");
    EXPECT_EQ(file.text("t2m", "grid_mapping"), "crs");
    EXPECT_EQ(file.text("crs", "grid_mapping_name"), "lambert_conformal_conic");
    EXPECT_EQ(file.text("y", "units"), "km");
    EXPECT_EQ(file.values("lat"), of_points(latitude_at, 1, 1));
  }
}

/// What says what a field is holds of forecasts, too; how the file keeps it, and what belongs to it there,
/// does not.
TEST(WrittenFields, KeepsTheAttributesThatSayWhatAFieldIs) {
  const TemporaryFolder folder;
  const std::string input = folder.path() + "/in.nc", path = folder.path() + "/out.nc";
  {
    testing::NetcdfWriter file(input);
    const int time = file.dimension("time", 1), lat = file.dimension("lat", 2),
              lon = file.dimension("lon", 3);
    const int times = file.variable("time", NC_DOUBLE, {time}), lats = file.variable("lat", NC_DOUBLE, {lat}),
              lons = file.variable("lon", NC_DOUBLE, {lon}),
              t2m = file.variable("t2m", NC_SHORT, {time, lat, lon});
    file.text(times, "units", "hours since 1970-01-01");
    file.text(lats, "units", "degrees_north");
    file.text(lons, "units", "degrees_east");
    file.text(t2m, "units", "K");
    file.text(t2m, "cell_methods", "area: mean");
    file.text(t2m, "comment", "at the height of a head");
    file.text(t2m, "GRIB_shortName", "2t");
    file.numbers(t2m, "flag_values", {1, 2, 4});
    // Of the file, or of how it keeps the numbers.
    file.number(t2m, "scale_factor", NC_DOUBLE, 0.01);
    file.number(t2m, "add_offset", NC_DOUBLE, 273);
    file.number(t2m, "_FillValue", NC_SHORT, -32767);
    file.number(t2m, "missing_value", NC_SHORT, -32767);
    file.number(t2m, "valid_max", NC_SHORT, 32000);
    for (const char* name : {"coordinates", "cell_measures", "ancillary_variables", "grid_mapping"})
      file.text(t2m, name, "area: elsewhere");
    for (const char* name : {"geometry", "quantization"}) file.text(t2m, name, "elsewhere");
    file.text(t2m, "dtype", "bool");  // as xarray writes booleans, and reads whatever has it
    file.text(t2m, "_Unsigned", "true");
    file.text(t2m, "GRIB_gridType", "regular_ll");
    file.text(t2m, "history", std::string(5000, 'h'));
    file.end();
    file.put(times, std::vector<double>{0});
    file.put(lats, std::vector<double>{10, 20});
    file.put(lons, std::vector<double>{0, 5, 10});
  }
  FileSet files({input});
  write_nothing_of(files, path);
  const NetcdfReader file(path);
  EXPECT_EQ(file.text("t2m", "units"), "K");
  EXPECT_EQ(file.text("t2m", "cell_methods"), "area: mean");
  EXPECT_EQ(file.text("t2m", "comment"), "at the height of a head");
  EXPECT_EQ(file.text("t2m", "GRIB_shortName"), "2t");
  std::vector<double> flags(3);
  EXPECT_EQ(nc_get_att_double(file.id(), file.variable("t2m"), "flag_values", flags.data()), NC_NOERR);
  EXPECT_EQ(flags, (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(file.number("t2m", "_FillValue"), NC_FILL_FLOAT);
  EXPECT_EQ(file.text("t2m", "coordinates"), "valid_time");
  int attributes = 0;
  ASSERT_EQ(nc_inq_varnatts(file.id(), file.variable("t2m"), &attributes), NC_NOERR);
  EXPECT_EQ(attributes, 7)
      << "units, cell_methods, comment, GRIB_shortName, flag_values, _FillValue, coordinates";
}

/// A scalar coordinate, with the name and attributes of the input's dimension.
TEST(WrittenFields, SaysWhichMemberOfAnEnsembleItIs) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::vector<double>& numbers, bool counted) {
    testing::NetcdfWriter file(folder.path() + "/" + name);
    const int time = file.dimension("time", 1), number = file.dimension("number", numbers.size()),
              lat = file.dimension("lat", 2), lon = file.dimension("lon", 3);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              members = counted ? -1 : file.variable("number", NC_INT, {number}),
              lats = file.variable("lat", NC_DOUBLE, {lat}), lons = file.variable("lon", NC_DOUBLE, {lon});
    file.variable("t2m", NC_FLOAT, {number, time, lat, lon});
    file.text(times, "units", "hours since 1970-01-01");
    if (!counted) file.text(members, "long_name", "ensemble member numerical id");
    file.text(lats, "units", "degrees_north");
    file.text(lons, "units", "degrees_east");
    file.end();
    file.put(times, std::vector<double>{numbers[0]});
    if (!counted) file.put(members, numbers);
    file.put(lats, std::vector<double>{10, 20});
    file.put(lons, std::vector<double>{0, 5, 10});
    return folder.path() + "/" + name;
  };
  const std::string three = write("three.nc", {3, 5, 7}, false), one = write("one.nc", {4}, false),
                    other = write("other.nc", {6}, false), counted = write("counted.nc", {0, 1}, true);
  const auto written = [&](const std::vector<std::string>& paths, std::optional<double> member) {
    FileSet files(paths, {.member = {member}});
    std::filesystem::remove(folder.path() + "/out.nc");
    write_nothing_of(files, folder.path() + "/out.nc");
    return folder.path() + "/out.nc";
  };
  {
    const NetcdfReader file(written({three}, 5));
    EXPECT_TRUE(file.dimensions("number").empty());
    EXPECT_EQ(file.values("number"), std::vector<double>{5});
    EXPECT_EQ(file.text("number", "standard_name"), "realization");
    EXPECT_EQ(file.text("number", "long_name"), "ensemble member numerical id");
    EXPECT_EQ(file.text("t2m", "coordinates"), "valid_time number");
  }
  EXPECT_EQ(NetcdfReader(written({one}, {})).values("number"), std::vector<double>{4}) << "it has no other";
  EXPECT_EQ(NetcdfReader(written({counted}, 1)).values("number"), std::vector<double>{1});
  const NetcdfReader mixed(written({one, other}, {}));
  EXPECT_FALSE(mixed.has("number")) << "some states are of one member, some of another";
  EXPECT_EQ(mixed.text("t2m", "coordinates"), "valid_time");
}

/// WRF has places of points alone, known by their names.
TEST(WrittenFields, RowsAndColumnsMayHaveNoCoordinates) {
  const TemporaryFolder folder;
  const std::string input = folder.path() + "/in.nc", path = folder.path() + "/out.nc";
  {
    testing::NetcdfWriter file(input);
    const int time = file.dimension("Time", 1), y = file.dimension("south_north", kProjectedRows),
              x = file.dimension("west_east", kProjectedColumns);
    const int times = file.variable("XTIME", NC_FLOAT, {time}),
              latitudes = file.variable("XLAT", NC_FLOAT, {time, y, x}),
              longitudes = file.variable("XLONG", NC_FLOAT, {time, y, x});
    file.text(times, "units", "minutes since 1970-01-01 00:00:00");
    file.variable("t2m", NC_FLOAT, {time, y, x});
    file.end();
    file.put(times, std::vector<double>{0});
    file.put(latitudes, of_points(latitude_at, 1, 1));
    file.put(longitudes, of_points(longitude_at, 1, 1));
  }
  FileSet files({input});
  write_nothing_of(files, path);
  const NetcdfReader file(path);
  EXPECT_EQ(file.dimensions("t2m"),
            (std::vector<std::string>{"time", "lead_time", "south_north", "west_east"}));
  EXPECT_FALSE(file.has("south_north"));
  EXPECT_FALSE(file.has("west_east"));
  EXPECT_EQ(file.text("t2m", "coordinates"), "XLAT XLONG valid_time");
  EXPECT_EQ(file.text("t2m", "grid_mapping"), "");
  EXPECT_EQ(file.text("XLAT", "units"), "degrees_north");
  EXPECT_EQ(file.text("XLONG", "standard_name"), "longitude");
  EXPECT_EQ(file.values("XLAT"), of_points(latitude_at, 1, 1));
  EXPECT_EQ(file.values("XLONG"), of_points(longitude_at, 1, 1));
}

}  // namespace written_fields_test
}  // namespace jigsaw
