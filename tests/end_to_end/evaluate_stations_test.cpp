// Forecasts at places: what predict writes there, and how evaluate scores it against what stations observed,
// against loops over the fields that predict writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "base/text.h"
#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace evaluate_stations_test {

struct Town {
  std::string name;
  double latitude, longitude;
};

/// Between points, beside the last column and the first one, on a point, and at the pole.
const std::vector<Town> kTowns = {{"Zürich, Fluntern", 47.38, 8.57},
                                  {"Date Line", 0.1, -179.9},
                                  {"Greenwich", 51.48, -0.01},
                                  {"On a point", 20, 30},
                                  {"Pole", 89.9, 0},
                                  {"Lima", -12.05, 282.96}};
constexpr std::size_t kTownCount = 6, kLeads = 3;

/// Bilinear in a field of sample data: rows from 90° N on, columns from 0° E, 5° apart, round the globe.
double between(const double* field, const Town& town) {
  const double row = (90 - town.latitude) / 5, column = std::fmod(town.longitude + 360, 360) / 5;
  const int top = std::min(static_cast<int>(row), 35), left = static_cast<int>(column);
  const double down = row - top, along = column - left;
  const auto at = [&](int r, int c) { return field[r * 72 + c % 72]; };
  return (1 - down) * ((1 - along) * at(top, left) + along * at(top, left + 1)) +
         down * ((1 - along) * at(top + 1, left) + along * at(top + 1, left + 1));
}

void refused(const Outcome& outcome, int code, const std::string& words) {
  EXPECT_EQ(outcome.exit_code, code) << outcome.err;
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find(words), std::string::npos) << outcome.errors()[0];
}

class Stations : public TrainedForecasts {
 protected:
  static std::string towns() {
    std::string text = "id;Lat;LON;remark\r\n";
    for (const Town& town : kTowns)
      text += concat('"', town.name, "\"; ", town.latitude, ";", town.longitude, ";x\r\n");
    folder().write("towns.csv", text);
    return " --points " + (folder() / "towns.csv");
  }
  static Outcome evaluate(int ranks, const std::string& more) {
    return run(ranks, "evaluate --config " + (folder() / "config.json") + " --checkpoint " + trained() +
                          " --overwrite " + more);
  }
  static std::vector<double> fields_of(const std::string& output) {
    return NetcdfReader(folder() / output).values("t2m");
  }

  /// What stations observe of t2m at 00 and 12 UTC: the truth and 0.1 K more for each station and a wave; the
  /// second station nothing on 2 February.
  static double observed(double truth, std::size_t station, std::int64_t hour) {
    if (station == 1 && hour / 24 == 18660) return std::numeric_limits<double>::quiet_NaN();
    return truth + 0.1 * static_cast<double>(station) +
           std::sin(static_cast<double>(hour + 7 * static_cast<int>(station)));
  }
  /// @param from, end  stations. @param places_first  [station, time] in place of [time, station]
  static void write_observations(const std::string& name, std::size_t from, std::size_t end,
                                 bool places_first, const std::string& units = "K") {
    const Truth truth(data(), "t2m");
    std::vector<double> times, values, latitudes, longitudes, numbers;
    std::vector<std::vector<double>> rows;
    for (const auto& [hour, field] : truth.at) {
      if (hour % 12 != 0 || hour < 18658 * 24) continue;
      times.push_back(static_cast<double>(hour));
      rows.emplace_back();
      for (std::size_t s = from; s < end; ++s)
        rows.back().push_back(observed(between(field.data(), kTowns[s]), s, hour));
    }
    for (std::size_t s = from; s < end; ++s) {
      latitudes.push_back(kTowns[s].latitude);
      longitudes.push_back(kTowns[s].longitude);
      numbers.push_back(71800 + static_cast<double>(s));
    }
    if (places_first) {
      for (std::size_t s = 0; s < end - from; ++s)
        for (const std::vector<double>& row : rows) values.push_back(row[s]);
    } else {
      for (const std::vector<double>& row : rows) values.insert(values.end(), row.begin(), row.end());
    }
    testing::NetcdfWriter file(folder() / name);
    const int time = file.dimension("time", times.size()), station = file.dimension("station", end - from);
    const int hours = file.variable("time", NC_DOUBLE, {time}),
              lat = file.variable("lat", NC_DOUBLE, {station}),
              lon = file.variable("lon", NC_DOUBLE, {station}),
              id = file.variable("station", NC_INT, {station}),
              t2m = file.variable(
                  "t2m", NC_DOUBLE,
                  places_first ? std::vector<int>{station, time} : std::vector<int>{time, station});
    file.text(hours, "units", "hours since 1970-01-01");
    file.text(lat, "units", "degrees_north");
    file.text(lon, "units", "degrees_east");
    if (!units.empty()) file.text(t2m, "units", units);
    file.end();
    file.put(hours, times);
    file.put(lat, latitudes);
    file.put(lon, longitudes);
    file.put(id, numbers);
    file.put(t2m, values);
  }
};

