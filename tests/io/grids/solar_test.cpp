// The sun's position against PyEphem's (VSOP87), and the forcings that are made of it and of places.
#include "grids/solar.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <numbers>

#include "array/grid.h"
#include "base/text.h"
#include "grids/forcings.h"
#include "io/fixtures.h"
#include "samples/channels.h"

namespace jigsaw {
namespace solar_test {

constexpr double kRadians = std::numbers::pi / 180;

/// Cosine of the sun's zenith angle at a place in degrees, without refraction.
double cos_zenith_angle(const SunPosition& sun, double latitude, double longitude) {
  return std::sin(latitude * kRadians) * std::sin(sun.declination) +
         std::cos(latitude * kRadians) * std::cos(sun.declination) *
             std::cos(sun.greenwich_hour_angle + longitude * kRadians);
}

/// What the sun sends to a horizontal plane on top of the atmosphere, over the solar constant.
double insolation(const SunPosition& sun, double latitude, double longitude) {
  return std::max(0.0, cos_zenith_angle(sun, latitude, longitude)) / (sun.distance * sun.distance);
}

TEST(Solar, StandsWhereTheEphemerisSays) {
  const Json rows = Json::parse(std::ifstream(fixture("solar.json")));
  ASSERT_EQ(rows.size(), 200U);
  double angle = 0, distance = 0;
  for (const Json& row : rows) {
    const SunPosition sun = sun_at(at(row[0].get<std::string>()));
    const double found = cos_zenith_angle(sun, row[1].get<double>(), row[2].get<double>());
    angle = std::max(angle, std::abs(found - row[3].get<double>()));
    distance = std::max(distance, std::abs(sun.distance - row[4].get<double>()));
    const double light = std::max(0.0, row[3].get<double>()) / std::pow(row[4].get<double>(), 2);
    EXPECT_NEAR(insolation(sun, row[1].get<double>(), row[2].get<double>()), light, 4e-4);
  }
  std::printf("cosine of the zenith angle within %.1e, distance within %.1e\n", angle, distance);
  // 0.01 degrees, and the parallax of an observer on the ground.
  EXPECT_LT(angle, 2e-4);
  EXPECT_LT(distance, 1.2e-4);
}

TEST(Solar, SeasonsKeepTheirDatesInOtherCalendars) {
  for (const Calendar calendar : {Calendar::kNoLeap, Calendar::kAllLeap, Calendar::k360Day}) {
    for (const std::int64_t year : {1850, 2001, 2300}) {
      const auto declination = [&](std::int64_t month, std::int64_t day) {
        return sun_at(days_from_date({year, month, day}, calendar) * kDay, calendar).declination / kRadians;
      };
      EXPECT_NEAR(declination(6, 21), 23.44, 0.1) << name(calendar) << year;
      EXPECT_NEAR(declination(12, 21), -23.44, 0.1) << name(calendar) << year;
      EXPECT_LT(std::abs(declination(3, 20)), 1.5) << name(calendar) << year;
    }
  }
}

TEST(Solar, StandsAsOnTheSameDateOfTheJulianCalendar) {
  const auto seconds = [](Calendar calendar) {
    return days_from_date({2021, 3, 20}, calendar) * kDay + kHour;
  };
  EXPECT_EQ(sun_at(seconds(Calendar::kJulian), Calendar::kJulian).declination,
            sun_at(seconds(Calendar::kStandard)).declination);
}

TEST(Solar, ForcingsOfPlaces) {
  const std::vector<double> latitudes = {60, 20, -20}, longitudes = {-30, 0, 45, 170};
  const Grid grid = make_geographic_grid(latitudes, longitudes);
  const ForcingFields forcings(grid);
  const Time time = at("2021-07-04T15:30");
  const SunPosition sun = sun_at(time);
  const Box box{{1, 1}, {2, 3}};
  const PointPlaces places{{20, 20, 20, -20, -20, -20}, {0, 45, 170, 0, 45, 170}};
  const std::vector<std::pair<Forcing, std::function<double(double, double)>>> all = {
      {Forcing::kSinLatitude, [](double lat, double) { return std::sin(lat * kRadians); }},
      {Forcing::kCosLatitude, [](double lat, double) { return std::cos(lat * kRadians); }},
      {Forcing::kSinLongitude, [](double, double lon) { return std::sin(lon * kRadians); }},
      {Forcing::kCosLongitude, [](double, double lon) { return std::cos(lon * kRadians); }},
      // 15:30 at Greenwich, an hour later every 15 degrees.
      {Forcing::kSinLocalTime,
       [](double, double lon) { return std::sin(2 * std::numbers::pi * (15.5 + lon / 15) / 24); }},
      {Forcing::kCosLocalTime,
       [](double, double lon) { return std::cos(2 * std::numbers::pi * (15.5 + lon / 15) / 24); }},
      {Forcing::kCosZenithAngle, [&](double lat, double lon) { return cos_zenith_angle(sun, lat, lon); }},
      {Forcing::kInsolation, [&](double lat, double lon) { return insolation(sun, lat, lon); }}};
  for (const auto& [forcing, expected] : all) {
    EXPECT_TRUE(needs_degrees(forcing)) << name(forcing);
    std::vector<double> on_axes(6), of_points(6);
    forcings.fill(forcing, time, box, on_axes);
    forcings.fill(forcing, time, box, of_points, &places);
    for (std::size_t i = 0; i < 6; ++i) {
      const double wanted = expected(places.latitude[i], places.longitude[i]);
      EXPECT_NEAR(on_axes[i], wanted, 1e-14) << name(forcing);
      EXPECT_NEAR(of_points[i], wanted, 1e-14) << name(forcing);
    }
  }
}

TEST(Solar, ForcingsAreThoseOfTime0AndOfTheTarget) {
  DataOptions options = fixture_options();
  options.forcings = {ForcingKind::kSinCosLatitude, ForcingKind::kSinCosLongitude,
                      ForcingKind::kCosZenithAngle, ForcingKind::kInsolation, ForcingKind::kLocalSolarTime};
  std::vector<std::string> names;
  for (const Channel& channel : make_channels(options, false).inputs) {
    if (channel.role == Role::kForcing) names.push_back(concat(channel.name, " ", channel.offset / kHour));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"sin_latitude 0", "cos_latitude 0", "sin_longitude 0",
                                             "cos_longitude 0", "cos_zenith_angle 0", "cos_zenith_angle 6",
                                             "insolation 0", "insolation 6", "sin_local_time 0",
                                             "cos_local_time 0", "sin_local_time 6", "cos_local_time 6"}));
}

}  // namespace solar_test
}  // namespace jigsaw
