// The climatology against WeatherBench 2's own way: years stacked by day of the year, day 366 filled with the
// day before, wrapped around the turn of the year, weights of a triangle of 61 days.
#include "evaluate/climatology.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "array/host_view.h"
#include "base/error.h"
#include "files/netcdf_output.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

/// Number `i` of a piece.
float mean_at(const Climatology& climatology, const DayAndHour& when, std::size_t i) {
  return HostView<const float>(climatology.at(when))[i];
}

constexpr double kMissing = -999;

double state(std::int64_t day, int hour, int point) {
  return 280 + 10 * std::sin(static_cast<double>(day) * 0.0172) + hour + 3 * point +
         std::cos(static_cast<double>(day * 7 + point));
}

class ClimatologyTest : public ::testing::Test {
 protected:
  /// Every 12 hours of 2019 and 2020 on 2 × 3 points, one of which is missing on some days.
  ClimatologyTest() {
    NetcdfOutput file(folder_.path() + "/in.nc");
    using Type = NetcdfOutput::Type;
    std::vector<double> hours;
    std::vector<float> values;
    first_ = at("2019-01-01");
    for (std::int64_t day = 0; day < 731; ++day) {
      for (const int hour : {0, 12}) {
        hours.push_back(static_cast<double>(day * 24 + hour));
        for (int point = 0; point < 6; ++point)
          values.push_back(static_cast<float>(missing(day, point) ? kMissing : state(day, hour, point)));
      }
    }
    const int time = file.add_dimension("time", hours.size()), lat = file.add_dimension("lat", 2),
              lon = file.add_dimension("lon", 3);
    const int times = file.add_variable("time", Type::kDouble, {time}),
              lats = file.add_variable("lat", Type::kDouble, {lat}),
              lons = file.add_variable("lon", Type::kDouble, {lon}),
              t = file.add_variable("t2m", Type::kFloat, {time, lat, lon});
    file.add_text(times, "units", "hours since 2019-01-01");
    file.add_text(lats, "units", "degrees_north");
    file.add_text(lons, "units", "degrees_east");
    file.add_number(t, "missing_value", kMissing);
    file.end_definitions();
    file.write(times, hours);
    file.write(lats, std::vector<double>{10, 20});
    file.write(lons, std::vector<double>{0, 5, 10});
    file.write(t, values);
    file.close();
  }

  static bool missing(std::int64_t day, int point) { return point == 4 && day % 3 != 0; }

  /// [year][day of the year from 1 on], filled and wrapped.
  double expected(int day_of_year, int hour, int point) const {
    double sum = 0, weights = 0;
    for (int offset = -30; offset <= 30; ++offset) {
      const double weight = 1 - std::abs(offset) / 30.0;
      const int wrapped = (day_of_year - 1 + offset + 366) % 366 + 1;
      for (const int year : {2019, 2020}) {
        const int day = year == 2019 ? std::min(wrapped, 365) : wrapped;
        const std::int64_t number = (year == 2020 ? 365 : 0) + day - 1;
        if (missing(number, point)) continue;
        sum += weight * static_cast<float>(state(number, hour, point));
        weights += weight;
      }
    }
    return sum / weights;
  }

  Time first_ = 0;
  testing::TemporaryFolder folder_;
};

TEST_F(ClimatologyTest, IsThatOfWeatherBench2) {
  FileSet files({folder_.path() + "/in.nc"});
  const Channel channel{"t2m", Role::kPrognostic, {"t2m", std::nullopt}, {}, 6};
  files.select(channel.field, true);
  const std::vector<DayAndHour> wanted = {{1, 0},   {1, 12 * kHour}, {60, 0}, {200, 12 * kHour},
                                          {365, 0}, {366, 0}};
  // A piece: the second row.
  const Climatology climatology(files, {channel}, {{0, 1, 0, 0}, {1, 1, 3, 1}},
                                {period("2019-01-01", "2020-12-31")}, wanted);
  for (const DayAndHour& when : wanted) {
    const HostView<const float> found(climatology.at(when));
    ASSERT_EQ(found.size(), 3U);
    for (int column = 0; column < 3; ++column) {
      EXPECT_NEAR(found[static_cast<std::size_t>(column)],
                  expected(when.day, static_cast<int>(when.second / kHour), 3 + column), 1e-4)
          << when.day << " " << column;
    }
  }
}

