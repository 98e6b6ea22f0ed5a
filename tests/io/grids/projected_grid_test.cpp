// Fields on rows and columns of a projection, whose points have latitudes and longitudes of their own.
#include <algorithm>
#include <cmath>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "files/variable_file.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace projected_grid_test {

using testing::NetcdfWriter;

constexpr std::int64_t kRows = 5, kColumns = 6;

double latitude(std::int64_t y, std::int64_t x) {
  return 40 + 0.7 * static_cast<double>(y) + 0.01 * static_cast<double>(x * x);
}

/// Whether a point has no place, as over land in files of ocean models.
bool hole = false;

/// Across the dateline, in [-180, 180).
double longitude(std::int64_t y, std::int64_t x) {
  if (hole && y == 0 && x == 1) return NAN;
  const double degrees = 178.5 + 0.9 * static_cast<double>(x) - 0.02 * static_cast<double>(y);
  return degrees < 180 ? degrees : degrees - 360;
}

double value(std::int64_t t, std::int64_t y, std::int64_t x) {
  return std::sin(static_cast<double>(1 + t * 31 + y * 7 + x));
}

template <typename F>
std::vector<double> plane(const F& of) {
  std::vector<double> values;
  for (std::int64_t y = 0; y < kRows; ++y) {
    for (std::int64_t x = 0; x < kColumns; ++x) values.push_back(of(y, x));
  }
  return values;
}

constexpr std::size_t kTimes = 4;

/// What a file of WRF has in place of a coordinate of its times.
struct WrfTimes {
  bool dates = true, minutes = true;
  std::string first_date;  ///< in place of the right one
};

/// `Times` and XTIME, which counts from the first time of each file as if that were of 1 February.
void write_times(NetcdfWriter& file, int time, int first_time, const WrfTimes& has) {
  constexpr std::size_t kLength = 19;
  const int length = file.dimension("DateStrLen", kLength);
  if (has.dates) {
    std::string text;
    for (int number = first_time; number < first_time + 4; ++number)
      text += concat("2020-02-0", 1 + number / 4, "_", number % 4 < 2 ? "0" : "", 6 * (number % 4), ":00:00");
    if (!has.first_date.empty()) text.replace(0, kLength, has.first_date);
    const int dates = file.variable("Times", NC_CHAR, {time, length});
    const std::size_t start[] = {0, 0}, extent[] = {kTimes, kLength};
    NetcdfWriter::check(nc_put_vara_text(file.root(), dates, start, extent, text.c_str()));
  }
  if (!has.minutes) return;
  const int minutes = file.variable("XTIME", NC_FLOAT, {time});
  file.text(minutes, "units", "minutes since 2020-02-01 00:00:00");
  file.put(minutes, {kTimes}, {0, 360, 720, 1080});
}

