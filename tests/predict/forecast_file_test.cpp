// Files of forecasts as NetCDF sees them.
#include "predict/forecast_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "files/io_lock.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/error_of.h"
#include "support/netcdf_reader.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

/// Before any file is open, whichever test comes first.
[[maybe_unused]] const bool kLeftAlone = (leave_failed_files_alone(), true);

using testing::NetcdfReader;
using testing::TemporaryFolder;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A file of t2m and t on two levels, whose values tell their place.
class ForecastFileTest : public ::testing::Test {
 protected:
  ForecastFileTest() : files_({fixture("packed.nc"), fixture("levels_1.nc"), fixture("levels_2.nc")}) {
    for (const Field& field : contents_.fields) files_.select(field, true);
  }

  static float value(std::size_t field, std::int64_t start, std::int64_t lead, std::int64_t point) {
    return static_cast<float>(1000 * field + 100 * static_cast<std::size_t>(start)) +
           static_cast<float>(10 * lead) + 0.01F * static_cast<float>(point);
  }

  /// In two pieces of rows.
  void write(const std::string& path) {
    OutputFile output(path, false);
    ForecastFile file(files_, contents_, output, 2);
    const std::int64_t rows = files_.grid().shape()[0], columns = files_.grid().shape()[1];
    for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, rows - 2}}) {
      for (std::size_t field = 0; field < contents_.fields.size(); ++field) {
        for (std::int64_t start = 0; start < 2; ++start) {
          for (std::int64_t lead = 0; lead < 3; ++lead) {
            std::vector<float> values;
            for (std::int64_t i = first * columns; i < (first + count) * columns; ++i)
              values.push_back(i == 5 ? kNaN : value(field, start, lead, i));
            file.write(field, start, lead, {{first, 0}, {count, columns}}, values);
          }
        }
      }
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_GT(file.finish(), 0);
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_FALSE(std::filesystem::exists(private_name(path)));
  }

  ForecastContents contents_{{at("2020-02-27T06:00"), at("2020-02-29")},
                             6 * kHour,
                             {0, 3},
                             // Against the order of the file's levels.
                             {{"t", 500}, {"t2m", std::nullopt}, {"t", 850}},
                             false,
                             {{"title", "a test"}}};
  FileSet files_;
  TemporaryFolder folder_;
};

TEST_F(ForecastFileTest, HoldsEveryValueAtItsPlace) {
  const std::string path = folder_.path() + "/out.nc";
  write(path);
  const NetcdfReader file(path);
  const std::int64_t points = files_.grid().shape().count();
  const auto check = [&](const std::vector<double>& found, std::size_t field, std::int64_t level,
                         std::int64_t levels) {
    for (std::int64_t start = 0; start < 2; ++start) {
      for (std::int64_t lead = 0; lead < 3; ++lead) {
        for (std::int64_t i = 0; i < points; ++i) {
          const std::int64_t index = ((start * 3 + lead) * levels + level) * points + i;
          const float wanted = i == 5 ? NC_FILL_FLOAT : value(field, start, lead, i);
          ASSERT_EQ(found[static_cast<std::size_t>(index)], wanted) << field << " " << start << " " << lead;
        }
      }
    }
  };
  check(file.values("t2m"), 1, 0, 1);
  // Levels as the input has them: 850, then 500.
  check(file.values("t"), 2, 0, 2);
  check(file.values("t"), 0, 1, 2);
  EXPECT_EQ(file.values("pressure_level"), (std::vector<double>{850, 500}));
}

