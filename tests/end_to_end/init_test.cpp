// jigsaw-train init: what it writes for data files runs as it is.
#include "end_to_end/init_test.h"

#include <gtest/gtest.h>
#include <netcdf.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "base/text.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

TEST_F(InitTest, WritesForecastsThatRun) {
  expect_ok(run(1, "sample-data --output " + quoted(folder_ / "data")));
  for (const char* recipe : {"unet", "vit", "swin", "weathermixer", "sfno"}) {
    SCOPED_TRACE(recipe);
    expect_runs("--data " + quoted(folder_ / "data/*.nc") + " --from " + recipe, "0.05");
    const bool pads = text().find(R"("padding_mode": ["replicate", "circular"])") != std::string::npos;
    EXPECT_EQ(pads, recipe == "unet"s) << text();
    // 37 × 72 points: 37 are prime, and patches of them padded.
    if (recipe == "sfno"s) expect_text({R"("latitudes": "pole_point")"});
    if (recipe == "swin"s) expect_text({R"("patch": [5, 6])", R"("window": [8, 6])"});
  }
  expect_text(
      {"\"t2m\"", "\"input_hours\": [-6, 0]", "data/*.nc", "2 metre temperature", R"("mesh": "auto")"});
  // Steps in place of the epochs that it writes, as the pages about clusters show it.
  expect_ok(
      run(1, "check --config " + quoted(folder_ / "first.json") +
                 " --set train.epochs=null --set train.steps=50 --set output=" + quoted(folder_ / "run")));
}

/// A field that changes, one that is repeated at every time, one without time, and one with other times.
void write_fields(const std::string& path, bool global = false, std::size_t times = 40,
                  const char* time_units = "hours since 2020-01-01") {
  int file = 0, time = 0, late = 0, rows = 0, columns = 0;
  ASSERT_EQ(nc_create(path.c_str(), NC_NETCDF4, &file), NC_NOERR);
  const auto coordinate = [&](const char* name, std::size_t extent, double first, double step,
                              const char* units) {
    int dim = 0, id = 0;
    EXPECT_EQ(nc_def_dim(file, name, extent, &dim), NC_NOERR);
    EXPECT_EQ(nc_def_var(file, name, NC_DOUBLE, 1, &dim, &id), NC_NOERR);
    EXPECT_EQ(nc_put_att_text(file, id, "units", std::strlen(units), units), NC_NOERR);
    std::vector<double> values(extent);
    for (std::size_t i = 0; i < extent; ++i) values[i] = first + static_cast<double>(i) * step;
    EXPECT_EQ(nc_put_var_double(file, id, values.data()), NC_NOERR);
    return dim;
  };
  time = coordinate("time", times, 0, 12, time_units);
  late = coordinate("late_time", 20, 0, 24, "hours since 2020-01-01");
  rows = coordinate("latitude", global ? 9 : 8, 80, global ? -20 : -10, "degrees_north");
  columns = coordinate("longitude", global ? 16 : 12, 0, global ? 22.5 : 5, "degrees_east");
  const std::size_t points = global ? 144 : 96;
  const auto field = [&](const char* name, const std::vector<int>& dims, auto value) {
    int id = 0;
    EXPECT_EQ(nc_def_var(file, name, NC_FLOAT, static_cast<int>(dims.size()), dims.data(), &id), NC_NOERR);
    std::size_t count = 1;
    for (const int dim : dims) {
      std::size_t extent = 0;
      EXPECT_EQ(nc_inq_dimlen(file, dim, &extent), NC_NOERR);
      count *= extent;
    }
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(value(i));
    EXPECT_EQ(nc_put_var_float(file, id, values.data()), NC_NOERR);
  };
  const auto here = [&](std::size_t i) { return std::sin(0.7 * static_cast<double>(i % points)); };
  field("t2m", {time, rows, columns}, [&](std::size_t i) { return here(i + 5 * (i / points)); });
  field("lsm", {time, rows, columns}, here);
  field("orography", {rows, columns}, here);
  field("flat", {rows, columns}, [](std::size_t) { return 1.0; });
  field("daily", {late, rows, columns}, [&](std::size_t i) { return here(i + 3 * (i / points)); });
  EXPECT_EQ(nc_close(file), NC_NOERR);
}