/// As HRRR in NetCDF, or, `wrf`, as that model writes: without coordinate variables, latitudes and longitudes
/// at each time.
std::string write(const testing::TemporaryFolder& folder, const std::string& name, bool wrf, int first_time,
                  double shift = 0, const WrfTimes& wrf_times = {}) {
  const std::string path = concat(folder.path(), "/", name);
  NetcdfWriter file(path);
  const int time = file.dimension(wrf ? "Time" : "time", wrf ? NC_UNLIMITED : kTimes);
  const int y = file.dimension(wrf ? "south_north" : "y", kRows);
  const int x = file.dimension(wrf ? "west_east" : "x", kColumns);
  if (wrf) {
    write_times(file, time, first_time, wrf_times);
  } else {
    const int times = file.variable("time", NC_DOUBLE, {time});
    file.text(times, "units", "hours since 2020-02-01");
    const int rows = file.variable("y", NC_DOUBLE, {y});
    file.text(rows, "units", "m");
    file.text(rows, "axis", "Y");
    file.text(rows, "standard_name", "projection_y_coordinate");
    file.end();
    file.put(rows, {0, 3000, 6000, 9000, 12000});
    const double first = 6 * first_time;
    file.put(times, {first, first + 6, first + 12, first + 18});
    NetcdfWriter::check(nc_redef(file.root()));
  }
  const std::vector<int> horizontal = wrf ? std::vector{time, y, x} : std::vector{y, x};
  const int latitudes = file.variable(wrf ? "XLAT" : "latitude", wrf ? NC_FLOAT : NC_DOUBLE, horizontal);
  const int longitudes = file.variable(wrf ? "XLONG" : "longitude", wrf ? NC_FLOAT : NC_DOUBLE, horizontal);
  file.text(latitudes, "units", wrf ? "degree_north" : "degrees_north");
  file.text(longitudes, "units", wrf ? "degree_east" : "degrees_east");
  const int t2m = file.variable("t2m", NC_DOUBLE, {time, y, x});
  file.end();
  std::vector<double> values, degrees_north, degrees_east;
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (int t = 0; t < 4; ++t) {
    append(values, plane([&](std::int64_t i, std::int64_t j) { return value(first_time + t, i, j); }));
    if (t > 0 && !wrf) continue;
    append(degrees_north, plane([&](std::int64_t i, std::int64_t j) { return latitude(i, j) + shift; }));
    append(degrees_east, plane(longitude));
  }
  const std::vector<std::size_t> plane_of_each = {kTimes, kRows, kColumns};
  const std::vector<std::size_t> places = wrf ? plane_of_each : std::vector<std::size_t>{kRows, kColumns};
  file.put(latitudes, places, degrees_north);
  file.put(longitudes, places, degrees_east);
  file.put(t2m, plane_of_each, values);
  return path;
}

TEST(ProjectedGrid, FieldsOfSeveralFilesAreReadByRowAndColumn) {
  const testing::TemporaryFolder folder;
  for (const bool wrf : {false, true}) {
    FileSet files({write(folder, "a.nc", wrf, 0), write(folder, "b.nc", wrf, 4)});
    const Field t2m{"t2m", {}};
    files.select(t2m, true);
    EXPECT_EQ(files.grid().shape(), (Shape{kRows, kColumns}));
    EXPECT_FALSE(files.grid().geographic);
    EXPECT_EQ(files.grid().row_weights(), std::vector<double>(kRows, 1.0));
    ASSERT_EQ(files.times(t2m).size(), 8U);
    for (std::int64_t t = 0; t < 8; ++t)
      EXPECT_EQ(files.times(t2m)[static_cast<std::size_t>(t)], at("2020-02-01") + t * 6 * kHour);
    const Box box{{1, 2}, {3, 4}};
    std::vector<double> found(12);
    for (std::int64_t t = 0; t < 8; ++t) {
      files.read(t2m, files.times(t2m)[static_cast<std::size_t>(t)], box, found);
      for (std::int64_t i = 0; i < 12; ++i)
        EXPECT_EQ(found[static_cast<std::size_t>(i)], value(t, 1 + i / 4, 2 + i % 4));
    }
  }
}

TEST(ProjectedGrid, PointsWithoutAPlaceAreWithoutOneInAllFiles) {
  const testing::TemporaryFolder folder;
  const std::string whole = write(folder, "whole.nc", false, 0);
  hole = true;
  const std::vector<std::string> paths = {write(folder, "a.nc", false, 0), write(folder, "b.nc", false, 4)};
  hole = false;
  FileSet files(paths);
  files.select({"t2m", {}}, true);
  EXPECT_EQ(files.times({"t2m", {}}).size(), 8U);
  FileSet unlike({whole, paths[1]});
  EXPECT_NE(message_of<DataError>([&] {
              unlike.select({"t2m", {}}, true);
            }).find("lies at other longitudes"),
            std::string::npos);
}

