// Dates that forecasts start from, of daily means that are stamped with noon.
#include "predict/forecast_choice.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "comm/thread/run_ranks.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace forecast_choice_test {

std::string write_noons(const std::string& path) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", 10), lat = file.dimension("lat", 4), lon = file.dimension("lon", 5);
  const int times = file.variable("time", NC_DOUBLE, {time}), lats = file.variable("lat", NC_DOUBLE, {lat}),
            lons = file.variable("lon", NC_DOUBLE, {lon}), x = file.variable("x", NC_FLOAT, {time, lat, lon});
  file.text(times, "units", "days since 2006-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  std::vector<double> days, values;
  for (int day = 0; day < 10; ++day) days.push_back(day + 0.5);
  for (int i = 0; i < 200; ++i) values.push_back(std::sin(0.7 * i * i));
  file.put(times, days);
  file.put(lats, std::vector<double>{0, 10, 20, 30});
  file.put(lons, std::vector<double>{0, 10, 20, 30, 40});
  file.put(x, values);
  return path;
}

TEST(ForecastChoice, APlainDateIsTheFirstTimeOfItsDay) {
  const testing::TemporaryFolder folder;
  DataOptions options;
  options.files = {write_noons(folder.path() + "/noon.nc")};
  options.variables = {{"x", {}}};
  options.input_times = {0};
  options.lead_time = kDay;
  options.train = {period("2006-01-01", "2006-01-08")};
  run_ranks(1, [&](Communicator& communicator) {
    const Dataset data(options, "", 1, communicator);
    const auto starts = [&](const std::string& text) {
      ForecastOptions forecasts;
      forecasts.starts = {text};
      int first = 0;
      return starts_of(data, forecasts, first);
    };
    for (const char* text : {"2006-01-03", "2006-01-03T12", "2006-01-03T12:00"})
      EXPECT_EQ(starts(text), std::vector<Time>{at("2006-01-03T12:00")}) << text;
    const std::string between = message_of<DataError>([&] { starts("2006-01-03T14:00"); });
    EXPECT_NE(between.find("(the nearest time is 2006-01-03T12:00)"), std::string::npos) << between;
    const std::string beyond = message_of<DataError>([&] { starts("2007-01-03"); });
    EXPECT_NE(beyond.find("(the nearest time is 2006-01-10T12:00)"), std::string::npos) << beyond;
  });
  EXPECT_THROW(require_start_dates({"2006-01-03", "2006-01-32"}), ConfigError);
  require_start_dates({"2006-01-03", "2006-02-30"});  // a day that some calendar has
}

}  // namespace forecast_choice_test
}  // namespace jigsaw
