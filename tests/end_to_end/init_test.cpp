// jigsaw-train init: what it writes for data files runs as it is.
#include <gtest/gtest.h>
#include <netcdf.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "end_to_end/command.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

class InitTest : public ::testing::Test {
 protected:
  void expect_ok(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err; }
  void expect_error(const Outcome& outcome, int code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }
  std::string text() const {
    std::ifstream file(folder_ / "first.json");
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  void expect_text(const std::vector<std::string>& parts) const {
    for (const std::string& part : parts)
      EXPECT_NE(text().find(part), std::string::npos) << part << " in\n" << text();
  }
  /// Writes it, opens all that it names, and trains for a moment.
  void expect_runs(const std::string& arguments, const std::string& steps) {
    fs::remove(folder_ / "first.json");
    expect_ok(run(1, "init --output " + quoted(folder_ / "first.json") + " " + arguments));
    const std::string config = "--config " + quoted(folder_ / "first.json");
    expect_ok(run(2, "check " + config));
    fs::remove_all(folder_ / "run");
    const Outcome trained = run(
        2, config + " --set train.epochs=" + steps +
               " --set validation.every=0 --set checkpoint.every=0 --set output=" + quoted(folder_ / "run"));
    expect_ok(trained);
    EXPECT_TRUE(fs::exists(folder_ / "run/summary.json"));
  }

  TemporaryFolder folder_;
};

TEST_F(InitTest, WritesForecastsThatRun) {
  expect_ok(run(1, "sample-data --output " + quoted(folder_ / "data")));
  for (const char* recipe : {"unet", "vit", "swin", "weathermixer"}) {
    SCOPED_TRACE(recipe);
    expect_runs("--data " + quoted(folder_ / "data/*.nc") + " --from " + recipe, "0.05");
    const bool pads = text().find(R"("padding_mode": ["replicate", "circular"])") != std::string::npos;
    EXPECT_EQ(pads, recipe == "unet"s) << text();
    // 37 × 72 points: 37 are prime, and patches of them padded.
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

/// Images of three groups, of which one is larger.
TEST_F(InitTest, SaysWhichOfSeveralImagesItTakes) {
  {
    testing::NetcdfWriter file(folder_ / "groups.h5");
    for (const char* name : {"left", "middle", "right"}) {
      const int group = file.group(name);
      const std::size_t depth = name == "middle"s ? 12 : 10;
      const int z = file.dimension("z", depth, group), y = file.dimension("y", 9, group),
                x = file.dimension("x", 10, group),
                image = file.variable("image", NC_FLOAT, {z, y, x}, group);
      std::vector<double> values;
      for (std::size_t i = 0; i < depth * 90; ++i) values.push_back(std::sin(0.3 * static_cast<double>(i)));
      file.put(image, values, group);
    }
  }
  const Outcome outcome =
      run(1, "init --output " + quoted(folder_ / "first.json") + " --data " + quoted(folder_ / "groups.h5"));
  expect_ok(outcome);
  EXPECT_NE(
      outcome.err.find("warning: data.variables takes middle/image, the largest of 3 images in " +
                       folder_ / "groups.h5" +
                       "; name another there (left/image, right/image), or \"*/image\" for that of each "
                       "group\n"),
      std::string::npos)
      << outcome.err;
  expect_text({R"("variables": ["middle/image"])"});
}

TEST_F(InitTest, WritesImagesThatRun) {
  const std::string fixtures = testing::source_dir() + "/tests/io/fixtures/images/";
  expect_runs("--data " + quoted(fixtures + "volume.h5"), "1");
  expect_text(
      {R"("task": "denoise")", R"("dims": ["depth", "height", "width"])", R"("train": {"depth": [0, 7]})"});
  expect_runs("--task segment --data " + quoted(fixtures + "pictures.h5"), "1");
  expect_text({R"("task": "map")", R"("dims": ["sample", "height", "width", "channel"])",
               R"("targets": ["masks"])", R"("classes": 2)", "dice_cross_entropy",
               R"("valid": {"sample": [4, 4]})"});
}

TEST_F(InitTest, WritesManyFilesOfOneImageThatRun) {
  const std::string volume = testing::source_dir() + "/tests/io/fixtures/images/volume.nii";
  for (const char* folder : {"images", "targets"}) {
    fs::create_directory(folder_ / folder);
    for (const char* name : {"a", "b", "c", "d", "e"})
      fs::copy_file(volume, folder_ / folder + "/"s + name + ".nii");
  }
  const std::string images = "--data " + quoted(folder_ / "images/*.nii"),
                    targets = " --targets " + quoted(folder_ / "targets/*.nii");
  expect_runs(images, "1");
  expect_text({R"("train": {"sample": [0, 3]})", R"("valid": {"sample": [4, 4]})"});
  expect_runs("--task map " + images + targets, "1");
  expect_text({R"("targets": [{"name": "target", "data_set": "image", "files": ["targets/*.nii"]}])",
               R"("type": "mse")"});
  fs::remove(folder_ / "first.json");
  const std::string init = "init --output " + quoted(folder_ / "first.json") + " ";
  expect_error(run(1, init + "--task segment " + images + targets), 3, "other numbers than labels");
  expect_error(run(1, init + images + targets), 2, "--targets counts only");
  fs::remove(folder_ / "targets/b.nii");
  expect_error(run(1, init + "--task map " + images + targets), 3, "5 files and --targets 4");
}

TEST_F(InitTest, RefusesWhatItCannotWrite) {
  expect_error(run(1, "init --data " + quoted(folder_ / "none*.nc")), 3, "none*.nc");
  folder_.write("first.json", "{}");
  const std::string fixture = quoted(testing::source_dir() + "/tests/io/fixtures/images/volume.h5");
  expect_error(run(1, "init --data " + fixture + " --output " + quoted(folder_ / "first.json")), 2,
               "is there already");
  expect_error(
      run(1, "init --data " + fixture + " --task forecast --output " + quoted(folder_ / "other.json")), 3,
      "volume.h5");
  EXPECT_EQ(text(), "{}");
  // Fields of latitude, longitude and time are no images, whatever their times are.
  write_fields(folder_ / "months.nc", false, 40, "months since 2020-01-01");
  expect_error(
      run(1, "init --data " + quoted(folder_ / "months.nc") + " --output " + quoted(folder_ / "other.json")),
      3, "months since 2020-01-01");
}

}  // namespace
}  // namespace jigsaw::e2e