TEST(ProjectedGrid, ForcingsNeedThePlaceOfEveryPoint) {
  const testing::TemporaryFolder folder;
  hole = true;
  const std::string path = write(folder, "a.nc", false, 0);
  hole = false;
  for (const ForcingKind kind : {ForcingKind::kLongitude, ForcingKind::kSinCosLatitude,
                                 ForcingKind::kCosZenithAngle, ForcingKind::kTimeOfDay}) {
    DataOptions options;
    options.files = {path};
    options.variables = {{"t2m", {}}};
    options.forcings = {kind};
    options.train = {period("2020-02-01", "2020-02-02")};
    run_ranks(1, [&](Communicator& communicator) {
      Dataset data(options, "", 1, communicator);
      BatchReader reader = data.make_reader();
      const Context context = Context::make_host(Backend::kReference, 1);
      const std::int64_t channels = std::ssize(data.channels().inputs);
      const auto read = [&](const Box& input) {
        reader.read({.times = {at("2020-02-01")},
                     .input = input,
                     .target = {{0, 0, 0, 0}, {0, 0, 0, 1}},
                     .dtype = DType::kFloat64},
                    context);
      };
      // What has no hole is read.
      read({{0, 1, 0, 0}, {1, kRows - 1, kColumns, channels}});
      const Box whole = Box::whole({1, kRows, kColumns, channels});
      if (kind == ForcingKind::kTimeOfDay) return read(whole);
      const std::string message = message_of<DataError>([&] { read(whole); });
      EXPECT_NE(message.find("longitude in "), std::string::npos) << message;
      EXPECT_NE(message.find("a.nc is missing at row 0, column 1;"), std::string::npos) << message;
      EXPECT_NE(message.find("data.forcings"), std::string::npos) << message;
    });
  }
}

TEST(ProjectedGrid, TimesOfWrfAreDatesOrMinutes) {
  const testing::TemporaryFolder folder;
  const std::vector<Time> wanted = {at("2020-02-01"), at("2020-02-01T06:00"), at("2020-02-01T12:00"),
                                    at("2020-02-01T18:00")};
  for (const bool dates : {false, true}) {
    const auto file = opener(Dimensions::kByName)(
        write(folder, dates ? "dates.nc" : "minutes.nc", true, 0, 0, {dates, !dates, ""}));
    // As ranks have it that another one tells what the file says.
    auto described =
        open_described(FileDescription::from_bytes(file->describe().to_bytes()), External::kRefused);
    const VariableFile& there = *described;
    DataFile data(std::move(described));
    EXPECT_EQ(data.times("Time"), wanted);
    EXPECT_EQ(data.calendar("Time"), Calendar::kStandard);
    EXPECT_FALSE(there.is_open());
    EXPECT_EQ(there.bytes_read(), 0);
  }
}

/// Of seven and a half years by the hour, in one file.
TEST(ProjectedGrid, DatesOfWrfMayBeMoreThanNamesOfChannels) {
  const testing::TemporaryFolder folder;
  const std::string path = concat(folder.path(), "/joined.nc");
  constexpr std::size_t kHours = 66'000, kLength = 19;
  {
    NetcdfWriter file(path);
    const int time = file.dimension("Time", kHours), length = file.dimension("DateStrLen", kLength);
    const int dates = file.variable("Times", NC_CHAR, {time, length});
    file.end();
    std::string text;
    for (std::size_t hour = 0; hour < kHours; ++hour) {
      std::string date = format_time(at("2010-01-01") + static_cast<Time>(hour) * kHour) + ":00";
      date[10] = '_';
      text += date;
    }
    NetcdfWriter::check(nc_put_var_text(file.root(), dates, text.c_str()));
  }
  DataFile data(opener(Dimensions::kByName)(path));
  const std::vector<Time>& times = data.times("Time");
  ASSERT_EQ(times.size(), kHours);
  for (std::size_t hour = 0; hour < kHours; ++hour)
    ASSERT_EQ(times[hour], at("2010-01-01") + static_cast<Time>(hour) * kHour);
}

TEST(ProjectedGrid, TimesOfWrfThatAreNoneAreRefused) {
  const testing::TemporaryFolder folder;
  const auto says = [&](const std::string& name, const WrfTimes& times) {
    FileSet files({write(folder, name, true, 0, 0, times)});
    return message_of<DataError>([&] { files.select({"t2m", {}}, true); });
  };
  const std::string torn = says("torn.nc", {true, true, "2020-02-31_00:00:00"});
  EXPECT_NE(torn.find("Times of "), std::string::npos) << torn;
  EXPECT_NE(torn.find("\"2020-02-31_00:00:00\", which is no date"), std::string::npos) << torn;
  const std::string none = says("none.nc", {false, false, ""});
  EXPECT_NE(none.find("it has no times for its dimension Time"), std::string::npos) << none;
}