TEST_F(ClimatologyTest, KnowsNothingOfDaysFarAway) {
  FileSet files({folder_.path() + "/in.nc"});
  const Channel channel{"t2m", Role::kPrognostic, {"t2m", std::nullopt}, {}, 6};
  files.select(channel.field, true);
  const Climatology climatology(files, {channel}, {{0, 0, 0, 0}, {1, 2, 3, 1}},
                                {period("2019-03-01", "2019-03-10")},
                                {{69, 0}, {98, 0}, {99, 0}, {69, 6 * kHour}});
  EXPECT_FALSE(std::isnan(mean_at(climatology, {69, 0}, 0)));
  EXPECT_FALSE(std::isnan(mean_at(climatology, {98, 0}, 0)));
  EXPECT_TRUE(std::isnan(mean_at(climatology, {99, 0}, 0)));
  EXPECT_TRUE(std::isnan(mean_at(climatology, {69, 6 * kHour}, 0)));
}

/// On hour, longitude, dayofyear, latitude, from north to south and half a circle on.
void write_climatology(const std::string& path) {
  NetcdfOutput file(path);
  using Type = NetcdfOutput::Type;
  const int hour = file.add_dimension("hour", 2), lon = file.add_dimension("longitude", 3),
            day = file.add_dimension("dayofyear", 366), lat = file.add_dimension("latitude", 2);
  const int hours = file.add_variable("hour", Type::kDouble, {hour}),
            lons = file.add_variable("longitude", Type::kDouble, {lon}),
            days = file.add_variable("dayofyear", Type::kDouble, {day}),
            lats = file.add_variable("latitude", Type::kDouble, {lat}),
            t = file.add_variable("2m_temperature", Type::kFloat, {hour, lon, day, lat});
  file.end_definitions();
  std::vector<double> numbers(366);
  std::iota(numbers.begin(), numbers.end(), 1.0);
  std::vector<float> values;
  for (const int h : {0, 12}) {
    for (const int x : {370, 365, 360}) {
      for (int d = 1; d <= 366; ++d) {
        for (const int y : {20, 10})
          values.push_back(static_cast<float>(1000 * h + d + y + 0.01 * (x - 360)));
      }
    }
  }
  file.write(hours, std::vector<double>{0, 12});
  file.write(lons, std::vector<double>{370, 365, 360});
  file.write(days, numbers);
  file.write(lats, std::vector<double>{20, 10});
  file.write(t, values);
  file.close();
}

TEST_F(ClimatologyTest, IsReadFromAFile) {
  const std::string path = folder_.path() + "/climatology.nc";
  write_climatology(path);
  FileSet files({folder_.path() + "/in.nc"});
  const Channel channel{"t2m", Role::kPrognostic, {"t2m", std::nullopt}, {}, 6};
  files.select(channel.field, true);
  FileSet there({path}, Climatology::file_selection({}));
  there.take_grid(files);
  there.select(channel.field, false);
  // The second row and the last two columns.
  const Climatology climatology(there, {channel}, {{0, 1, 1, 0}, {1, 1, 2, 1}}, {{1, 0}, {366, 12 * kHour}});
  EXPECT_FLOAT_EQ(mean_at(climatology, {1, 0}, 0), 21.05F);
  EXPECT_FLOAT_EQ(mean_at(climatology, {1, 0}, 1), 21.10F);
  EXPECT_FLOAT_EQ(mean_at(climatology, {366, 12 * kHour}, 0), 12386.05F);
  const std::string said = message_of<DataError>([&] {
    Climatology(there, {channel}, {{0, 0, 0, 0}, {1, 2, 3, 1}}, {{1, 6 * kHour}});
  });
  EXPECT_NE(said.find("has no hour 6; it has 2 from 0 to 12"), std::string::npos) << said;
  FileSet plain({path});
  plain.take_grid(files);
  EXPECT_THROW(plain.select(channel.field, false), DataError);
}