TEST_F(ForecastFileTest, SaysWhatCfAsksFor) {
  const std::string path = folder_.path() + "/out.nc";
  write(path);
  const NetcdfReader file(path), input(fixture("packed.nc"));
  EXPECT_EQ(file.text("", "Conventions"), "CF-1.10");
  EXPECT_EQ(file.text("", "title"), "a test");
  EXPECT_EQ(file.text("", "coordinates"), "");
  for (const char* name : {"t2m", "t"}) EXPECT_EQ(file.text(name, "coordinates"), "valid_time") << name;
  EXPECT_EQ(file.dimensions("t2m"), (std::vector<std::string>{"time", "lead_time", "latitude", "longitude"}));
  EXPECT_EQ(file.dimensions("t"),
            (std::vector<std::string>{"time", "lead_time", "pressure_level", "latitude", "longitude"}));
  for (const char* name : {"latitude", "longitude"}) {
    EXPECT_EQ(file.values(name), input.values(name));
    EXPECT_EQ(file.text(name, "units"), input.text(name, "units"));
  }
  EXPECT_EQ(file.text("t2m", "units"), input.text("t2m", "units"));
  EXPECT_EQ(file.text("pressure_level", "units"), "hPa");
  EXPECT_EQ(file.number("t2m", "_FillValue"), NC_FILL_FLOAT);
  EXPECT_EQ(file.text("time", "standard_name"), "forecast_reference_time");
  EXPECT_EQ(file.text("time", "units"), "hours since 1970-01-01 00:00:00");
  EXPECT_EQ(file.values("time"), (std::vector<double>{439662, 439704}));
  EXPECT_EQ(file.text("lead_time", "standard_name"), "forecast_period");
  EXPECT_EQ(file.text("lead_time", "units"), "hours");
  EXPECT_EQ(file.values("lead_time"), (std::vector<double>{6, 12, 18}));
  EXPECT_EQ(file.text("valid_time", "standard_name"), "time");
  EXPECT_EQ(file.values("valid_time"), (std::vector<double>{439668, 439674, 439680, 439710, 439716, 439722}));
  int storage = 0, shuffle = 0, deflate = 0, level = 0;
  std::vector<std::size_t> chunks(4);
  ASSERT_EQ(nc_inq_var_chunking(file.id(), file.variable("t2m"), &storage, chunks.data()), NC_NOERR);
  ASSERT_EQ(nc_inq_var_deflate(file.id(), file.variable("t2m"), &shuffle, &deflate, &level), NC_NOERR);
  EXPECT_EQ(storage, NC_CHUNKED);
  EXPECT_EQ(deflate, 1);
  EXPECT_EQ(chunks[0] * chunks[1], 1U);
}

/// Every second step of those behind the third one, as far as they came.
TEST_F(ForecastFileTest, MayHoldSomeOfTheStepsAndEndEarly) {
  contents_.leads.first = 3;
  contents_.leads.last = 10;
  contents_.leads.every = 2;
  const std::string path = folder_.path() + "/out.nc";
  OutputFile output(path, false);
  ForecastFile file(files_, contents_, output, 1);
  const Box all = Box::whole(files_.grid().shape());
  for (std::int64_t lead = 0; lead < 3; ++lead) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < all.extent.count(); ++i) values.push_back(value(1, 0, lead, i));
    file.write(1, 0, lead, all, values);
  }
  file.add_comment("ended early");
  file.close(1, 3);
  output.commit();
  const NetcdfReader found(path);
  EXPECT_EQ(found.text("", "comment"), "ended early");
  EXPECT_EQ(found.values("lead_time"), (std::vector<double>{24, 36, 48}));
  EXPECT_EQ(found.values("time"), (std::vector<double>{439662}));
  EXPECT_EQ(found.values("valid_time"), (std::vector<double>{439686, 439698, 439710}));
  EXPECT_FALSE(found.has("lead_time_bnds"));
  const std::vector<double> values = found.values("t2m");
  ASSERT_EQ(std::ssize(values), 3 * all.extent.count());
  for (std::int64_t i = 0; i < std::ssize(values); ++i)
    ASSERT_EQ(values[static_cast<std::size_t>(i)],
              value(1, 0, i / all.extent.count(), i % all.extent.count()));
}