/// As in files of what does not change, and in those of one state.
TEST(ProjectedGrid, ATimeThatNothingSaysIsADimensionLikeOthers) {
  const testing::TemporaryFolder folder;
  const std::string path = concat(folder.path(), "/geo_em.nc");
  {
    NetcdfWriter file(path);
    const int time = file.dimension("Time", 1), y = file.dimension("south_north", kRows),
              x = file.dimension("west_east", kColumns);
    const int latitudes = file.variable("XLAT", NC_DOUBLE, {time, y, x}),
              longitudes = file.variable("XLONG", NC_DOUBLE, {time, y, x}),
              height = file.variable("HGT_M", NC_DOUBLE, {time, y, x});
    file.end();
    file.put(latitudes, plane(latitude));
    file.put(longitudes, plane(longitude));
    file.put(height, plane([](std::int64_t i, std::int64_t j) { return value(0, i, j); }));
  }
  FileSet files({path});
  const std::vector<VariableSummary> catalogue = files.catalogue();
  const auto found = std::ranges::find(catalogue, "HGT_M", &VariableSummary::name);
  ASSERT_NE(found, catalogue.end());
  EXPECT_TRUE(found->times.empty());
  const Field height{"HGT_M", {}};
  files.select(height, false);
  std::vector<double> values(kRows * kColumns);
  files.read(height, 0, Box::whole({kRows, kColumns}), values);
  EXPECT_EQ(values, plane([](std::int64_t i, std::int64_t j) { return value(0, i, j); }));
  FileSet again({path});
  EXPECT_NE(message_of<DataError>([&] { again.select(height, true); }).find("has no time"),
            std::string::npos);
}

TEST(ProjectedGrid, OtherPlacesOrARegionAreRefused) {
  const testing::TemporaryFolder folder;
  const std::string a = write(folder, "a.nc", false, 0), b = write(folder, "b.nc", false, 4, 0.5);
  FileSet files({a, b});
  const Field t2m{"t2m", {}};
  EXPECT_NE(message_of<DataError>([&] { files.select(t2m, true); }).find("lies at other latitudes"),
            std::string::npos);
  FileSet region({a}, {.region = {{40, 41}, {}}});
  EXPECT_NE(message_of<DataError>([&] { region.select(t2m, true); }).find("data.region"), std::string::npos);
}

/// As of a climatology, whose files have no fields in common with those that the grid is of.
TEST(ProjectedGrid, AGridThatIsTakenOverKeepsItsPlaces) {
  const testing::TemporaryFolder folder;
  FileSet data({write(folder, "data.nc", false, 0)});
  const Field t2m{"t2m", {}};
  data.select(t2m, true);
  FileSet same({write(folder, "same.nc", true, 4)});
  same.take_grid(data);
  same.select(t2m, true);
  const Box all = Box::whole({kRows, kColumns});
  const std::vector<double> found = same.read_degrees(all).latitude, wanted = plane(latitude);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5);
  FileSet other({write(folder, "other.nc", false, 0, 0.5)});
  other.take_grid(data);
  const std::string said = message_of<DataError>([&] { other.select(t2m, true); });
  EXPECT_NE(said.find("lies at other latitudes than the fields of "), std::string::npos) << said;
  EXPECT_NE(said.find("data.nc"), std::string::npos) << said;
}