/// Over all members of an ensemble, each as much as the others where it is there.
TEST(ClimatologyOfAnEnsemble, IsOverAllMembers) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/ensemble.nc";
  const auto state_of = [](std::int64_t day, int member, int point) {
    return state(day, 0, point) + 5 * member * member;
  };
  const auto missing = [](std::int64_t day, int member, int point) {
    return point == 1 && member == 2 && day % 4 != 0;
  };
  {
    NetcdfOutput file(path);
    using Type = NetcdfOutput::Type;
    const int member = file.add_dimension("number", 3), time = file.add_dimension("time", 100),
              lat = file.add_dimension("lat", 1), lon = file.add_dimension("lon", 2);
    const int times = file.add_variable("time", Type::kDouble, {time}),
              members = file.add_variable("number", Type::kDouble, {member}),
              lats = file.add_variable("lat", Type::kDouble, {lat}),
              lons = file.add_variable("lon", Type::kDouble, {lon}),
              t = file.add_variable("t2m", Type::kFloat, {time, member, lat, lon});
    file.add_text(times, "units", "days since 2019-01-01");
    file.add_text(lats, "units", "degrees_north");
    file.add_text(lons, "units", "degrees_east");
    file.add_number(t, "missing_value", kMissing);
    file.end_definitions();
    std::vector<double> days(100);
    std::iota(days.begin(), days.end(), 0.0);
    std::vector<float> values;
    for (int day = 0; day < 100; ++day)
      for (const int number : {3, 1, 2})
        for (int point = 0; point < 2; ++point)
          values.push_back(
              static_cast<float>(missing(day, number, point) ? kMissing : state_of(day, number, point)));
    file.write(times, days);
    file.write(members, std::vector<double>{3, 1, 2});
    file.write(lats, std::vector<double>{10});
    file.write(lons, std::vector<double>{0, 5});
    file.write(t, values);
    file.close();
  }
  FileSelection selection;
  selection.member.all = true;
  FileSet files({path}, selection);
  const Channel channel{"t2m", Role::kPrognostic, {"t2m", std::nullopt}, {}, 6};
  files.select(channel.field, true);
  const Climatology climatology(files, {channel}, {{0, 0, 0, 0}, {1, 1, 2, 1}},
                                {period("2019-01-01", "2019-04-10")}, {{50, 0}});
  for (int point = 0; point < 2; ++point) {
    double sum = 0, weights = 0;
    for (int day = 0; day < 100; ++day) {
      const double weight = std::max(0.0, 1 - std::abs(day - 49) / 30.0);
      for (const int member : {1, 2, 3}) {
        if (missing(day, member, point)) continue;
        sum += weight * static_cast<float>(state_of(day, member, point));
        weights += weight;
      }
    }
    EXPECT_NEAR(mean_at(climatology, {50, 0}, static_cast<std::size_t>(point)), sum / weights, 1e-4) << point;
  }
}

TEST(DayOfYear, CountsLeapDays) {
  EXPECT_EQ(day_of_year(at("2019-01-01")), 1);
  EXPECT_EQ(day_of_year(at("2019-12-31T18:00")), 365);
  EXPECT_EQ(day_of_year(at("2020-12-31T18:00")), 366);
  EXPECT_EQ(day_of_year(at("2020-03-01")), 61);
  EXPECT_EQ(day_of_year(at("1965-03-01T23:59")), 60);
  EXPECT_EQ(days_in_year(at("2020-05-05")), 366);
  EXPECT_EQ(days_in_year(at("1900-05-05")), 365);
}

}  // namespace
}  // namespace jigsaw