TEST_F(ForecastFileTest, MeansSayFromWhereToWhereTheyAre) {
  contents_.leads.last = 6;
  contents_.leads.every = 2;
  contents_.leads.means = true;
  const std::string path = folder_.path() + "/out.nc";
  write(path);
  const NetcdfReader file(path);
  EXPECT_EQ(file.values("lead_time"), (std::vector<double>{12, 24, 36}));
  EXPECT_EQ(file.text("lead_time", "bounds"), "lead_time_bnds");
  EXPECT_EQ(file.values("lead_time_bnds"), (std::vector<double>{0, 12, 12, 24, 24, 36}));
  EXPECT_EQ(file.text("valid_time", "bounds"), "valid_time_bnds");
  EXPECT_EQ(file.dimensions("valid_time_bnds"), (std::vector<std::string>{"time", "lead_time", "bounds"}));
  EXPECT_EQ(file.values("valid_time_bnds"),
            (std::vector<double>{439662, 439674, 439674, 439686, 439686, 439698, 439704, 439716, 439716,
                                 439728, 439728, 439740}));
  EXPECT_EQ(file.text("t2m", "cell_methods"), "lead_time: mean (interval: 6 hours)");
}

/// From 27 February of a leap year on: 28 and 29 February, 1 March, of which the last reaches beyond a step.
TEST_F(ForecastFileTest, MeansOverTheCalendarReachFromItsPeriodsEndToEnd) {
  contents_.starts.resize(1);
  contents_.leads = {0,
                     14,
                     1,
                     true,
                     "day",
                     {{3, 6, {18 * kHour, 42 * kHour}},
                      {7, 10, {42 * kHour, 66 * kHour}},
                      {11, 14, {66 * kHour, 90 * kHour}}}};
  const std::string path = folder_.path() + "/out.nc";
  const auto write_leads = [&] {
    OutputFile output(path, true);
    ForecastFile file(files_, contents_, output, 1);
    const Box all = Box::whole(files_.grid().shape());
    for (std::int64_t lead = 0; lead < 2; ++lead) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < all.extent.count(); ++i) values.push_back(value(2, 0, lead, i));
      file.write(2, 0, lead, all, values);
    }
    file.close(1, 2);
    output.commit();
  };
  write_leads();
  {
    const NetcdfReader file(path);
    EXPECT_EQ(file.values("lead_time"), (std::vector<double>{36, 60}));
    EXPECT_EQ(file.values("lead_time_bnds"), (std::vector<double>{18, 42, 42, 66}));
    EXPECT_EQ(file.values("valid_time"), (std::vector<double>{439698, 439722}));
    EXPECT_EQ(file.values("valid_time_bnds"), (std::vector<double>{439680, 439704, 439704, 439728}));
    EXPECT_EQ(file.text("t", "cell_methods"), "lead_time: mean (interval: 6 hours)");
  }
  contents_.time_series = true;
  write_leads();
  const NetcdfReader file(path);
  EXPECT_EQ(file.dimensions("t"),
            (std::vector<std::string>{"time", "pressure_level", "latitude", "longitude"}));
  EXPECT_EQ(file.dimensions("time_bnds"), (std::vector<std::string>{"time", "bounds"}));
  EXPECT_EQ(file.values("time"), (std::vector<double>{439692, 439716})) << "their middle";
  EXPECT_EQ(file.values("time_bnds"), (std::vector<double>{439680, 439704, 439704, 439728}));
  EXPECT_EQ(file.text("time", "bounds"), "time_bnds");
  EXPECT_EQ(file.text("time", "standard_name"), "time");
  EXPECT_EQ(file.text("time", "axis"), "T");
  EXPECT_EQ(file.text("time", "units"), "hours since 1970-01-01 00:00:00");
  EXPECT_EQ(file.text("time", "calendar"), "proleptic_gregorian");
  EXPECT_EQ(file.text("t", "cell_methods"), "time: mean (interval: 6 hours)");
  EXPECT_EQ(file.text("t", "coordinates"), "forecast_reference_time");
  EXPECT_EQ(file.dimensions("forecast_reference_time"), std::vector<std::string>());
  EXPECT_EQ(file.values("forecast_reference_time"), std::vector<double>{439662});
  EXPECT_FALSE(file.has("lead_time") || file.has("valid_time"));
  int growing = 0, dimension = 0;
  ASSERT_EQ(nc_inq_unlimdim(file.id(), &growing), NC_NOERR);
  ASSERT_EQ(nc_inq_dimid(file.id(), "time", &dimension), NC_NOERR);
  EXPECT_EQ(growing, dimension);
  const std::vector<double> values = file.values("t");
  const std::int64_t points = files_.grid().shape().count();
  ASSERT_EQ(std::ssize(values), 4 * points);
  for (std::int64_t lead = 0; lead < 2; ++lead)
    for (std::int64_t i = 0; i < points; ++i)  // 850 stands first
      ASSERT_EQ(values[static_cast<std::size_t>(2 * lead * points + i)], value(2, 0, lead, i));
}