TEST_F(Stations, ForecastsAtPlacesAreThoseOfTheFieldsAroundThem) {
  ASSERT_EQ(predict(1, "fields.nc", "--steps 3 --start 2021-02-02 2021-02-03 2021-02-04").exit_code, 0);
  const std::vector<double> fields = fields_of("fields.nc");
  for (const int ranks : {1, 3}) {
    const std::string name = concat("towns", ranks, ".nc");
    const Outcome outcome =
        predict(ranks, name, "--steps 3 --start 2021-02-02 2021-02-03 2021-02-04" + towns());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const NetcdfReader file(folder() / name);
    EXPECT_EQ(file.dimensions("t2m"), (std::vector<std::string>{"time", "lead_time", "station"}));
    EXPECT_TRUE(file.has("u10"));
    EXPECT_EQ(file.text("t2m", "coordinates"), "station_name latitude longitude valid_time");
    const std::vector<double> values = file.values("t2m");
    ASSERT_EQ(values.size(), 9 * kTownCount);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double* const field = fields.data() + i / kTownCount * 37 * 72;
      EXPECT_NEAR(values[i], between(field, kTowns[i % kTownCount]), 1e-4) << ranks << " ranks, number " << i;
    }
    // In turn the file lists the places that it is of.
    ASSERT_EQ(predict(1, "again.nc", "--steps 1 --overwrite --start 2021-02-02 --points " + (folder() / name))
                  .exit_code,
              0);
    const std::vector<double> again = fields_of("again.nc");
    EXPECT_EQ(again, std::vector<double>(values.begin(), values.begin() + kTownCount));
  }
}

TEST_F(Stations, NearestPointsAndMeansInTime) {
  const std::string options = "--steps 2 --start 2021-02-02 --variables t2m";
  ASSERT_EQ(predict(1, "two.nc", options).exit_code, 0);
  ASSERT_EQ(
      predict(2, "near.nc", options + " --mean 2 --time-series --interpolation nearest" + towns()).exit_code,
      0);
  const std::vector<double> fields = fields_of("two.nc"), values = fields_of("near.nc");
  const std::array<int, kTownCount> points = {9 * 72 + 2, 18 * 72 + 36, 8 * 72 + 0, 14 * 72 + 6,
                                              0,          20 * 72 + 57};
  ASSERT_EQ(values.size(), kTownCount);
  for (std::size_t s = 0; s < kTownCount; ++s) {
    const auto at = static_cast<std::size_t>(points[s]);
    EXPECT_NEAR(values[s], (fields[at] + fields[37 * 72 + at]) / 2, 1e-4) << kTowns[s].name;
  }
}