// Standardised by the first, middle and last row; pieces are cuts of the whole and read their own points.
TEST(ProjectedGrid, ForcingsAreThoseOfThePoints) {
  const testing::TemporaryFolder folder;
  DataOptions options;
  options.files = {write(folder, "a.nc", false, 0)};
  options.variables = {{"t2m", {}}};
  options.forcings = {ForcingKind::kLatitude, ForcingKind::kLongitude};
  options.train = {period("2020-02-01", "2020-02-02")};
  run_ranks(1, [&](Communicator& communicator) {
    Dataset data(options, "", 1, communicator);
    BatchReader reader = data.make_reader();
    const Context context = Context::make_host(Backend::kReference, 1);
    const Batch whole = reader.read({.times = {at("2020-02-01")},
                                     .input = Box::whole({1, kRows, kColumns, 3}),
                                     .target = {{0, 0, 0, 0}, {0, 0, 0, 1}},
                                     .dtype = DType::kFloat64},
                                    context);
    for (const int axis : {0, 1}) {
      const auto degrees = [&](std::int64_t y, std::int64_t x) {
        if (axis == 0) return latitude(y, x);
        return longitude(y, x) < 0 ? longitude(y, x) + 360 : longitude(y, x);
      };
      double mean = 0, squares = 0;
      for (const std::int64_t y : {0, 2, 4}) {
        for (std::int64_t x = 0; x < kColumns; ++x) mean += degrees(y, x) / 18;
      }
      for (const std::int64_t y : {0, 2, 4}) {
        for (std::int64_t x = 0; x < kColumns; ++x) squares += std::pow(degrees(y, x) - mean, 2) / 18;
      }
      for (std::int64_t y = 0; y < kRows; ++y) {
        for (std::int64_t x = 0; x < kColumns; ++x) {
          EXPECT_NEAR(HostView<double>(whole.input)[(y * kColumns + x) * 3 + 1 + axis],
                      (degrees(y, x) - mean) / std::sqrt(squares), 1e-10);
        }
      }
    }
    const std::int64_t before = data.bytes_read();
    const Batch piece = reader.read({.times = {at("2020-02-01")},
                                     .input = {{0, 3, 1, 1}, {1, 2, 4, 2}},
                                     .target = {{0, 0, 0, 0}, {0, 0, 0, 1}},
                                     .dtype = DType::kFloat64},
                                    context);
    EXPECT_EQ(data.bytes_read() - before, 2 * 8 * 8);
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t y = 3 + i / 8, x = 1 + i / 2 % 4;
      EXPECT_EQ(HostView<double>(piece.input)[i],
                HostView<double>(whole.input)[(y * kColumns + x) * 3 + 1 + i % 2]);
    }
  });
}

/// As CICE and MOM write: on the same dimensions latitudes and longitudes of centres (T) and of corners (U),
/// half a degree further, that fields name in `coordinates`; `a` and `t` those of centres, `u` of corners.
/// With `axes` rows and columns have degrees of their own, from which the points' differ by `bend` in the
/// last row.
std::string write_staggered(const testing::TemporaryFolder& folder, const std::string& first, bool axes,
                            double bend = 0) {
  const std::string path = concat(folder.path(), "/", first, axes, bend, ".nc");
  NetcdfWriter file(path);
  const int time = file.dimension("time", kTimes), y = file.dimension("yh", kRows),
            x = file.dimension("xh", kColumns);
  const int times = file.variable("time", NC_DOUBLE, {time});
  file.text(times, "units", "hours since 2020-02-01");
  std::vector<std::pair<int, std::vector<double>>> fields;
  const auto add = [&](const std::string& name, const std::vector<int>& dims, const char* units,
                       std::vector<double> values) {
    const int variable = file.variable(name, NC_DOUBLE, dims);
    file.text(variable, "units", units);
    fields.emplace_back(variable, std::move(values));
    return variable;
  };
  const auto row = [](std::int64_t i, std::int64_t) { return 50 + 2.0 * static_cast<double>(i); };
  const auto column = [](std::int64_t, std::int64_t j) { return 3.0 * static_cast<double>(j); };
  if (axes) {
    std::vector<double> rows, columns;
    for (std::int64_t i = 0; i < kRows; ++i) rows.push_back(row(i, 0));
    for (std::int64_t j = 0; j < kColumns; ++j) columns.push_back(column(0, j));
    add("yh", {y}, "degrees_north", rows);
    add("xh", {x}, "degrees_east", columns);
  }
  const std::vector<std::string> kinds =
      first == "T" ? std::vector<std::string>{"T", "U"} : std::vector<std::string>{"U", "T"};
  for (const std::string& kind : kinds) {
    const double shift = kind == "U" ? 0.5 : 0;
    const auto bent = [&](const auto& of) {
      return plane(
          [&](std::int64_t i, std::int64_t j) { return of(i, j) + shift + (i + 1 == kRows ? bend : 0); });
    };
    add(kind + "LAT", {y, x}, "degrees_north", bent(row));
    add(kind + "LON", {y, x}, "degrees_east", bent(column));
  }
  for (const auto& [name, kind] : {std::pair{"a", "T"}, std::pair{"t", "T"}, std::pair{"u", "U"}}) {
    std::vector<double> values;
    for (std::int64_t t = 0; t < 4; ++t) {
      const auto here = plane([&](std::int64_t i, std::int64_t j) { return value(t, i, j); });
      values.insert(values.end(), here.begin(), here.end());
    }
    file.text(add(name, {time, y, x}, "1", values), "coordinates", concat(kind, "LON ", kind, "LAT time"));
  }
  file.end();
  file.put(times, {kTimes}, {0, 6, 12, 18});
  for (const auto& [variable, values] : fields) {
    const bool plane_alone = values.size() == kRows * kColumns;
    file.put(variable,
             values.size() <= kColumns ? std::vector<std::size_t>{values.size()}
             : plane_alone             ? std::vector<std::size_t>{kRows, kColumns}
                                       : std::vector<std::size_t>{kTimes, kRows, kColumns},
             values);
  }
  return path;
}

