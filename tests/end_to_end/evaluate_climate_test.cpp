// The climate that evaluate scores is what loops over the forecasts of each start and lead find, in tables,
// JSON, NetCDF and maps, on any mesh.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "end_to_end/trained_forecasts.h"

namespace jigsaw::e2e {
namespace evaluate_climate_test {

constexpr std::size_t kLeads = 3, kSpinUp = 1;

class EvaluateClimate : public TrainedForecasts {
 protected:
  /// Across the turn of a month.
  static std::string period() { return "2021-01-30 2021-02-02"; }
  static Outcome evaluate(int ranks, const std::string& more) {
    return run(ranks, "evaluate --config " + (folder() / "config.json") + " --checkpoint " + trained() +
                          " --period " + period() + " " + more);
  }
};

/// Mean and deviation of a point in a group.
struct Point {
  double forecast = 0, truth = 0, forecast_deviation = 0, truth_deviation = 0, count = 0;
};

std::array<double, 2> two_loops(const std::vector<double>& numbers) {
  double mean = 0, squares = 0;
  const auto count = static_cast<double>(numbers.size());
  for (const double number : numbers) mean += number / count;
  for (const double number : numbers) squares += (number - mean) * (number - mean) / count;
  return {mean, std::sqrt(squares)};
}

/// @param month  0: all
std::vector<Point> climate_of(const NetcdfReader& forecasts, const Truth& states, const std::string& variable,
                              int month) {
  constexpr std::int64_t kFebruary = 447072 + 31 * 24;  // hours from 1970 to 1 February 2021
  const std::vector<double> starts = forecasts.values("time"), values = forecasts.values(variable);
  const std::size_t points = values.size() / starts.size() / kLeads;
  std::vector<Point> climate(points);
  for (std::size_t i = 0; i < points; ++i) {
    std::vector<double> forecast, truth;
    for (std::size_t start = 0; start + kLeads < starts.size();
         ++start) {  // others' targets lie behind the period
      for (std::size_t lead = kSpinUp; lead < kLeads; ++lead) {
        const std::int64_t hour = std::llround(starts[start]) + 6 * (static_cast<std::int64_t>(lead) + 1);
        if (month != 0 && month != (hour < kFebruary ? 1 : 2)) continue;
        forecast.push_back(values[(start * kLeads + lead) * points + i]);
        truth.push_back(states.at.at(hour)[i]);
      }
    }
    const auto [f, of_forecast] = two_loops(forecast);
    const auto [o, of_truth] = two_loops(truth);
    climate[i] = {f, o, of_forecast, of_truth, static_cast<double>(truth.size())};
  }
  return climate;
}

void expect_scores(const Json& said, std::size_t group, const std::vector<Point>& climate,
                   const std::vector<double>& weights, bool tropics, const std::vector<double>& latitudes) {
  const std::size_t columns = climate.size() / latitudes.size();
  double weight = 0, forecast = 0, truth = 0, squares = 0, deviations = 0, of_forecast = 0, of_truth = 0;
  const auto each = [&](const auto& use) {
    for (std::size_t i = 0; i < climate.size(); ++i) {
      if (!tropics || std::abs(latitudes[i / columns]) <= 20) use(weights[i / columns], climate[i]);
    }
  };
  each([&](double w, const Point& of) {
    weight += w;
    forecast += w * of.forecast;
    truth += w * of.truth;
    squares += w * std::pow(of.forecast - of.truth, 2);
    deviations += w * std::pow(of.forecast_deviation - of.truth_deviation, 2);
    of_forecast += w * std::pow(of.forecast_deviation, 2);
    of_truth += w * std::pow(of.truth_deviation, 2);
  });
  double ff = 0, oo = 0, fo = 0;
  each([&](double w, const Point& of) {
    const double f = of.forecast - forecast / weight, o = of.truth - truth / weight;
    ff += w * f * f;
    oo += w * o * o;
    fo += w * f * o;
  });
  const std::map<std::string, double> wanted = {{"bias", (forecast - truth) / weight},
                                                {"rmse", std::sqrt(squares / weight)},
                                                {"pattern_correlation", fo / std::sqrt(ff * oo)},
                                                {"std_ratio", std::sqrt(of_forecast / of_truth)},
                                                {"std_rmse", std::sqrt(deviations / weight)},
                                                {"forecast_mean", forecast / weight},
                                                {"truth_mean", truth / weight}};
  for (const auto& [score, number] : wanted) {
    // What was read back is rounded to float32.
    EXPECT_NEAR(said.at(score).at(group).get<double>(), number, 3e-5 + 1e-5 * std::abs(number))
        << score << " of group " << group;
  }
}

TEST_F(EvaluateClimate, IsWhatLoopsOverTheForecastsFind) {
  ASSERT_EQ(
      predict(1, "climate.nc", "--steps 3 --period valid --set 'data.valid=[\"2021-01-30\",\"2021-02-02\"]'")
          .exit_code,
      0);
  const NetcdfReader file(folder() / "climate.nc");
  const std::vector<double> latitudes = file.values("latitude"), weights = row_weights(latitudes);
  for (const MeshCase& mesh : {MeshCase{"{}", 1}, {R"({"data":2,"domain":[1,2]})", 4}}) {
    SCOPED_TRACE(mesh.json);
    const Outcome outcome =
        evaluate(mesh.ranks, "--overwrite --climate month --spin-up 1 --json " + (folder() / "climate.json") +
                                 " --netcdf " + (folder() / "climate_scores.nc") + " --maps " +
                                 (folder() / "maps.nc") + " --set 'mesh=" + mesh.json + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const char* part : {"climate of t2m [K] behind 1 step", "std ratio", "pattern",
                             "trend of t2m in ten years [K]", " 2-3 "})
      EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " is not in\n" << outcome.out;
    const Json found = Json::parse(read(folder() / "climate.json")), &climate = found.at("climate");
    const NetcdfReader maps(folder() / "maps.nc"), table(folder() / "climate_scores.nc");
    // Of the last starts targets lie behind the period.
    ASSERT_EQ(found.at("forecasts").get<std::size_t>() + kLeads, file.values("time").size());
    EXPECT_EQ(climate.at("groups").size(), 13U);
    EXPECT_EQ(climate.at("groups").at(2), "2");
    EXPECT_EQ(climate.at("spin_up"), kSpinUp);
    EXPECT_EQ(maps.values("latitude"), latitudes);
    EXPECT_EQ(maps.values("longitude"), file.values("longitude"));
    EXPECT_EQ(maps.text("", "Conventions"), "CF-1.10");
    EXPECT_EQ(maps.text("climate_group", "flag_meanings"), "all 1 2 3 4 5 6 7 8 9 10 11 12");
    for (const char* variable : {"t2m", "u10"}) {
      const std::string name = variable;
      const Truth states(data(), variable);
      EXPECT_EQ(maps.dimensions(name + "_std_truth"),
                (std::vector<std::string>{"climate_group", "latitude", "longitude"}));
      EXPECT_EQ(maps.text(name + "_bias", "units"), file.text(name, "units"));
      EXPECT_EQ(table.dimensions(name + "_climate_rmse"),
                (std::vector<std::string>{"region", "climate_group"}));
      EXPECT_EQ(table.values(name + "_climate_rmse")[1],
                climate.at("scores").at(name).at("all").at("rmse").at(1).get<double>());
      for (const int month : {0, 1, 2}) {
        const std::vector<Point> points = climate_of(file, states, variable, month);
        const auto group = static_cast<std::size_t>(month);
        expect_scores(climate.at("scores").at(name).at("all"), group, points, weights, false, latitudes);
        expect_scores(climate.at("scores").at(name).at("tropics"), group, points, weights, true, latitudes);
        const std::vector<double> mean = maps.values(name + "_mean"),
                                  truth = maps.values(name + "_mean_truth"),
                                  bias = maps.values(name + "_bias"), deviation = maps.values(name + "_std"),
                                  true_deviation = maps.values(name + "_std_truth"),
                                  count = maps.values(name + "_count");
        for (std::size_t i = 0; i < points.size(); ++i) {
          const std::size_t at = group * points.size() + i;
          ASSERT_NEAR(mean[at], points[i].forecast, 1e-4) << variable << month << i;
          ASSERT_NEAR(truth[at], points[i].truth, 1e-4) << variable << month << i;
          ASSERT_NEAR(bias[at], points[i].forecast - points[i].truth, 1e-4) << variable << month << i;
          ASSERT_NEAR(deviation[at], points[i].forecast_deviation, 1e-4) << variable << month << i;
          ASSERT_NEAR(true_deviation[at], points[i].truth_deviation, 1e-4) << variable << month << i;
          ASSERT_EQ(count[at], points[i].count) << variable << month << i;
        }
        EXPECT_GT(points[0].count, 1);
      }
      // Two leads are behind the spin-up; of the standard calendar 3652 days are ten years.
      const Json &trends = climate.at("trends").at(name), &means = found.at("scores").at(name);
      std::size_t number = 0;
      for (const auto& [region, trend] : trends.items()) {
        const auto change = [&, of = region](const char* score) {
          const Json& list = means.at(of).at(score);
          return 3652 * 4 * (list.at(2).get<double>() - list.at(1).get<double>());
        };
        const double forecast = change("forecast_mean"), truth = change("truth_mean");
        EXPECT_NEAR(trend.at("forecast_trend").get<double>(), forecast, 1e-5 * std::abs(forecast)) << region;
        EXPECT_NEAR(trend.at("truth_trend").get<double>(), truth, 1e-5 * std::abs(truth)) << region;
        EXPECT_NEAR(trend.at("drift").get<double>(), forecast - truth,
                    1e-5 * (std::abs(forecast) + std::abs(truth)))
            << region;
        EXPECT_NE(truth, 0) << region;
        EXPECT_EQ(table.values(name + "_climate_drift").at(number++), trend.at("drift").get<double>());
      }
      EXPECT_EQ(number, found.at("regions").size());
      EXPECT_EQ(table.text(name + "_climate_drift", "units"), file.text(name, "units") + " (10 year)-1");
      // Nothing falls in March.
      EXPECT_TRUE(climate.at("scores").at(name).at("all").at("bias").at(3).is_null());
      const std::size_t march = 3 * weights.size() * file.values("longitude").size();
      EXPECT_EQ(maps.values(name + "_count")[march], 0);
      EXPECT_EQ(maps.values(name + "_mean")[march], maps.number(name + "_mean", "_FillValue"));
    }
  }
}

/// By lead, without any option.
TEST_F(EvaluateClimate, MeansByLeadAreThoseOfTheForecasts) {
  ASSERT_EQ(
      evaluate(2, "--overwrite --json " + (folder() / "means.json") + " --set 'mesh={\"data\":2}'").exit_code,
      0);
  ASSERT_EQ(
      predict(1, "means.nc", "--steps 3 --period valid --set 'data.valid=[\"2021-01-30\",\"2021-02-02\"]'")
          .exit_code,
      0);
  const Json found = Json::parse(read(folder() / "means.json"));
  EXPECT_FALSE(found.contains("climate"));
  const NetcdfReader file(folder() / "means.nc");
  std::vector<double> starts = file.values("time");
  const std::vector<double> values = file.values("t2m"), weights = row_weights(file.values("latitude"));
  const Truth states(data(), "t2m");
  const std::size_t points = values.size() / starts.size() / kLeads;
  starts.resize(starts.size() - kLeads);  // of the last ones targets lie behind the period
  for (std::size_t lead = 0; lead < kLeads; ++lead) {
    double forecast = 0, truth = 0;
    for (std::size_t start = 0; start < starts.size(); ++start) {
      const std::int64_t hour = std::llround(starts[start]) + 6 * (static_cast<std::int64_t>(lead) + 1);
      for (std::size_t i = 0; i < points; ++i) {
        const double w = weights[i / kColumns] / static_cast<double>(points * starts.size());
        forecast += w * values[(start * kLeads + lead) * points + i];
        truth += w * states.at.at(hour)[i];
      }
    }
    const Json& said = found.at("scores").at("t2m").at("all");
    EXPECT_NEAR(said.at("forecast_mean").at(lead).get<double>(), forecast, 3e-5) << lead;
    EXPECT_NEAR(said.at("truth_mean").at(lead).get<double>(), truth, 3e-5) << lead;
    EXPECT_GT(std::abs(forecast - truth), 1e-4);
  }
}

TEST_F(EvaluateClimate, WrongOptionsAreOneSentence) {
  const auto check = [&](const std::string& arguments, const std::string& says) {
    const Outcome outcome = evaluate(2, arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  };
  const std::string maps = folder() / "wrong.nc";
  check("--spin-up 1", "--spin-up has no effect without --climate all, season or month");
  check("--maps " + maps, "--maps has no effect without --climate");
  check("--map-leads 1", "--map-leads has no effect without --error-maps FILE");
  check("--map-leads 2 4 --error-maps " + maps,
        "--map-leads 4 is beyond the last of 3 leads that are scored");
  check("--climate all --spin-up 3", "--spin-up 3 leaves none of the 3 leads for --climate");
  check("--climate all --maps " + maps + " --netcdf " + maps, "--netcdf and --maps both name ");
  EXPECT_FALSE(std::filesystem::exists(maps));
  folder().write("there.nc", "");
  check("--climate all --maps " + (folder() / "there.nc"), "exists; name another file");
  const Outcome other = evaluate(1, "--climate weeks");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.errors().size(), 1U) << other.err;
}

}  // namespace evaluate_climate_test
}  // namespace jigsaw::e2e