/// Steps have the time that they are of, and no bounds; days begin within an hour, which leads are whole in.
TEST_F(ForecastFileTest, ASeriesOfStepsHasTheirTimes) {
  contents_.starts.resize(1);
  contents_.leads = {3, 10, 2};
  contents_.time_series = true;
  contents_.members = 2;
  const std::string path = folder_.path() + "/out.nc";
  OutputFile output(path, false);
  const Box all = Box::whole(files_.grid().shape());
  const std::int64_t points = all.extent.count();
  {
    ForecastFile file(files_, contents_, output, 1);
    for (std::int64_t lead = 0; lead < 4; ++lead) {
      for (std::int64_t member = 0; member < 2; ++member) {
        std::vector<float> values;
        for (std::int64_t i = 0; i < points; ++i) values.push_back(value(1, member, lead, i));
        file.write(1, 0, lead, all, values, member);
      }
    }
    file.finish();
  }
  const NetcdfReader found(path);
  EXPECT_EQ(found.values("time"), (std::vector<double>{439686, 439698, 439710, 439722}));
  EXPECT_FALSE(found.has("time_bnds"));
  EXPECT_EQ(found.text("t2m", "cell_methods"), "");
  EXPECT_EQ(found.dimensions("t2m"), (std::vector<std::string>{"time", "number", "latitude", "longitude"}));
  const std::vector<double> values = found.values("t2m");
  ASSERT_EQ(std::ssize(values), 8 * points);
  for (std::int64_t i = 0; i < 8 * points; ++i) {
    ASSERT_EQ(values[static_cast<std::size_t>(i)], value(1, i / points % 2, i / points / 2, i % points));
  }
  contents_.time_series = false;
  contents_.leads = {0, 5, 1, true, "day", {{2, 5, {5 * kHour + 1800, 29 * kHour + 1800}}}};
  OutputFile other(folder_.path() + "/other.nc", false);
  {
    ForecastFile file(files_, contents_, other, 1);
    file.finish();
  }
  const NetcdfReader halves(folder_.path() + "/other.nc");
  EXPECT_EQ(halves.text("lead_time", "units"), "minutes");
  EXPECT_EQ(halves.values("lead_time"), std::vector<double>{1800});
  EXPECT_EQ(halves.values("lead_time_bnds"), (std::vector<double>{330, 1770}));
  EXPECT_EQ(halves.text("t", "cell_methods"), "lead_time: mean (interval: 360 minutes)");
}