TEST_F(Stations, ScoresAreThoseOfLoopsOverPairs) {
  // Two files, which are cut otherwise and share the third station.
  write_observations("first.nc", 0, 3, true);
  write_observations("second.nc", 2, kTownCount, false);
  ASSERT_EQ(predict(1, "valid.nc", "--steps 3 --period valid").exit_code, 0);
  const NetcdfReader forecasts(folder() / "valid.nc");
  const std::vector<double> fields = forecasts.values("t2m"), starts = forecasts.values("time");
  const double origin = static_cast<double>(18659 * 24) - starts[0];  // of hours from 1 February
  struct Sums {
    double pairs = 0, errors = 0, absolute = 0, squares = 0, persistence = 0, truth = 0;
  };
  std::vector<Sums> at(kTownCount * kLeads), all(kLeads);
  const Truth truth(data(), "t2m");
  for (std::size_t start = 0; start < starts.size(); ++start) {
    const auto hour = std::llround(starts[start] + origin);
    if (hour + 18 >= 18662 * 24) continue;  // leads beyond the period
    for (std::size_t lead = 0; lead < kLeads; ++lead) {
      const std::int64_t valid = hour + 6 * static_cast<std::int64_t>(lead + 1);
      if (valid % 12 != 0) continue;
      for (std::size_t s = 0; s < kTownCount; ++s) {
        const double there = observed(between(truth.at.at(valid).data(), kTowns[s]), s, valid);
        if (std::isnan(there)) continue;
        const double error = between(fields.data() + (start * kLeads + lead) * 37 * 72, kTowns[s]) - there,
                     persistence = between(truth.at.at(hour).data(), kTowns[s]) - there,
                     of_data = between(truth.at.at(valid).data(), kTowns[s]) - there;
        for (Sums* sums : {&at[s * kLeads + lead], &all[lead]}) {
          ++sums->pairs;
          sums->errors += error;
          sums->absolute += std::abs(error);
          sums->squares += error * error;
          sums->persistence += persistence * persistence;
          sums->truth += of_data * of_data;
        }
      }
    }
  }
  const std::string options = " --stations '" + (folder() / "first.nc") + "' '" + (folder() / "sec*.nc") +
                              "' --json " + (folder() / "scores.json") + " --station-scores " +
                              (folder() / "stations.nc") + " --region 'europe=40,60,-10,20'";
  for (const int ranks : {1, 2}) {
    const Outcome outcome = evaluate(ranks, options);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("t2m [K] at 6 stations"), std::string::npos);
    const Json stations = Json::parse(read(folder() / "scores.json")).at("stations");
    EXPECT_EQ(stations.at("places"), kTownCount);
    EXPECT_EQ(stations.at("scores").size(), 1U);
    const Json& scores = stations.at("scores").at("t2m");
    const NetcdfReader file(folder() / "stations.nc");
    EXPECT_EQ(file.dimensions("t2m_rmse"), (std::vector<std::string>{"station", "lead_time"}));
    for (std::size_t lead = 0; lead < kLeads; ++lead) {
      const Sums& sums = all[lead];
      ASSERT_GT(sums.pairs, 0);
      EXPECT_EQ(scores.at("all").at("pairs")[lead], sums.pairs);
      EXPECT_NEAR(scores.at("all").at("rmse")[lead].get<double>(), std::sqrt(sums.squares / sums.pairs),
                  1e-4);
      EXPECT_NEAR(scores.at("all").at("mae")[lead].get<double>(), sums.absolute / sums.pairs, 1e-4);
      EXPECT_NEAR(scores.at("all").at("bias")[lead].get<double>(), sums.errors / sums.pairs, 1e-4);
      EXPECT_NEAR(scores.at("all").at("persistence_rmse")[lead].get<double>(),
                  std::sqrt(sums.persistence / sums.pairs), 2e-5);
      EXPECT_NEAR(scores.at("all").at("truth_rmse")[lead].get<double>(), std::sqrt(sums.truth / sums.pairs),
                  2e-5);
      // Zürich and Greenwich alone.
      EXPECT_EQ(scores.at("europe").at("pairs")[lead], at[lead].pairs + at[2 * kLeads + lead].pairs);
      for (std::size_t s = 0; s < kTownCount; ++s) {
        const Sums& own = at[s * kLeads + lead];
        EXPECT_EQ(file.values("t2m_pairs")[s * kLeads + lead], own.pairs);
        EXPECT_NEAR(file.values("t2m_rmse")[s * kLeads + lead], std::sqrt(own.squares / own.pairs), 1e-4);
      }
    }
  }
  // Forecasts in files are scored in the same way.
  const Json of_model =
      Json::parse(read(folder() / "scores.json")).at("stations").at("scores").at("t2m").at("all");
  const Outcome written = run(1, "evaluate --config " + (folder() / "config.json") +
                                     " --overwrite --predictions " + (folder() / "valid.nc") + options);
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const Json of_files =
      Json::parse(read(folder() / "scores.json")).at("stations").at("scores").at("t2m").at("all");
  for (std::size_t lead = 0; lead < kLeads; ++lead)
    EXPECT_NEAR(of_files.at("rmse")[lead].get<double>(), of_model.at("rmse")[lead].get<double>(), 1e-4);
}

