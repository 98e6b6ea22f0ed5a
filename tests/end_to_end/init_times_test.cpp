// jigsaw-train init: times of fields and of states, and which files belong together.
#include <netcdf.h>

#include "end_to_end/init_test.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

TEST_F(InitTest, MakesWindowsOfTimesThatAreNotEvenlySpaced) {
  const auto write = [&](const std::string& name, const std::vector<double>& hours) {
    FieldFile file(folder_ / name, hours);
    file.field("t2m", wave);
    return "--data " + quoted(folder_ / name);
  };
  // Two years of months, each at its first day.
  std::vector<double> months;
  double day = 0;
  for (const int days :
       {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}) {
    months.push_back(24 * day);
    day += days;
  }
  expect_runs(write("months.nc", months), "1");
  expect_text({R"("time_step": "month")", R"("input_hours": [-720, 0])", R"("lead_hours": 720)"});
  expect_warnings({});
  // One is lost.
  months.erase(months.begin() + 7);
  expect_runs(write("months_gap.nc", months), "1");
  expect_text({R"("time_step": "month")"});
  // As many days each are no months.
  for (const int days : {28, 31}) {
    expect_runs(write("even.nc", FieldFile::steps(60, 0, 24.0 * days)), "0.3");
    expect_text({R"("lead_hours": )" + std::to_string(24 * days)});
    EXPECT_EQ(text().find("time_step"), std::string::npos) << text();
  }
  expect_runs(write("half.nc", FieldFile::steps(120, 0, 0.5)), "0.1");
  expect_text({R"("input_hours": ["-30 min", 0])", R"("lead_hours": "30 min")",
               "the files have a field every 30 min", "// 30 min forecasts on"});
  // A field is lost.
  std::vector<double> hours = FieldFile::steps(40, 0, 6);
  hours.erase(hours.begin() + 20);
  expect_runs(write("gap.nc", hours), "0.3");
  expect_text({R"("input_hours": [-6, 0])", R"("lead_hours": 6)"});
  expect_warnings({" are 6 to 12 h apart, not evenly spaced: 35 of 39 begin a sample"});
  // Scans are late by some seconds.
  std::vector<double> scans = FieldFile::steps(40, 0, 1.0 / 6);
  for (std::size_t i = 0; i < scans.size(); ++i) scans[i] += static_cast<double>(i % 7) / 3600;
  expect_ok(init(write("scans.nc", scans)));
  expect_warnings({R"("time_step": "10 min", "time_tolerance": "10 s" in data take them for even ones)"});
  expect_ok(run(
      1,
      "check --config " + quoted(folder_ / "first.json") +
          R"( --set 'data.time_step="10 min"' --set 'data.time_tolerance="10 s"' --set 'data.input_hours=["-10 min",0]' --set 'data.lead_hours="10 min"')"));
  expect_error(init(write("doubled.nc", {1, 2, 4, 8, 16, 32, 64, 128, 256, 512})), 3,
               "doubled.nc has 10 times that are 1 to 256 h apart");
  expect_error(init(write("short.nc", {0, 6})), 3, "the files hold 2 times");
  EXPECT_FALSE(fs::exists(folder_ / "first.json"));
}

/// Of states on x and y alone.
TEST_F(InitTest, SaysWhereStatesOfSequencesAreNotEvenlySpaced) {
  {
    testing::NetcdfWriter file(folder_ / "radar.nc");
    const int time = file.dimension("time", 10), y = file.dimension("y", 16), x = file.dimension("x", 16);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              rain = file.variable("rain", NC_FLOAT, {time, y, x}),
              quality = file.variable("quality", NC_BYTE, {time, y, x});
    file.text(times, "units", "minutes since 2023-07-01");
    file.text(quality, "flag_values", "0 1");
    file.end();
    file.put(times, {0, 5, 10, 15, 35, 40, 45, 50, 55, 60});
    file.put(rain, std::vector<double>(2560, 1));
    file.put(quality, std::vector<double>(2560, 1));
  }
  expect_ok(init("--data " + quoted(folder_ / "radar.nc")));
  expect_text({R"("variables": ["rain"])", R"("dims": ["time", "height", "width"])"});
  expect_warnings(
      {"radar.nc are 5 to 20 apart by time (minutes since 2023-07-01)", "left out: quality holds flags"});
}

/// Flags say how good values are; files of two channels of a satellite call both by one name.
TEST_F(InitTest, LeavesOutFlagsAndTellsChannelsApart) {
  for (const int band : {8, 13}) {
    FieldFile file(folder_ / ("band_" + std::to_string(band) + ".nc"),
                   FieldFile::steps(40, band == 8 ? 0 : 3, 6));
    const int image = file.field("CMI", wave), flags = file.field("DQF", wave),
              id = file.file().variable("band_id", NC_INT, {});
    file.file().text(image, "coordinates", "band_id");
    file.file().text(flags, "flag_meanings", "good bad");
    file.file().put(id, std::vector<double>{static_cast<double>(band)});
  }
  expect_runs("--data " + quoted(folder_ / "band_8.nc"), "0.2");
  expect_text({R"("variables": ["CMI"])"});
  expect_warnings({"left out: DQF holds flags"});
  EXPECT_EQ(warnings_.find("band_id"), std::string::npos) << warnings_;
  expect_ok(init("--data " + quoted(folder_ / "band_*.nc")));
  expect_warnings({"CMI has band_id 13 in ", "band_13.nc and 8 in ", "all files become one series"});
}

TEST_F(InitTest, TakesWhatSharesTimesAndPrescribesWhatIsGivenSeldom) {
  for (const auto& [name, hours] :
       {std::pair{"t2m"s, FieldFile::steps(40, 0, 6)}, std::pair{"u"s, FieldFile::steps(15, 0, 6)},
        std::pair{"v"s, FieldFile::steps(39, 0, 6)}, std::pair{"sst"s, FieldFile::steps(3, -600, 720)}})
    FieldFile(folder_ / (name + ".nc"), hours).field(name, wave);
  expect_runs("--data " + quoted(folder_ / "*.nc"), "0.2");
  expect_text({R"("variables": ["t2m", "v"])", R"("forcing_variables": ["sst"])",
               R"("forcing_times": "linear")", "other times: u\n",
               "the files hold 2020-01-01T00:00 to 2020-01-10T12:00"});
  expect_warnings({"warning: of the 40 times of t2m those 39 are used that all of data.variables have",
                   "warning: sst has 3 times, and t2m and 1 more variable 39: it is taken as known ahead",
                   "warning: left out: u, which has 15 of the 39 times of t2m and 1 more variable"});
}

}  // namespace
}  // namespace jigsaw::e2e