TEST_F(ForecastFileTest, LeadsWithinAnHourAreMinutesOrSeconds) {
  const auto expect = [&](Time lead, const std::string& units, const std::vector<double>& leads) {
    contents_.lead_time = lead;
    const std::string path = concat(folder_.path(), "/", lead, ".nc");
    write(path);
    const NetcdfReader file(path);
    EXPECT_EQ(file.text("lead_time", "units"), units);
    EXPECT_EQ(file.values("lead_time"), leads);
    EXPECT_EQ(file.text("time", "units"), "seconds since 1970-01-01 00:00:00");
    const auto first = static_cast<double>(at("2020-02-27T06:00"));
    EXPECT_EQ(file.values("valid_time")[1], first + 2 * contents_.leads.every * static_cast<double>(lead));
  };
  expect(300, "minutes", {5, 10, 15});
  expect(90, "seconds", {90, 180, 270});
  // Means over two steps each.
  contents_.leads.last = 6;
  contents_.leads.every = 2;
  contents_.leads.means = true;
  const auto expect_means = [&](Time lead, const std::string& interval, const std::vector<double>& bounds) {
    expect(lead, lead % 60 == 0 ? "minutes" : "seconds", {bounds[1], bounds[3], bounds[5]});
    const NetcdfReader file(concat(folder_.path(), "/", lead, ".nc"));
    EXPECT_EQ(file.values("lead_time_bnds"), bounds);
    EXPECT_EQ(file.text("t2m", "cell_methods"), concat("lead_time: mean (interval: ", interval, ")"));
    const double end = file.values("valid_time")[0];
    EXPECT_EQ(file.values("valid_time_bnds")[0], end - 2 * static_cast<double>(lead));
    EXPECT_EQ(file.values("valid_time_bnds")[1], end);
  };
  expect_means(60, "1 minute", {0, 2, 2, 4, 4, 6});
  expect_means(600, "10 minutes", {0, 20, 20, 40, 40, 60});
}

TEST_F(ForecastFileTest, SplitsLevelsIntoVariables) {
  contents_.split_levels = true;
  const std::string path = folder_.path() + "/out.nc";
  write(path);
  const NetcdfReader file(path);
  EXPECT_FALSE(file.has("t"));
  EXPECT_FALSE(file.has("pressure_level"));
  EXPECT_EQ(file.dimensions("t_500").size(), 4U);
  EXPECT_EQ(file.text("t_850", "units"), "K");
  EXPECT_NE(file.text("t_850", "long_name").find("at pressure_level 850 hPa"), std::string::npos)
      << file.text("t_850", "long_name");
  EXPECT_EQ(file.values("t_500")[0], value(0, 0, 0, 0));
  EXPECT_EQ(file.values("t_850")[0], value(2, 0, 0, 0));
}

TEST_F(ForecastFileTest, LeavesNothingBehindThatIsNotWhole) {
  const std::string path = folder_.path() + "/out.nc";
  {
    OutputFile output(path, false);
    const ForecastFile file(files_, contents_, output, 1);
    EXPECT_TRUE(std::filesystem::exists(private_name(path)));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ForecastFileTest, ReplacesOnlyWhatItMay) {
  const std::string path = folder_.path() + "/out.nc";
  testing::put_text(path, "mine");
  EXPECT_THROW(OutputFile(path, false), ConfigError);
  EXPECT_NO_THROW(OutputFile(path, true));
  EXPECT_EQ(testing::text_of(path), "mine");
  EXPECT_THROW(OutputFile("/dev/null", true), ConfigError);
  EXPECT_THROW(OutputFile(folder_.path(), true), ConfigError);
  EXPECT_THROW(OutputFile(folder_.path() + "/no/such/folder.nc", false), ConfigError);
}

TEST_F(ForecastFileTest, WhatAnotherMadeMeanwhileStays) {
  const std::string path = folder_.path() + "/out.nc", own = private_name(path),
                    digits = std::to_string(::getpid());
  {
    OutputFile output(path, false);
    testing::put_text(path, "another's");
    EXPECT_THROW(output.commit(), ConfigError);
    EXPECT_EQ(testing::text_of(path), "another's");
  }
  EXPECT_FALSE(std::filesystem::exists(own));
  // As if the process above this one were writing it.
  const std::string living = own.substr(0, own.size() - digits.size()) + std::to_string(::getppid());
  testing::put_text(living, "under way");
  EXPECT_NE(testing::error_of<ConfigError>([&] {
              OutputFile(path, true);
            }).find("is being written by process " + std::to_string(::getppid())),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(living));
  std::filesystem::remove(living);
  std::filesystem::remove(path);
}

/// A link, or a pipe that would be waited for, of the name under which it is written.
TEST_F(ForecastFileTest, WhatHasItsTemporaryNameIsNotFollowed) {
  const std::string path = folder_.path() + "/out.nc", precious = folder_.path() + "/precious";
  testing::put_text(precious, "kept");
  std::filesystem::create_symlink(precious, private_name(path));
  write(path);
  EXPECT_EQ(testing::text_of(precious), "kept");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(private_name(path).c_str(), 0600), 0);
  write(path);
  std::filesystem::remove(path);
  std::filesystem::create_directories(private_name(path) + "/stays");
  EXPECT_THROW(OutputFile(path, false), ConfigError);
  EXPECT_TRUE(std::filesystem::exists(private_name(path) + "/stays"));
}