/// Lines of a table as cells; of these tests none holds a comma.
std::vector<std::vector<std::string>> lines_of(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream text(read(path));
  for (std::string line; std::getline(text, line);) lines.push_back(split(line, ','));
  return lines;
}

TEST_F(Stations, TablesHoldTheSame) {
  folder().write("two.csv", "# places\nsep,name,lat,lon\n\n1,S,47.38,8.57\n2,T,+0.1,-179.9\n");
  const std::string options = "--steps 3 --start 2021-02-02 2021-02-03 --points " + (folder() / "two.csv");
  ASSERT_EQ(predict(1, "two.nc", options + " --overwrite").exit_code, 0);
  const Outcome outcome = predict(2, "out.csv", options);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::vector<std::string>> lines = lines_of(folder() / "out.csv");
  const NetcdfReader file(folder() / "two.nc");
  const std::vector<double> t2m = file.values("t2m"), u10 = file.values("u10");
  ASSERT_EQ(lines.size(), 1 + t2m.size());
  EXPECT_EQ(lines[0], (std::vector<std::string>{"start", "time", "lead_hours", "station", "latitude",
                                                "longitude", "t2m [K]", "u10 [m s**-1]"}));
  for (std::size_t i = 0; i < t2m.size(); ++i) {
    const std::vector<std::string>& line = lines[i + 1];
    ASSERT_EQ(line.size(), 8U);
    EXPECT_EQ(line[0], i < 6 ? "2021-02-02T00:00" : "2021-02-03T00:00");
    EXPECT_EQ(line[2], std::to_string(6 * (i / 2 % 3 + 1)));
    EXPECT_EQ(line[3], i % 2 == 0 ? "S" : "T");
    EXPECT_NEAR(std::stod(line[6]), t2m[i], 1e-4);
    EXPECT_NEAR(std::stod(line[7]), u10[i], 1e-5);
  }
  EXPECT_EQ(lines[3][1], "2021-02-02T12:00");
  EXPECT_EQ(predict(1, "fields.csv", "--start 2021-02-02").exit_code, 2);

  // Observations, here those of a file, in °C as a table of a spreadsheet that writes decimals with commas.
  write_observations("file.nc", 0, 2, false);
  const NetcdfReader observations(folder() / "file.nc");
  const std::vector<double> times = observations.values("time"), values = observations.values("t2m");
  std::string table = "time;station;lat;lon;t2m [°C];other\r\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto hours = std::llround(times[i / 2]) - 18659 * 24;  // from 1 February
    char line[160];
    std::snprintf(line, sizeof line, "2021-%02d-%02d %02d:00:00+00:00;%d;%.3f;%.3f;%.9f;1\r\n",
                  hours < 0 ? 1 : 2, static_cast<int>(hours < 0 ? 31 : 1 + hours / 24),
                  static_cast<int>((hours + 24) % 24), 71800 + static_cast<int>(i % 2),
                  kTowns[i % 2].latitude, kTowns[i % 2].longitude, values[i] - 273.15);
    std::string text = line;
    std::ranges::replace(text, '.', ',');
    if (std::isnan(values[i])) text.replace(text.find("nan"), 3, "NaN");
    table += text;
  }
  folder().write("obs.csv", table);
  std::vector<Json> scores;
  for (const char* name : {"file.nc", "obs.csv"}) {
    const Outcome scored =
        evaluate(2, "--stations " + (folder() / name) + " --json " + (folder() / "s.json") +
                        " --station-scores " + (folder() / "s.csv"));
    ASSERT_EQ(scored.exit_code, 0) << scored.err;
    scores.push_back(Json::parse(read(folder() / "s.json")).at("stations"));
    EXPECT_EQ(scored.err.find("is in \"°C\", and is brought to \"K\"") != std::string::npos,
              scores.size() == 2)
        << scored.err;
  }
  for (const char* score : {"rmse", "bias", "pairs"}) {
    for (std::size_t lead = 0; lead < kLeads; ++lead)
      EXPECT_NEAR(scores[0]["scores"]["t2m"]["all"][score][lead].get<double>(),
                  scores[1]["scores"]["t2m"]["all"][score][lead].get<double>(), 1e-5);
  }
  const std::vector<std::vector<std::string>> stations = lines_of(folder() / "s.csv");
  ASSERT_EQ(stations.size(), 1 + 2 * kLeads);
  EXPECT_EQ(stations[0][6], "rmse");
  EXPECT_EQ(stations[1][0], "71800");

  // Without a unit they are taken to be in that of the data, which is said once of all files.
  folder().write("bare.csv", "time,lat,lon,t2m,T2M (degC)\n2021-02-01T12:00,47.38,8.57,280.5,\n");
  folder().write("more.csv", "time,lat,lon,t2m\n2021-02-01T12:00,0.1,-179.9,300\n");
  const Outcome bare = evaluate(1, "--stations " + (folder() / "bare.csv") + " " + (folder() / "more.csv") +
                                       " --station-scores " + (folder() / "s.csv"));
  ASSERT_EQ(bare.exit_code, 0) << bare.err;
  ASSERT_EQ(bare.said().size(), 2U) << bare.err;
  EXPECT_NE(bare.err.find("says no unit, and is taken to be in \"K\""), std::string::npos) << bare.err;
  EXPECT_NE(bare.err.find("the column T2M (degC) is not read"), std::string::npos) << bare.err;
  EXPECT_EQ(lines_of(folder() / "s.csv")[1][0], "47.38 8.57");
}

