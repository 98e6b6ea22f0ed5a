// Times that count from no date, as simulations have them.
#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "fields/file_set.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace undated_times_test {

/// @param scalar  of one time, which no dimension has.
std::string write(const testing::TemporaryFolder& folder, const std::string& name, const std::string& units,
                  const std::vector<double>& numbers, bool scalar = false) {
  const std::string path = folder.path() + "/" + name;
  testing::NetcdfWriter file(path);
  const int lat = file.dimension("lat", 2), lon = file.dimension("lon", 2);
  std::vector<int> of_times, dims = {lat, lon};
  if (!scalar) {
    of_times = {file.dimension("time", numbers.size())};
    dims.insert(dims.begin(), of_times[0]);
  }
  const int times = file.variable("time", NC_DOUBLE, of_times), lats = file.variable("lat", NC_DOUBLE, {lat}),
            lons = file.variable("lon", NC_DOUBLE, {lon}), u = file.variable("u", NC_DOUBLE, dims);
  file.text(times, "units", units);
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  file.put(times, numbers);
  file.put(lats, std::vector<double>{10, 20});
  file.put(lons, std::vector<double>{0, 5});
  std::vector<double> values;
  for (const double number : numbers) values.insert(values.end(), {number, 1, 2, -number});
  file.put(u, values);
  return path;
}

DataOptions options_of(const std::string& file) {
  DataOptions options;
  options.files = {file};
  options.variables = {{"u", {}}};
  options.predict = Predict::kState;
  options.train = {period("1970-01-01", "1970-01-01")};
  options.lead_time = kHour;
  return options;
}

TEST(UndatedTimes, CountFromTheirOwnBeginning) {
  const testing::TemporaryFolder folder;
  for (const auto& [units, one] :
       {std::pair{"seconds", 3600.0}, std::pair{"h", 1.0}, std::pair{"Minutes", 60.0}}) {
    FileSet files({write(folder, "a.nc", units, {0, one, 2 * one, 5 * one})});
    files.select({"u", {}}, true);
    EXPECT_EQ(files.times({"u", {}}), (std::vector<Time>{0, kHour, 2 * kHour, 5 * kHour}));
    EXPECT_EQ(files.calendar(), Calendar::kNone);
  }
  FileSet single({write(folder, "d.nc", "s", {0}, true), write(folder, "e.nc", "s", {60}, true)});
  single.select({"u", {}}, true);
  EXPECT_EQ(single.times({"u", {}}), (std::vector<Time>{0, 60}));
  // Windows are of states that are there: none across the gap.
  run_ranks(1, [&](Communicator& world) {
    const Dataset data(options_of("a.nc"), folder.path(), 1, world);
    EXPECT_EQ(data.train_windows(), (std::vector<Time>{0, kHour}));
  });
}

TEST(UndatedTimes, WhatNeedsDatesIsOneSentence) {
  const testing::TemporaryFolder folder;
  const std::string path = write(folder, "a.nc", "seconds", {0, 3600, 7200});
  const auto refusal = [&](const DataOptions& options) {
    return message_of<AgreedError>(
        [&] { run_ranks(1, [&](Communicator& world) { Dataset(options, folder.path(), 1, world); }); });
  };
  const std::string why =
      concat(" needs dates, and the times of ", path,
             " count from none; give them units such as \"seconds since 2000-01-01\", or do "
             "without");
  DataOptions hours = options_of("a.nc");
  hours.forcings = {ForcingKind::kLatitude};
  run_ranks(1, [&](Communicator& world) { EXPECT_NO_THROW(Dataset(hours, folder.path(), 1, world)); });
  hours.forcings = {ForcingKind::kTimeOfDay};
  EXPECT_EQ(refusal(hours), "sin_time_of_day" + why);
  DataOptions cycle = options_of("a.nc");
  cycle.forcing_variables = {{"u2", {}, "u", {}, Between::kCycle}};
  EXPECT_EQ(refusal(cycle), "u2, which is repeated every year," + why);
  DataOptions months = options_of("a.nc");
  months.time_step.month = true;
  EXPECT_EQ(refusal(months), "data.time_step \"month\"" + why);
  write(folder, "b.nc", "seconds since 1970-01-01", {10800, 14400});
  const std::string both = refusal(options_of("*.nc"));
  EXPECT_NE(both.find("b.nc counts time in the calendar standard, and " + path + " in none"),
            std::string::npos)
      << both;
}

}  // namespace undated_times_test
}  // namespace jigsaw