TEST_F(ForecastFileTest, AFullDiskIsAnErrorOfItsOwnAndLeavesNothing) {
  const std::string path = folder_.path() + "/out.nc";
  for (const rlim_t bytes : {100, 5000, 12000}) {
    const testing::SmallDisk disk(bytes);
    EXPECT_THROW(
        {
          OutputFile output(path, false);
          ForecastFile file(files_, contents_, output, 1);
          const Box all = Box::whole(files_.grid().shape());
          for (std::size_t field = 0; field < contents_.fields.size(); ++field) {
            for (std::int64_t lead = 0; lead < 3; ++lead) {
              std::vector<float> values(static_cast<std::size_t>(all.extent.count()));
              for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * i));
              file.write(field, 0, lead, all, values);
            }
          }
          file.finish();
        },
        DiskError)
        << bytes;
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << bytes;
  }
}

/// "surface/t" is no name that a NetCDF file takes.
TEST_F(ForecastFileTest, VariablesOfGroupsHaveNamesOfTheirOwn) {
  const std::string input = folder_.path() + "/in.nc", path = folder_.path() + "/out.nc";
  {
    testing::NetcdfWriter file(input);
    const int group = file.group("surface"), time = file.dimension("time", 1),
              latitude = file.dimension("latitude", 2), longitude = file.dimension("longitude", 3);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              latitudes = file.variable("latitude", NC_DOUBLE, {latitude}),
              longitudes = file.variable("longitude", NC_DOUBLE, {longitude});
    file.text(times, "units", "hours since 1970-01-01");
    file.variable("t", NC_FLOAT, {time, latitude, longitude}, group);
    file.variable("surface_t", NC_FLOAT, {time, latitude, longitude});
    file.end();
    file.put(times, std::vector<double>{0});
    file.put(latitudes, std::vector<double>{10, 20});
    file.put(longitudes, std::vector<double>{0, 5, 10});
  }
  FileSet files({input});
  const std::vector<Field> fields = {{"surface/t", {}}, {"surface_t", {}}};
  for (const Field& field : fields) files.select(field, true);
  OutputFile output(path, false);
  ForecastFile file(files, {{at("1970-01-01")}, 6, {}, fields, false, {}}, output, 1);
  for (std::size_t field = 0; field < fields.size(); ++field) {
    std::vector<float> values(6, static_cast<float>(field + 1));
    file.write(field, 0, 0, {{0, 0}, {2, 3}}, values);
  }
  file.finish();
  const NetcdfReader found(path);
  EXPECT_EQ(found.values("surface_t"), std::vector<double>(6, 1));
  EXPECT_EQ(found.values("surface_t_"), std::vector<double>(6, 2));
}

}  // namespace
}  // namespace jigsaw
