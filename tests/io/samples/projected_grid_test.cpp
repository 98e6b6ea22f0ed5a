// Fields on rows and columns of a projection, whose points have latitudes and longitudes of their own.
#include <cmath>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::NetcdfWriter;

constexpr std::int64_t kRows = 5, kColumns = 6;

double latitude(std::int64_t y, std::int64_t x) {
  return 40 + 0.7 * static_cast<double>(y) + 0.01 * static_cast<double>(x * x);
}

/// Across the dateline, in [-180, 180).
double longitude(std::int64_t y, std::int64_t x) {
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

/// As HRRR in NetCDF, or, `wrf`, latitudes and longitudes with a time, by name alone.
std::string write(const testing::TemporaryFolder& folder, const std::string& name, bool wrf, int first_time,
                  double shift = 0) {
  const std::string path = concat(folder.path(), "/", name);
  NetcdfWriter file(path);
  const int time = file.dimension("time", 4);
  const int y = file.dimension(wrf ? "south_north" : "y", kRows);
  const int x = file.dimension(wrf ? "west_east" : "x", kColumns);
  const int times = file.variable("time", NC_DOUBLE, {time});
  file.text(times, "units", "hours since 2020-02-01");
  if (!wrf) {
    const int rows = file.variable("y", NC_DOUBLE, {y});
    file.text(rows, "units", "m");
    file.text(rows, "axis", "Y");
    file.text(rows, "standard_name", "projection_y_coordinate");
    file.end();
    file.put(rows, {0, 3000, 6000, 9000, 12000});
    NetcdfWriter::check(nc_redef(file.root()));
  }
  const std::vector<int> horizontal = wrf ? std::vector{time, y, x} : std::vector{y, x};
  const int latitudes = file.variable(wrf ? "XLAT" : "latitude", NC_DOUBLE, horizontal);
  const int longitudes = file.variable(wrf ? "XLONG" : "longitude", NC_DOUBLE, horizontal);
  if (!wrf) {
    file.text(latitudes, "units", "degrees_north");
    file.text(longitudes, "units", "degrees_east");
  }
  const int t2m = file.variable("t2m", NC_DOUBLE, {time, y, x});
  file.end();
  std::vector<double> hours, values, degrees_north, degrees_east;
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (int t = 0; t < 4; ++t) {
    hours.push_back(6 * (first_time + t));
    append(values, plane([&](std::int64_t i, std::int64_t j) { return value(first_time + t, i, j); }));
    if (t > 0 && !wrf) continue;
    append(degrees_north, plane([&](std::int64_t i, std::int64_t j) { return latitude(i, j) + shift; }));
    append(degrees_east, plane(longitude));
  }
  file.put(times, hours);
  file.put(latitudes, degrees_north);
  file.put(longitudes, degrees_east);
  file.put(t2m, values);
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
    const Box box{{1, 2}, {3, 4}};
    std::vector<double> found(12);
    for (std::int64_t t = 0; t < 8; ++t) {
      files.read(t2m, files.times(t2m)[static_cast<std::size_t>(t)], box, found);
      for (std::int64_t i = 0; i < 12; ++i)
        EXPECT_EQ(found[static_cast<std::size_t>(i)], value(t, 1 + i / 4, 2 + i % 4));
    }
  }
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

}  // namespace
}  // namespace jigsaw