TEST_F(InitTest, KnowsWhatIsConstantAndWhatHasOtherTimes) {
  write_fields(folder_ / "fields.nc");
  expect_runs("--data " + quoted(folder_ / "fields.nc"), "0.2");
  expect_text({R"("variables": ["t2m"])", R"("static": ["lsm", "orography"])", "other times: daily",
               "the same everywhere: flat", R"("input_hours": [-12, 0])", R"("lead_hours": 12)"});
  EXPECT_EQ(text().find("padding_mode"), std::string::npos) << "the grid is a region\n" << text();
  // A run would end at its statistics: so does what looks beforehand.
  const Outcome flat =
      run(2, "check --config " + quoted(folder_ / "first.json") + " --set 'data.static=[\"flat\"]'");
  EXPECT_EQ(flat.exit_code, 3) << flat.err;
  EXPECT_NE(flat.err.find("flat does not vary"), std::string::npos) << flat.err;
  write_fields(folder_ / "global.nc", true);
  expect_runs("--data " + quoted(folder_ / "global.nc"), "0.2");
  expect_text({R"("padding_mode": ["pole_cell", "circular"])"});
  // Of so few times a fifth holds no window.
  write_fields(folder_ / "short.nc", false, 12);
  expect_runs("--data " + quoted(folder_ / "short.nc"), "1");
}