TEST(ProjectedGrid, AFieldLiesWhereItsCoordinatesSay) {
  const testing::TemporaryFolder folder;
  for (const char* first : {"T", "U"}) {
    for (const auto& [name, shift] : {std::pair{"a", 0.0}, std::pair{"u", 0.5}}) {
      FileSet files({write_staggered(folder, first, false)});
      files.select({name, {}}, true);
      const PointPlaces places = files.read_degrees(Box::whole({kRows, kColumns}));
      EXPECT_EQ(places.latitude[kColumns + 1], 52 + shift) << name << first;
      EXPECT_EQ(places.longitude[kColumns + 1], 3 + shift) << name << first;
    }
    FileSet files({write_staggered(folder, first, false)});
    files.select({"a", {}}, true);
    files.select({"t", {}}, true);
    EXPECT_EQ(files.fields_elsewhere(), std::vector<std::string>());
    files.select({"u", {}}, true);
    const std::vector<std::string> said = files.fields_elsewhere();
    ASSERT_EQ(said.size(), 1U);
    EXPECT_TRUE(
        said[0].starts_with("ULAT and ULON, the coordinates of u, are up to 0.5° from TLAT and TLON, "
                            "at which all fields are taken to lie"))
        << said[0];
    EXPECT_EQ(files.read_degrees(Box::whole({kRows, kColumns})).latitude[0], 50)
        << "those of the first field";
  }
}

/// Of a tripolar grid axes say nominal degrees, which is told; not where fields name the same.
TEST(ProjectedGrid, AxesThatFieldsContradictAreTold) {
  const testing::TemporaryFolder folder;
  for (const double bend : {0.0, 0.25}) {
    FileSet files({write_staggered(folder, "T", true, bend)});
    files.select({"a", {}}, true);
    files.select({"t", {}}, true);
    EXPECT_TRUE(files.grid().geographic);
    const std::vector<std::string> said = files.fields_elsewhere();
    ASSERT_EQ(said.size(), bend > 0 ? 1U : 0U);
    if (said.empty()) continue;
    EXPECT_TRUE(
        said[0].starts_with("TLAT and TLON, the coordinates of a and 1 more field, are up to 0.25° "
                            "from latitudes and longitudes along their axes, "))
        << said[0];
  }
  RegionOptions south;
  south.latitude = {49, 57};
  FileSelection selection;
  selection.region = south;
  FileSet files({write_staggered(folder, "T", true, 0.25)}, selection);
  files.select({"a", {}}, true);
  EXPECT_EQ(files.fields_elsewhere(), std::vector<std::string>()) << "axes hold there";
}

}  // namespace projected_grid_test
}  // namespace jigsaw
