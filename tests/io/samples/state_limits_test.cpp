// Files that say another unit than they are in, as their values show.
#include "samples/state_limits.h"

#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace state_limits_test {

/// t2m in K as they say; `less` than that, but for one point of each row.
void write_days(const std::string& path, const std::vector<double>& days, double less, bool but_one = false) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", days.size()), lat = file.dimension("lat", 6),
            lon = file.dimension("lon", 4);
  const int times = file.variable("time", NC_DOUBLE, {time}), lats = file.variable("lat", NC_DOUBLE, {lat}),
            lons = file.variable("lon", NC_DOUBLE, {lon}),
            t = file.variable("t2m", NC_DOUBLE, {time, lat, lon});
  file.text(times, "units", "days since 2020-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.text(t, "units", "K");
  file.end();
  file.put(times, days);
  file.put(lats, std::vector<double>{10, 20, 30, 40, 50, 60});
  file.put(lons, std::vector<double>{0, 5, 10, 15});
  std::vector<double> values;
  for (const double day : days)
    for (int i = 0; i < 24; ++i)
      values.push_back(270 + 3 * (i % 7) + day - (but_one && i % 4 == 3 ? 0 : less));
  file.put(t, values);
}

TEST(UnitWarnings, NameTheFileThatLiesBeyondAllTraining) {
  const testing::TemporaryFolder folder;
  write_days(folder.path() + "/a.nc", {0, 1, 2, 3}, 0);
  write_days(folder.path() + "/b.nc", {4, 5}, 0);
  write_days(folder.path() + "/c.nc", {6, 7}, 273.15);
  write_days(folder.path() + "/d.nc", {8}, 273.15, true);
  DataOptions options;
  options.files = {"*.nc"};
  options.variables = {{"t2m", {}}};
  options.predict = Predict::kState;
  options.train = {period("2020-01-01", "2020-01-04")};
  options.valid = {period("2020-01-05", "2020-01-09")};
  options.lead_time = kDay;
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](Communicator& world) {
      Dataset data(options, folder.path(), 1, world);
      const auto warnings = [&](const char* first, const char* last) {
        return unit_warnings(data, {period(first, last)}, world);
      };
      EXPECT_EQ(warnings("2020-01-01", "2020-01-06"), std::vector<std::string>());
      EXPECT_EQ(warnings("2020-01-09", "2020-01-09"), std::vector<std::string>()) << "some values are right";
      const std::vector<std::string> lies = warnings("2020-01-05", "2020-01-09");
      ASSERT_EQ(lies.size(), world.rank() == 0 ? 1U : 0U);
      if (world.rank() > 0) return;
      EXPECT_TRUE(
          lies[0].starts_with(concat("t2m in ", folder.path(), "/c.nc (at 2020-01-07T00:00) lies below ")))
          << lies[0];
      EXPECT_TRUE(
          lies[0].ends_with(" K, where data.train holds 270 to 291 K; is it in another unit than it says?"))
          << lies[0];
    });
  }
}

}  // namespace state_limits_test
}  // namespace jigsaw