/// t2m of members 3, 4 and 7 at 30 times.
void write_ensemble(const std::string& path) {
  testing::NetcdfWriter file(path);
  const int number = file.dimension("number", 3), time = file.dimension("time", 30),
            lat = file.dimension("latitude", 8), lon = file.dimension("longitude", 12);
  const int numbers = file.variable("number", NC_INT, {number}),
            times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            t2m = file.variable("t2m", NC_FLOAT, {number, time, lat, lon});
  file.text(times, "units", "hours since 2020-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  std::vector<double> hours, rows, columns, values;
  for (int i = 0; i < 30; ++i) hours.push_back(6 * i);
  for (int i = 0; i < 8; ++i) rows.push_back(50 - 5 * i);
  for (int i = 0; i < 12; ++i) columns.push_back(5 * i);
  for (int i = 0; i < 3 * 30 * 96; ++i) values.push_back(std::sin(0.7 * i));
  file.put(numbers, std::vector<double>{3, 4, 7});
  file.put(times, hours);
  file.put(lats, rows);
  file.put(lons, columns);
  file.put(t2m, values);
}

TEST_F(InitTest, TakesAMemberOfAnEnsembleOrAll) {
  write_ensemble(folder_ / "ensemble.nc");
  const std::string data = "--data " + quoted(folder_ / "ensemble.nc"),
                    init = "init --output " + quoted(folder_ / "first.json") + " ";
  expect_error(run(1, init + data), 3, "data.member (of init: --member) says which one is taken");
  expect_error(run(1, init + data + " --member some"), 2, "--member some must be the number of a member");
  expect_error(run(1, init + data + " --member 5"), 3, "has the members 3, 4, 7");
  expect_runs(data + " --member 4", "1");
  expect_text({R"("member": 4)"});
  expect_runs(data + " --member all", "0.3");
  expect_text({R"("member": "all")", "of the ensemble: 3, 4, 7"});
  write_fields(folder_ / "fields.nc");
  fs::remove(folder_ / "first.json");
  expect_error(run(1, init + "--data " + quoted(folder_ / "fields.nc") + " --member 4"), 2,
               "--member counts only for ensembles, and t2m in ");
  const std::string volume = testing::source_dir() + "/tests/io/fixtures/images/volume.h5";
  expect_error(run(1, init + "--member 4 --data " + quoted(volume)), 2, "--member counts only for forecasts");
}

TEST_F(InitTest, RefusesWhatItCannotWrite) {
  expect_error(run(1, "init --data " + quoted(folder_ / "none*.nc")), 3, "none*.nc");
  folder_.write("first.json", "{}");
  const std::string fixture = quoted(testing::source_dir() + "/tests/io/fixtures/images/volume.h5");
  expect_error(run(1, "init --data " + fixture + " --output " + quoted(folder_ / "first.json")), 2,
               "is there already");
  const std::string volume = quoted(testing::source_dir() + "/tests/io/fixtures/images/volume.nii");
  expect_error(
      run(1, "init --data " + volume + " --task forecast --output " + quoted(folder_ / "other.json")), 3,
      "volume.nii");
  EXPECT_EQ(text(), "{}");
  // Fields of latitude, longitude and time are no images, whatever their times are.
  write_fields(folder_ / "months.nc", false, 40, "months since 2020-01-01");
  expect_error(
      run(1, "init --data " + quoted(folder_ / "months.nc") + " --output " + quoted(folder_ / "other.json")),
      3, "months since 2020-01-01");
}

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

TEST_F(InitTest, LooksAtTheWholeGridAndAllOfTheDay) {
  {
    FieldFile file(folder_ / "fields.nc", FieldFile::steps(41, 0, 6), 80, 80);
    const auto in_the_corner = [](std::size_t i, std::size_t j) { return i < 66 && j < 66; };
    const auto beyond = [&](double in_it) -> FieldFile::Value {
      return [=](std::size_t t, std::size_t i, std::size_t j) {
        return in_the_corner(i, j) ? in_it : wave(t, i, j);
      };
    };
    file.field("tos", beyond(kMissing));
    file.field("sd", beyond(0));
    // Dark at the first, the middle and the last time.
    file.field("light", [](auto t, auto i, auto j) { return t % 4 == 0 ? 0 : wave(t, i, j); });
    file.field("late", [](auto t, auto i, auto j) { return t == 0 ? kMissing : wave(t, i, j); });
    file.field("lsm", [](auto /*t*/, auto i, auto j) { return wave(0, i, j); });
    file.field("nothing", [](auto...) { return 0.0; });
    file.field("absent", [](auto...) { return kMissing; });
    const int co2 = file.file().variable("co2", NC_DOUBLE, {file.dimension("time")}),
              valid = file.file().variable("valid_time", NC_DOUBLE, {file.dimension("time")});
    file.file().text(valid, "units", "hours since 2020-01-01");
    file.file().put(co2, FieldFile::steps(41, 410, 0.1));
    file.file().put(valid, FieldFile::steps(41, 0, 6));
  }
  expect_runs("--data " + quoted(folder_ / "fields.nc"), "0.3");
  expect_text({R"("variables": ["late", "light", "sd", "tos"])", R"("static": ["lsm"])",
               "the same everywhere: nothing", "series in time, which data.forcing_variables takes: co2\n"});
  expect_warnings(
      {"warning: lsm does not change at the ", "it is taken as constant (data.static); name it in ",
       "warning: nothing does not change at the ", "is the same everywhere: it is left out; ",
       "warning: left out: absent in " + folder_ / "fields.nc" + " is missing everywhere at the "});
}

/// Running sums, ends of ranges, and fields of which nothing is to be said.
TEST_F(InitTest, SaysWhatValuesAreLike) {
  {
    FieldFile file(folder_ / "fields.nc", FieldFile::steps(96, 0, 1));
    const auto rate = [](std::size_t t, std::size_t i, std::size_t j) {
      return (i * j + t) % 97 == 0 ? 0.1 : 1e-3 * std::max(0.0, wave(t, i, j));
    };
    file.field("t2m", [](auto t, auto i, auto j) { return 280 + wave(t, i, j); });
    file.field("rain", rate);
    const auto since = [&](std::size_t first, std::size_t t, std::size_t i, std::size_t j) {
      double sum = 0;
      for (std::size_t hour = first; hour <= t; ++hour) sum += 1 + rate(hour, i, j);
      return sum;
    };
    // As ERA5-Land has it: at midnight that of the whole day. The same since another hour; and as WRF has it.
    file.field("tp", [&](std::size_t t, std::size_t i, std::size_t j) {
      return t == 0 ? 0.0 : since((t + 23) / 24 * 24 - 23, t, i, j);
    });
    file.field("morning", [&](std::size_t t, std::size_t i, std::size_t j) {
      return t < 7 ? since(0, t, i, j) : since((t + 17) / 24 * 24 - 17, t, i, j);
    });
    const int rainnc = file.field("RAINNC", [&](auto t, auto i, auto j) { return since(1, t, i, j); });
    file.file().text(rainnc, "description", "ACCUMULATED TOTAL GRID SCALE PRECIPITATION");
    file.field("growing", [&](auto t, auto i, auto j) { return since(0, t, i, j); });
    file.field("cover", [](auto t, auto i, auto j) { return std::clamp(0.5 + wave(t, i, j), 0.0, 1.0); });
    file.field("humidity",
               [](auto t, auto i, auto j) { return std::clamp(50 + 80 * wave(t, i, j), 0.0, 100.0); });
  }
  expect_runs("--data " + quoted(folder_ / "fields.nc"), "0.2");
  expect_text({R"("deaccumulate": {"RAINNC": "start", "tp": "day"},)",
               "// running sums in the files: a state is the sum over the step that ends then, 1 h or"});
  expect_warnings(
      {"warning: rain is never below 0, and is 0 at 5",
       R"(data.clamp {"rain": [0, null]} keeps predictions there, and data.transforms {"rain": {"type": "log", "epsilon": 0.0001}} makes)",
       "warning: tp is summed up since 00:00 of each day: data.deaccumulate makes a state",
       "warning: RAINNC is summed up and never begins anew: data.deaccumulate makes a state",
       "warning: morning grows from time to time at every point, and then begins anew",
       R"(cover lies between 0 and 1, and often at the ends: data.clamp {"cover": [0, 1]})",
       R"(humidity lies between 0 and 100, and often at the ends: data.clamp {"humidity": [0, 100]})"});
  expect_no_warnings({"t2m ", "growing ", "rain grows", "cover grows", "humidity grows"});
}

/// Daily means, whose sun is not that of noon; a constant field that lacks values; a filled one; years.
TEST_F(InitTest, SaysWhatMeansAndMissingValuesAreNot) {
  const std::string path = folder_ / "fields.nc";
  {
    FieldFile file(path, FieldFile::steps(40, 12, 24));
    file.file().text(file.field("tas", wave), "cell_methods", "time: mean");
    file.field("tos", [](auto t, auto i, auto j) { return j < 3 ? 1e20 : wave(t, i, j); });
    file.constant("orog", [](auto /*t*/, auto i, auto j) { return j < 3 ? kMissing : wave(0, i, j); });
  }
  expect_ok(init("--data " + quoted(path)));
  expect_warnings(
      {"left out: tos in " + path + " has values of 1e+20, which seem to stand for missing ones"});
  const Outcome checked =
      run(1, "check --config " + quoted(folder_ / "first.json") + " --set 'data.forcings=[\"insolation\"]'");
  expect_ok(checked);
  EXPECT_NE(
      checked.err.find("data.forcings has insolation, of the sun at 2020-01-01T12:00 and at that hour of"),
      std::string::npos)
      << checked.err;
  const Outcome trained =
      run(1, "--config " + quoted(folder_ / "first.json") +
                 " --set train.steps=1 --set train.epochs=null --set validation.every=0 --set "
                 "checkpoint.every=0 --set schedule.warmup_steps=0 --set output=" +
                 quoted(folder_ / "run"));
  expect_ok(trained);
  EXPECT_NE(read(folder_ / "run/log.txt").find("missing in data.train: orog 25 % (constant"),
            std::string::npos)
      << trained.out;
  std::filesystem::remove(path);
  {
    std::vector<double> years;  // their middles
    for (int year = 0; year < 30; ++year) years.push_back(24 * (365 * year + (year + 3) / 4 + 182));
    FieldFile file(path, years);
    file.field("tas", wave);
  }
  std::filesystem::remove(folder_ / "first.json");
  expect_ok(init("--data " + quoted(path)));
  expect_warnings(
      {R"("time_step": "month", "input_hours": [0] and "lead_hours": 8640 in data take them for even)"});
  const Outcome even =
      run(1, "check --config " + quoted(folder_ / "first.json") +
                 " --set data.time_step=month --set data.input_hours=[0] --set data.lead_hours=8640"
                 " --set 'data.forcings=[]' --set 'data.train=[\"2020-01-01\",\"2041-12-31\"]'"
                 " --set 'data.valid=[\"2043-01-01\",\"2049-12-31\"]'");
  expect_ok(even);
  EXPECT_NE((even.out + even.err).find("21 samples of training and 6 of validation"), std::string::npos)
      << even.out;
}

TEST_F(InitTest, LeavesOutWhatTrainingWouldRefuse) {
  {
    FieldFile file(folder_ / "fields.nc", FieldFile::steps(40, 0, 12));
    file.coordinate("level", {500, 850}, "hPa");
    file.field("t2m", wave);
    file.constant("orography", wave);
    const auto of_points = [&](const char* name, int dimension) {
      return file.file().variable(name, NC_FLOAT,
                                  {dimension, file.dimension("latitude"), file.dimension("longitude")});
    };
    std::vector<double> basins;
    for (int i = 0; i < 3 * 96; ++i) basins.push_back(i % 5);
    file.file().put(of_points("basin", file.file().dimension("region", 3)), basins);
    of_points("void", file.file().dimension("none", NC_UNLIMITED));
    file.field(
        "t", [](auto t, auto i, auto j) { return t % 2 == 1 ? kMissing : wave(t, i, j); }, "level", 2);
    file.file().text(file.field("odd", wave), "scale_factor", "two");
    file.coordinate("plev", {850, 850}, "hPa");
    file.field(
        "q", [](auto t, auto i, auto j) { return wave(t, i, j); }, "plev", 2);
    // Land is 0 in this one, and no value is in another.
    file.field("sss", [](auto t, auto i, auto j) { return j < 3 ? 0 : 35 + wave(t, i, j); });
    file.coordinate("depth", {1, 2, 3}, "m");
    file.field(
        "e3t", [](auto /*t*/, auto i, auto j) { return wave(0, i, j); }, "depth", 3);
  }
  expect_runs("--data " + quoted(folder_ / "fields.nc"), "0.2");
  expect_text(
      {R"("variables": ["sss", {"name": "t", "levels": [500]}, "t2m"])", R"("static": ["orography"])"});
  const std::string in = " in " + folder_ / "fields.nc";
  expect_warnings({"left out: basin" + in + " cannot be used: its dimension region has 3 entries",
                   "left out: void" + in + " cannot be used: its dimension none has 0 entries",
                   "left out: t" + in + " is missing everywhere at the ", " looked at on the level 850\n",
                   "left out: the coordinate plev of " + folder_ / "fields.nc" + " repeats the level 850",
                   "left out: odd" + in + " cannot be used: its attribute scale_factor is the text \"two\"",
                   "left out: e3t" + in + " does not change at the ",
                   "data.static takes levels that vary in space", "sss is exactly 0 at the same ",
                   R"(say so: data.missing {"sss": 0})"});
}

TEST_F(InitTest, ReadsAnAreaAcrossGreenwichThatIsSorted) {
  {
    testing::NetcdfWriter file(folder_ / "sorted.nc");
    const int time = file.dimension("time", 30), rows = file.dimension("latitude", 8),
              columns = file.dimension("longitude", 12), times = file.variable("time", NC_DOUBLE, {time}),
              latitudes = file.variable("latitude", NC_DOUBLE, {rows}),
              longitudes = file.variable("longitude", NC_DOUBLE, {columns}),
              t2m = file.variable("t2m", NC_FLOAT, {time, rows, columns});
    file.text(times, "units", "hours since 2020-01-01");
    file.text(latitudes, "units", "degrees_north");
    file.text(longitudes, "units", "degrees_east");
    file.put(times, FieldFile::steps(30, 0, 6));
    file.put(latitudes, FieldFile::steps(8, 60, -0.5));
    std::vector<double> degrees = FieldFile::steps(6, 0.01042, 0.5), values;
    for (const double west : FieldFile::steps(6, 357.01042, 0.5)) degrees.push_back(west);
    file.put(longitudes, degrees);
    for (std::size_t t = 0; t < 30; ++t)
      for (std::size_t point = 0; point < 96; ++point) values.push_back(wave(t, point / 12, point % 12));
    file.put(t2m, values);
  }
  expect_runs("--data " + quoted(folder_ / "sorted.nc"), "0.3");
  expect_text({R"("region": {"longitude": [-2.9896, 2.5104]})", " points from 1 file."});
  expect_warnings({"have a gap: data.region reads the area from -2.9896 eastward to 2.5104"});
}

/// Files of one state each.
TEST_F(InitTest, TellsWhatIsConstantInFilesOfOneStateFromWhatHasNoTime) {
  const auto write = [&](int number, bool scalar, bool timed) {
    FieldFile file(folder_ / concat("s", number / 10, number % 10, ".nc"),
                   scalar || !timed ? std::vector<double>() : std::vector<double>{6.0 * number});
    const auto state = [=](auto /*t*/, auto i, auto j) {
      return wave(static_cast<std::size_t>(number), i, j);
    };
    if (scalar && timed) {
      const int time = file.file().variable("time", NC_DOUBLE, {});
      file.file().text(time, "units", "hours since 2020-01-01");
      file.file().put(time, std::vector<double>{6.0 * number});
    }
    file.constant("orog", [](auto /*t*/, auto i, auto j) { return wave(0, i, j); });
    if (scalar || !timed) {
      file.constant("t2m", state);
    } else {
      file.field("t2m", state);
      file.constant("skt", state);
    }
  };
  const std::string data = "--data " + quoted(folder_ / "s*.nc");
  // The last ones have a dimension of times, with which orography has none.
  for (int number = 0; number < 24; ++number) write(number, number < 12, true);
  expect_ok(init(data));
  expect_text({R"("variables": ["t2m"])", R"("static": ["orog"])"});
  expect_warnings(
      {"left out: skt in " + folder_ / "s12.nc" + " has no time, and other values in " + folder_ / "s23.nc"});
  for (int number = 0; number < 24; ++number) write(number, true, number != 11);
  expect_error(init(data), 3, "t2m in " + folder_ / "s11.nc" + " has no time, and it changes (");
}

/// CMIP's ocean: rows and columns without coordinates, latitudes and longitudes of points and of their cells'
/// corners.
TEST_F(InitTest, LeavesOutTheLimitsOfCells) {
  const auto write = [&](const std::string& file_name, bool hole, bool areas = false) {
    testing::NetcdfWriter file(folder_ / file_name);
    const int time = file.dimension("time", 40), j = file.dimension("j", 8), i = file.dimension("i", 12),
              corner = file.dimension("vertices", 4), times = file.variable("time", NC_DOUBLE, {time});
    file.text(times, "units", "hours since 2020-01-01");
    file.put(times, FieldFile::steps(40, 0, 12));
    for (const auto& [name, units] :
         {std::pair{"latitude"s, "degrees_north"s}, std::pair{"longitude"s, "degrees_east"s}}) {
      const int points = file.variable(name, NC_DOUBLE, {j, i}),
                corners = file.variable("vertices_" + name, NC_DOUBLE, {j, i, corner});
      file.text(points, "units", units);
      file.text(points, "bounds", "vertices_" + name);
      std::vector<double> degrees = FieldFile::steps(96, 10, 0.25);
      if (hole) degrees[30] = kMissing;
      file.put(points, degrees);
      file.put(corners, FieldFile::steps(4 * 96, 10, 0.0625));
    }
    std::vector<double> values;
    for (std::size_t t = 0; t < 40; ++t)
      for (std::size_t point = 0; point < 96; ++point) values.push_back(wave(t, point / 12, point % 12));
    file.put(file.variable("tos", NC_FLOAT, {time, j, i}), values);
    if (areas) file.put(file.variable("areacello", NC_FLOAT, {j, i}), FieldFile::steps(96, 1e9, 1e7));
  };
  write("ocean.nc", false);
  expect_runs("--data " + quoted(folder_ / "ocean.nc"), "0.2");
  expect_text({R"("variables": ["tos"])", R"("forcings": ["latitude", "longitude")"});
  EXPECT_EQ(text().find("static"), std::string::npos) << text();
  expect_text({R"("area_weighted": false)"});
  EXPECT_EQ(text().find(R"("cell_area": "areacello")"), std::string::npos) << text();
  write("areas.nc", false, true);
  expect_runs("--data " + quoted(folder_ / "areas.nc"), "0.2");
  expect_text({R"("cell_area": "areacello")", R"("area_weighted": true)"});
  // Land may have no place.
  write("hole.nc", true);
  expect_runs("--data " + quoted(folder_ / "hole.nc"), "0.2");
  expect_warnings({"without the forcings latitude and longitude: "});
  EXPECT_EQ(text().find(R"("latitude", "longitude")"), std::string::npos) << text();
}

/// As of CMIP: the sun's radiation is given, areas are no input.
TEST_F(InitTest, KnowsTheSunAndAreasByTheirStandardNames) {
  {
    FieldFile fields(folder_ / "fields.nc", FieldFile::steps(40, 0, 12));
    const auto sun = [](std::size_t time, std::size_t row, std::size_t column) {
      return 300 + 100 * wave(time, row, column);
    };
    fields.field("tas", wave);
    const int rsdt = fields.field("rsdt", sun);
    fields.file().text(rsdt, "standard_name", "toa_incoming_shortwave_flux");
    fields.constant("orog", [](std::size_t, std::size_t row, std::size_t column) {
      return static_cast<double>(row * column);
    });
    const int area = fields.constant("cells", [](std::size_t, std::size_t row, std::size_t) {
      return 1e9 + 1e7 * static_cast<double>(row);
    });
    fields.file().text(area, "standard_name", "cell_area");
    fields.file().text(area, "units", "m2");
  }
  expect_runs("--data " + quoted(folder_ / "fields.nc"), "0.2");
  expect_text({R"("variables": ["tas"])", R"("forcing_variables": ["rsdt"])", R"("static": ["orog"])",
               R"("cell_area": "cells")"});
  EXPECT_EQ(text().find("forcing_times"), std::string::npos) << text();
  expect_warnings({"warning: rsdt is the sun's radiation at the top of the atmosphere"});
}

// Of files on two grids that of most fields and times counts, whatever names come first.
TEST_F(InitTest, TakesTheGridOfWhatIsPredicted) {
  {
    FieldFile file(folder_ / "many.nc", FieldFile::steps(120, 0, 6));
    file.field("t2m", wave);
    file.field("z", wave);
  }
  {
    FieldFile file(folder_ / "few.nc", FieldFile::steps(12, 0, 6), 9, 15);
    file.field("aaa", wave);
  }
  expect_runs("--data " + quoted(folder_ / "few.nc") + " " + quoted(folder_ / "many.nc"), "0.2");
  expect_text({R"("variables": ["t2m", "z"])"});
  expect_warnings({"left out: aaa"});
}

TEST_F(InitTest, JoinsOneVariableUnderTwoNames) {
  FieldFile(folder_ / "2020a.nc", FieldFile::steps(20, 0, 6)).field("t2m", wave);
  FieldFile(folder_ / "2020b.nc", FieldFile::steps(20, 120, 6)).field("2t", wave);
  expect_runs("--data " + quoted(folder_ / "2020*.nc"), "0.2");
  expect_text({R"("variables": ["t2m"])", "the files hold 2020-01-01T00:00 to 2020-01-10T18:00"});
  expect_warnings({"warning: 2t and t2m are one variable by their usual names"});
}

TEST_F(InitTest, SaysWhyFieldsAreNone) {
  // A codec that is not read.
  const fs::path store = folder_ / "codec.zarr";
  fs::copy(testing::source_dir() + "/tests/io/fixtures/xarray.zarr", store, fs::copy_options::recursive);
  for (const char* name : {"zarr.json", "t2m/zarr.json"}) {
    std::string metadata = read(store / name);
    for (std::size_t at = 0; (at = metadata.find("\"zstd\"", at)) != std::string::npos;)
      metadata.replace(at, 6, "\"pcodec\"");
    folder_.write("codec.zarr/"s + name, metadata);
  }
  expect_error(init("--data " + quoted(store)), 3, "pcodec");
  // What cannot be opened is no image.
  { FieldFile(folder_ / "cut.nc", FieldFile::steps(40, 0, 12)).field("t2m", wave); }
  fs::resize_file(folder_ / "cut.nc", fs::file_size(folder_ / "cut.nc") / 2);
  expect_error(init("--data " + quoted(folder_ / "cut.nc")), 3, "cannot read " + folder_ / "cut.nc");
  {
    FieldFile file(folder_ / "long.nc", FieldFile::steps(40, 0, 12));
    file.file().text(file.field("t2m", wave), "units", std::string(5000, 'x'));
  }
  expect_error(init("--data " + quoted(folder_ / "long.nc")), 3, "its attribute units has 5000 entries");
  // One time.
  { FieldFile(folder_ / "one.nc", {0}).field("t2m", wave); }
  expect_error(init("--data " + quoted(folder_ / "one.nc")), 3,
               "t2m in " + folder_ / "one.nc" + " has one time only; forecasts need several");
}

TEST_F(InitTest, SaysWhyFilesLikeForecastsAreTakenAsImages) {
  {
    testing::NetcdfWriter file(folder_ / "rotated.nc");
    const int time = file.dimension("time", 20), rows = file.dimension("rlat", 8),
              columns = file.dimension("rlon", 12),
              tas = file.variable("tas", NC_FLOAT, {time, rows, columns});
    for (const auto& [name, dimension, count] :
         {std::tuple{"rlat", rows, 8}, std::tuple{"rlon", columns, 12}}) {
      const int id = file.variable(name, NC_DOUBLE, {dimension});
      file.text(id, "standard_name", name == "rlat"s ? "grid_latitude" : "grid_longitude");
      file.text(id, "units", "degrees");
      file.put(id, FieldFile::steps(static_cast<std::size_t>(count), 0, 0.5));
    }
    file.put(tas, FieldFile::steps(20 * 96, 0, 0.1));
  }
  { FieldFile(folder_ / "timeless.nc", {}, 30, 40).constant("t2m", wave); }
  for (const auto& [name, reason] :
       {std::pair{
            "rotated.nc",
            "no latitude and longitude are known among its dimensions (time, rlat, rlon); fields have "},
        std::pair{"timeless.nc", " has no times for its dimensions (latitude, longitude); fields have "}}) {
    SCOPED_TRACE(name);
    const std::string data = "--data " + quoted(folder_ / name);
    expect_ok(init(data));
    expect_text({R"("task": "denoise")"});
    expect_warnings({reason, "; so the files are taken as images (--task forecast ends with this reason"});
    expect_error(init(data + " --task forecast"), 3, reason);
  }
  // Images are told nothing of it.
  expect_ok(init("--data " + quoted(testing::source_dir() + "/tests/io/fixtures/images/volume.h5")));
  EXPECT_EQ(warnings_.find("taken as images"), std::string::npos) << warnings_;
}

}  // namespace
}  // namespace jigsaw::e2e