/// Of what is near a forecast's time the nearest counts, of two as near the earlier one.
TEST_F(Stations, ObservationsNearTheTimesOfForecastsCountWhereTheyMay) {
  const auto table = [](const std::vector<std::pair<const char*, double>>& rows) {
    std::string text = "time,lat,lon,t2m [K]\n";
    for (const auto& [time, value] : rows) text += concat("2021-02-01T", time, ",47.38,8.57,", value, "\n");
    return text;
  };
  const auto scored = [&](const std::string& text, const std::string& options) {
    folder().write("near.csv", text);
    const Outcome outcome =
        evaluate(1, "--stations " + (folder() / "near.csv") + " --json " + (folder() / "s.json") + options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return std::pair(Json::parse(read(folder() / "s.json")).at("stations"), outcome.err);
  };
  const std::string near = table({{"11:50", 290}, {"12:20", 300}}), exact = table({{"12:00", 290}});
  const auto [none, warned] = scored(near, "");
  EXPECT_NE(warned.find("at none of the times of the forecasts"), std::string::npos) << warned;
  EXPECT_NE(warned.find("(--time-tolerance takes near ones)"), std::string::npos) << warned;
  const Json wanted = scored(exact, "").first;
  EXPECT_GT(wanted.at("scores").at("t2m").at("all").at("pairs")[0].get<int>(), 0);
  EXPECT_EQ(scored(near, " --time-tolerance '15 min'").first, wanted);
  EXPECT_EQ(scored(near, " --time-tolerance 0.5h").first, wanted) << "the nearest of two";
  EXPECT_EQ(scored(table({{"12:10", 300}, {"11:50", 290}}), " --time-tolerance 15min").first, wanted)
      << "the earlier of two as near";
  EXPECT_EQ(scored(table({{"12:10", 300}, {"12:00", 290}}), " --time-tolerance 15min").first, wanted);
  refused(evaluate(1, "--stations " + (folder() / "near.csv") + " --time-tolerance soon"), 2,
          "--time-tolerance must be a time of up to a day such as \"10 min\"");
  refused(evaluate(1, "--time-tolerance 5min"), 2, "no effect without --stations");
}

/// Whole numbers are names; what is none, or missing, is its position. Nothing else lies along the stations.
TEST_F(Stations, NumbersNamePlaces) {
  {
    testing::NetcdfWriter file(folder() / "numbers.nc");
    const int station = file.dimension("station", 3);
    const int lat = file.variable("lat", NC_DOUBLE, {station}),
              lon = file.variable("lon", NC_DOUBLE, {station}),
              id = file.variable("station", NC_DOUBLE, {station});
    file.end();
    file.put(lat, std::vector<double>{10, 20, 30});
    file.put(lon, std::vector<double>{40, 50, 60});
    file.put(id, std::vector<double>{71800, 0.5, std::numeric_limits<double>::quiet_NaN()});
  }
  const Outcome outcome =
      predict(1, "numbers.csv", "--start 2021-02-02 --points " + (folder() / "numbers.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> names;
  for (const std::vector<std::string>& line : lines_of(folder() / "numbers.csv")) names.push_back(line.at(3));
  EXPECT_EQ(names, (std::vector<std::string>{"station", "71800", "1", "2"}));
}

TEST_F(Stations, WhatIsOfAnotherKindIsRefused) {
  // The data's t2m is given a height and sums over 6 hours; observations another one each.
  const std::string made = folder() / "made.nc";
  const auto write = [&](const std::string& name, double height, double hours, bool on_grid, double first) {
    testing::NetcdfWriter file(folder() / name);
    const std::size_t count = 40;
    const int time = file.dimension("time", count), two = file.dimension("nv", 2);
    const int hour = file.variable("time", NC_DOUBLE, {time}),
              bounds = file.variable("time_bnds", NC_DOUBLE, {time, two}),
              upright = file.variable("height", NC_DOUBLE, {});
    std::vector<int> dimensions = {time};
    int lat = -1, lon = -1;
    if (on_grid) {
      const int rows = file.dimension("lat", 8), columns = file.dimension("lon", 8);
      lat = file.variable("lat", NC_DOUBLE, {rows});
      lon = file.variable("lon", NC_DOUBLE, {columns});
      dimensions.insert(dimensions.end(), {rows, columns});
    } else {
      const int station = file.dimension("station", 1);
      lat = file.variable("lat", NC_DOUBLE, {station});
      lon = file.variable("lon", NC_DOUBLE, {station});
      dimensions.push_back(station);
    }
    const int rain = file.variable("rain", NC_DOUBLE, dimensions);
    file.text(hour, "units", "hours since 2021-01-01");
    file.text(hour, "bounds", "time_bnds");
    file.text(upright, "units", "m");
    file.text(upright, "positive", "up");
    file.text(lat, "units", "degrees_north");
    file.text(lon, "units", "degrees_east");
    file.text(rain, "units", "mm");
    file.text(rain, "coordinates", "height");
    file.text(rain, "cell_methods", "time: sum");
    file.end();
    std::vector<double> times, limits;
    for (std::size_t i = 0; i < count; ++i) {
      times.push_back(6.0 * static_cast<double>(i));
      limits.insert(limits.end(), {times.back() - hours, times.back()});
    }
    file.put(hour, times);
    file.put(bounds, limits);
    file.put(upright, std::vector<double>{height});
    std::vector<double> degrees;
    for (std::size_t i = 0; i < (on_grid ? 8 : 1); ++i) degrees.push_back(40.5 + static_cast<double>(i));
    file.put(lat, degrees);
    file.put(lon, degrees);
    std::vector<double> values(count * (on_grid ? 64 : 1));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + std::sin(static_cast<double>(i));
    file.put(rain, values);
  };
  write("made.nc", 10, 6, true, 3);
  Json config = TrainedForecasts::config();
  config["data"] = {{"files", {made}},
                    {"variables", {"rain"}},
                    {"input_hours", {0}},
                    {"lead_hours", 6},
                    {"train", {"2021-01-01", "2021-01-05"}},
                    {"valid", {"2021-01-06", "2021-01-09"}}};
  config["model"] = small_mixer(8);
  config["train"]["steps"] = 2;
  config["validation"] = {{"every", 2}};
  write_config("rain.json", config);
  const std::string run_of_rain = folder() / "rain";
  ASSERT_EQ(run(1, "--config " + (folder() / "rain.json") + " --set output=" + run_of_rain).exit_code, 0);
  const auto score = [&](const std::string& name) {
    return run(1, "evaluate --config " + (folder() / "rain.json") + " --checkpoint " + run_of_rain +
                      " --stations '" + (folder() / name) + "'");
  };
  write("same.nc", 10, 6, false, 3);
  const Outcome same = score("same.nc");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_TRUE(same.said().empty()) << same.err;
  write("higher.nc", 100, 6, false, 3);
  refused(score("higher.nc"), 3, "is at 100 m, and the data at 10 m");
  write("hourly.nc", 10, 1, false, 3);
  refused(score("hourly.nc"), 3, "is over 1 h, and the data or other files over 6 h");
  write("begin.nc", 10, -6, false, 3);  // times stand at the begin of their sums
  refused(score("begin.nc"), 3, "bring its times to the same place in their bounds");
  write("other.nc", 10, 6, false, 4);
  refused(score("other.nc' '" + (folder() / "same.nc")), 3,
          "hold different values of rain at 0, 2021-01-06T");
  // What is no measurement counts, and is told.
  write("odd.nc", 10, 6, false, -9999);
  const Outcome wrong = score("odd.nc");
  EXPECT_EQ(wrong.exit_code, 0);
  EXPECT_NE(wrong.err.find("an observation of rain is -"), std::string::npos) << wrong.err;
}

TEST_F(Stations, WrongPlacesAndObservationsAreOneSentence) {
  const auto of_table = [&](const std::string& table) {
    folder().write("wrong.csv", table);
    return predict(1, "wrong.nc", "--start 2021-02-02 --points " + (folder() / "wrong.csv"));
  };
  refused(of_table(""), 3, "wrong.csv line 1: it is empty");
  refused(of_table("name,x,y\na,1,2\n"), 3,
          "line 1: the first line must name columns latitude and longitude");
  refused(of_table("name,lat,lon\n"), 3, "wrong.csv lists no places");
  refused(of_table("name,lat,lon\na,1,2\nb,north,2\n"), 3, "line 3: lat must be a number, not \"north\"");
  refused(of_table("name,lat,lon\na,91,2\n"), 3, "line 2: the latitude 91 is none");
  refused(of_table("name,lat,lon\na,1\n"), 3, "line 2: it has 2 columns, and the first line 3");
  refused(of_table("name,lat,lon\n\"a,1,2\n"), 3, "line 2: a quote (\") is not closed");
  refused(predict(1, "wrong.nc", "--start 2021-02-02 --points " + (folder() / "none.csv")), 3, "none.csv");
  refused(predict(2, "wrong.nc", "--start 2021-02-02 --points " + data() + "/sample_2021-01.nc"), 3,
          "lists no places");
  refused(predict(1, "wrong.nc", "--start 2021-02-02 --interpolation nearest"), 2,
          "no effect without --points");
  EXPECT_FALSE(std::filesystem::exists(folder() / "wrong.nc"));

  refused(evaluate(2, "--stations '" + data() + "/*.nc'"), 3, "is no series at stations");
  write_observations("pressure.nc", 0, 2, true, "hPa");
  refused(evaluate(1, "--stations " + (folder() / "pressure.nc")), 3, "hPa");
  write_observations("right.nc", 0, 2, true);
  refused(evaluate(1, "--stations " + (folder() / "right.nc") + " --period 2021-01-13 2021-01-15"), 3,
          "nothing was observed from");
  refused(evaluate(1, "--station-scores " + (folder() / "s.nc")), 2, "no effect without --stations");
  refused(evaluate(1, "--stations none.nc"), 3, "none.nc");
  EXPECT_FALSE(std::filesystem::exists(folder() / "s.nc"));
}

}  // namespace evaluate_stations_test
}  // namespace jigsaw::e2e
