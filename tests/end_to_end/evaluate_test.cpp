// Scores of the executable are those of validation, and those that loops over what it predicts find; the same
// on any mesh.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <tuple>

#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace {

constexpr std::size_t kLeads = 3, kWindows = 9;

class Evaluate : public TrainedForecasts {
 protected:
  static Outcome evaluate(int ranks, const std::string& more) {
    return run(ranks, "evaluate --config " + (folder() / "config.json") + " --checkpoint " + trained() +
                          " --overwrite --json " + (folder() / "scores.json") + " " + more);
  }
  static Json scores() { return Json::parse(read(folder() / "scores.json")); }
};

TEST_F(Evaluate, SaysWhatValidationSaid) {
  const Outcome outcome = evaluate(1, "");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"t2m [K]", "u10 [m s**-1]", "tropics", "18 h", "scored 9 forecasts of 3 steps"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " is not in\n" << outcome.out;
  const Json found = scores(), valid = metrics(trained(), "valid").back();
  EXPECT_EQ(found.at("lead_hours"), (Json{6, 12, 18}));
  EXPECT_EQ(found.at("forecasts"), kWindows);
  for (const char* variable : {"t2m", "u10"}) {
    for (std::size_t lead = 0; lead < kLeads; ++lead) {
      const Json& said =
          lead == 0 ? valid.at("metrics") : valid.at("leads").at(std::to_string(6 * (lead + 1)));
      for (const char* measure : {"rmse", "bias", "persistence_rmse"}) {
        const double wanted = said.at(variable).at(measure).get<double>();
        const double value = found.at("scores").at(variable).at("all").at(measure).at(lead).get<double>();
        EXPECT_NEAR(value, wanted, 1e-9 * std::abs(wanted) + 1e-12) << variable << measure << lead;
      }
    }
  }
}

/// Of nine windows numbers 0, 2, 4 and 6, on one rank and on two.
TEST_F(Evaluate, OfSomeForecasts) {
  ASSERT_EQ(predict(1, "some.nc", "--overwrite --steps 3 --period valid").exit_code, 0);
  const NetcdfReader file(folder() / "some.nc");
  const Truth states(data(), "t2m");
  const std::vector<double> forecast = file.values("t2m"), starts = file.values("time"),
                            weights = row_weights(file.values("latitude"));
  constexpr std::size_t kPoints = std::size_t{kRows} * kColumns;
  double bias = 0;  // of the second lead
  for (const std::size_t window : {0, 2, 4, 6}) {
    const std::vector<double>& truth = states.at.at(std::llround(starts[window]) + 12);
    double sum = 0, weight = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      const double w = weights[i / kColumns];
      sum += w * (forecast[(window * kLeads + 1) * kPoints + i] - truth[i]);
      weight += w;
    }
    bias += sum / weight / 4;
  }
  for (const int ranks : {1, 2}) {
    const Outcome outcome = evaluate(ranks, "--forecasts 4");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("scored 4 forecasts of 3 steps"), std::string::npos) << outcome.out;
    const Json found = scores();
    EXPECT_EQ(found.at("forecasts"), 4);
    EXPECT_EQ(outcome.err.find("left out"), std::string::npos) << outcome.err;
    EXPECT_NEAR(found.at("scores").at("t2m").at("all").at("bias").at(1).get<double>(), bias, 2e-5);
  }
  ASSERT_EQ(evaluate(1, "--forecasts 100").exit_code, 0);
  EXPECT_EQ(scores().at("forecasts"), kWindows);
}

TEST_F(Evaluate, ForecastsThatAreNotFiniteAreSaid) {
  const std::string checkpoint = not_finite_checkpoint();
  const Outcome outcome =
      run(1, "evaluate --config " + (folder() / "config.json") + " --checkpoint " + checkpoint);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: forecasts of t2m, u10 are not finite"), std::string::npos)
      << outcome.err;
}

/// Forecasts of the valid windows, their truth, and the climatology of the training period, by loops.
struct Verified {
  std::vector<double> forecast, weights;
  std::vector<std::vector<double>> truth, climate;  // by window and lead

  Verified(const NetcdfReader& file, const Truth& states, const std::string& variable)
      : forecast(file.values(variable)), weights(row_weights(file.values("latitude"))) {
    constexpr std::int64_t kYear = 447072;  // hours from 1970 to 2021
    const std::vector<double> starts = file.values("time");
    for (std::size_t window = 0; window < kWindows; ++window) {
      for (std::size_t lead = 0; lead < kLeads; ++lead) {
        const std::int64_t hour = std::llround(starts[window]) + 6 * (static_cast<std::int64_t>(lead) + 1);
        truth.push_back(states.at.at(hour));
        std::vector<double> sum(truth.back().size());
        double total = 0;
        for (std::int64_t day = 1; day < 12; ++day) {  // from 2 to 12 January
          const std::int64_t then = kYear + 24 * day + (hour - kYear) % 24;
          const double weight =
              std::max(0.0, 1 - std::abs(static_cast<double>((hour - kYear) / 24 - day)) / 30);
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * states.at.at(then)[i];
          total += weight;
        }
        for (double& value : sum) value /= total;
        climate.push_back(sum);
      }
    }
  }
};

TEST_F(Evaluate, IsWhatLoopsOverTheForecastsFind) {
  ASSERT_EQ(evaluate(1, "--region 'a box=20,60,-30,40' --netcdf " + (folder() / "scores.nc")).exit_code, 0);
  const Json found = scores();
  ASSERT_EQ(predict(1, "verified.nc", "--overwrite --steps 3 --period valid").exit_code, 0);
  const NetcdfReader file(folder() / "verified.nc"), table(folder() / "scores.nc");
  const Json valid = metrics(trained(), "valid").back();
  EXPECT_EQ(table.text("region", "flag_meanings"),
            "all northern_hemisphere tropics southern_hemisphere a_box");
  EXPECT_EQ(table.numbers("region", "flag_values"), (std::vector<int>{0, 1, 2, 3, 4}));
  constexpr std::size_t kPoints = std::size_t{kRows} * kColumns;
  for (const char* variable : {"t2m", "u10"}) {
    const Verified v(file, Truth(data(), variable), variable);
    const std::vector<double> in_file = table.values(std::string(variable) + "_mae");
    for (const auto& [region, inside] : std::vector<std::pair<std::string, bool (*)(std::size_t)>>{
             {"all", [](std::size_t) { return true; }},
             {"tropics", [](std::size_t i) { return i / kColumns >= 14 && i / kColumns <= 22; }},
             {"a box", [](std::size_t i) {
                return i / kColumns >= 6 && i / kColumns <= 14 && (i % kColumns >= 66 || i % kColumns <= 8);
              }}}) {
      for (std::size_t lead = 0; lead < kLeads; ++lead) {
        double squares = 0, absolute = 0, bias = 0, correlation = 0, climatology = 0;
        for (std::size_t window = 0; window < kWindows; ++window) {
          const std::vector<double>&truth = v.truth[window * kLeads + lead],
                &climate = v.climate[window * kLeads + lead];
          double weight = 0, s = 0, a = 0, b = 0, ft = 0, ff = 0, tt = 0;
          for (std::size_t i = 0; i < kPoints; ++i) {
            if (!inside(i)) continue;
            const double w = v.weights[i / kColumns], f = v.forecast[(window * kLeads + lead) * kPoints + i],
                         t = truth[i], c = climate[i];
            weight += w;
            s += w * (f - t) * (f - t);
            a += w * std::abs(f - t);
            b += w * (f - t);
            ft += w * (f - c) * (t - c);
            ff += w * (f - c) * (f - c);
            tt += w * (t - c) * (t - c);
          }
          squares += s / weight / kWindows;
          absolute += a / weight / kWindows;
          bias += b / weight / kWindows;
          correlation += ft / std::sqrt(ff * tt) / kWindows;
          climatology += tt / weight / kWindows;
        }
        const Json& said = found.at("scores").at(variable).at(region);
        const auto check = [&](const char* measure, double wanted, double tolerance) {
          EXPECT_NEAR(said.at(measure).at(lead).get<double>(), wanted, tolerance)
              << variable << " " << region << " " << measure << " " << lead;
        };
        // What was read back is rounded to float32.
        check("rmse", std::sqrt(squares), 1e-5 * std::sqrt(squares));
        check("mae", absolute, 1e-5 * absolute);
        check("bias", bias, 2e-5);
        check("acc", correlation, 1e-5);
        check("climatology_rmse", std::sqrt(climatology), 1e-5 * std::sqrt(climatology));
        EXPECT_LT(correlation, 1.0);
        if (region != "all") continue;
        EXPECT_DOUBLE_EQ(in_file[lead], said.at("mae").at(lead).get<double>());
        const Json& of_lead =
            lead == 0 ? valid.at("metrics") : valid.at("leads").at(std::to_string(6 * (lead + 1)));
        EXPECT_NEAR(of_lead.at(variable).at("climatology_rmse").get<double>(), std::sqrt(climatology),
                    1e-6 * std::sqrt(climatology))
            << variable << " " << lead;
      }
    }
  }
}

/// A climatology that is not of the data, by hour, day of the year and place, as float.
double climate(const std::string& variable, int hour, int day, double latitude, double longitude) {
  const double across = latitude * std::numbers::pi / 180, along = longitude * std::numbers::pi / 180;
  const double change = 4 * std::sin(1.3 * day + 2 * along) + 0.2 * hour * std::sin(3 * across + along);
  return static_cast<float>((variable == "t2m" ? 260 + 25 * std::cos(across) : 5 * std::sin(4 * across)) +
                            change);
}

/// In the layout of WeatherBench 2, with a few days, rows from south to north and columns from 180 W on.
/// @param order  of the variable's dimensions
void write_climatology(const std::string& path, const std::string& variable, const std::string& name,
                       const std::vector<std::string>& order) {
  const std::map<std::string, std::vector<double>> axes = [] {
    std::map<std::string, std::vector<double>> values = {{"hour", {0, 6, 12, 18}}, {"dayofyear", {}}};
    for (int day = 30; day <= 37; ++day) values["dayofyear"].push_back(day);
    for (int row = 0; row < 37; ++row) values["latitude"].push_back(-90 + 5 * row);
    for (int column = 0; column < 72; ++column) values["longitude"].push_back(-180 + 5 * column);
    return values;
  }();
  testing::NetcdfWriter file(path);
  std::map<std::string, int> dimensions, variables;
  for (const auto& [axis, values] : axes) {
    dimensions[axis] = file.dimension(axis, values.size());
    variables[axis] = file.variable(axis, NC_DOUBLE, {dimensions[axis]});
  }
  file.text(variables["latitude"], "units", "degrees_north");
  file.text(variables["longitude"], "units", "degrees_east");
  std::vector<int> of_variable;
  std::size_t count = 1;
  for (const std::string& axis : order) {
    of_variable.push_back(dimensions[axis]);
    count *= axes.at(axis).size();
  }
  const int id = file.variable(name, NC_FLOAT, of_variable);
  file.end();
  for (const auto& [axis, values] : axes) file.put(variables[axis], values);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    std::map<std::string, double> at;
    std::size_t rest = i;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      at[*axis] = axes.at(*axis)[rest % axes.at(*axis).size()];
      rest /= axes.at(*axis).size();
    }
    values.push_back(climate(variable, static_cast<int>(at["hour"]), static_cast<int>(at["dayofyear"]),
                             at["latitude"], at["longitude"]));
  }
  file.put(id, values);
}

TEST_F(Evaluate, TheClimatologyMayBeThatOfFiles) {
  const std::string t2m = folder() / "climate_t2m.nc", u10 = folder() / "climate_u10.nc";
  write_climatology(t2m, "t2m", "2m_temperature", {"hour", "dayofyear", "longitude", "latitude"});
  write_climatology(u10, "u10", "10m_u_component_of_wind", {"dayofyear", "latitude", "hour", "longitude"});
  ASSERT_EQ(predict(1, "climate.nc", "--overwrite --steps 3 --period valid").exit_code, 0);
  const NetcdfReader file(folder() / "climate.nc");
  const std::vector<double> starts = file.values("time"), latitudes = file.values("latitude"),
                            longitudes = file.values("longitude");
  for (const MeshCase& mesh : {MeshCase{"{}", 1}, {R"({"domain":[1,2]})", 2}}) {
    const Outcome outcome =
        evaluate(mesh.ranks, "--climatology " + t2m + " " + u10 + " --set 'mesh=" + mesh.json + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json found = scores();
    for (const char* variable : {"t2m", "u10"}) {
      const Verified v(file, Truth(data(), variable), variable);
      constexpr std::size_t kPoints = std::size_t{kRows} * kColumns;
      for (const bool tropics : {false, true}) {
        for (std::size_t lead = 0; lead < kLeads; ++lead) {
          double correlation = 0;
          for (std::size_t window = 0; window < kWindows; ++window) {
            // From 1 February on, the 32nd day.
            const auto hour = std::llround(starts[window] - starts[0]) + 6 * (static_cast<int>(lead) + 1);
            double ft = 0, ff = 0, tt = 0;
            for (std::size_t i = 0; i < kPoints; ++i) {
              const double latitude = latitudes[i / kColumns], w = v.weights[i / kColumns];
              if (tropics && std::abs(latitude) > 20) continue;
              const double c = climate(variable, static_cast<int>(hour % 24),
                                       32 + static_cast<int>(hour / 24), latitude, longitudes[i % kColumns]),
                           f = v.forecast[(window * kLeads + lead) * kPoints + i] - c,
                           t = v.truth[window * kLeads + lead][i] - c;
              ft += w * f * t;
              ff += w * f * f;
              tt += w * t * t;
            }
            correlation += ft / std::sqrt(ff * tt) / kWindows;
          }
          const Json& said = found.at("scores").at(variable).at(tropics ? "tropics" : "all").at("acc");
          EXPECT_NEAR(said.at(lead).get<double>(), correlation, 1e-5) << mesh.json << variable << lead;
          EXPECT_LT(correlation, 0.9999);
        }
      }
    }
  }
}

TEST_F(Evaluate, TheNetcdfHoldsTheNumbersOfTheJson) {
  // One forecast, of which the climatology of the training period knows the first day only.
  const Outcome outcome =
      evaluate(1, "--period 2021-02-10T06:00 2021-02-11T06:00 --leads 4 --region box=20,60,-30,40 --netcdf " +
                      (folder() / "table.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json found = scores();
  const NetcdfReader table(folder() / "table.nc");
  EXPECT_EQ(found.at("forecasts"), 1);
  EXPECT_EQ(table.values("lead_time"), found.at("lead_hours").get<std::vector<double>>());
  EXPECT_EQ(table.text("lead_time", "units"), "hours");
  std::string regions;
  for (const auto& region : found.at("regions").items())
    regions += (regions.empty() ? "" : " ") + region.key();
  EXPECT_EQ(table.text("region", "flag_meanings"), regions);
  EXPECT_EQ(table.text("", "title"), found.at("title"));
  EXPECT_EQ(table.text("", "source"), found.at("source"));
  std::size_t missing = 0, variables = 7;  // the axes, and limits of regions
  // NaN in NetCDF is null in JSON.
  const auto check = [&](const std::string& name, const std::vector<std::string>& dimensions,
                         const Json& wanted) {
    EXPECT_EQ(table.dimensions(name), dimensions);
    const std::vector<double> values = table.values(name);
    ASSERT_EQ(values.size(), wanted.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (wanted[i].is_null()) {
        EXPECT_TRUE(std::isnan(values[i])) << name << i;
        ++missing;
      } else {
        EXPECT_EQ(values[i], wanted[i].get<double>()) << name << i;
      }
    }
    ++variables;
  };
  const auto append = [](Json& list, const Json& more) { list.insert(list.end(), more.begin(), more.end()); };
  for (const auto& [variable, of_variable] : found.at("scores").items()) {
    for (const char* measure : {"rmse", "mae", "bias", "acc", "acc_forecasts", "persistence_rmse",
                                "climatology_rmse", "scored", "forecast_mean", "truth_mean"}) {
      Json wanted = Json::array();
      for (const auto& region : found.at("regions").items())
        append(wanted, of_variable.at(region.key()).at(measure));
      const std::string name = variable + "_" + measure;
      check(name, {"region", "lead_time"}, wanted);
      EXPECT_EQ(table.text(name, "units"),
                std::string(measure).starts_with("acc") || measure == std::string("scored")
                    ? "1"
                    : of_variable.at("units").get<std::string>());
    }
    for (const auto& [of, name] : {std::pair{"forecast", "_power"}, {"truth", "_power_truth"}}) {
      Json wanted = Json::array();
      for (const Json& lead : found.at("spectra").at(variable).at(of)) append(wanted, lead);
      check(variable + name, {"lead_time", "wave_number"}, wanted);
    }
  }
  EXPECT_EQ(missing, 2U * 2 * 5 * 2)
      << "ACC and error of the climatology of two variables in five regions at the last two leads";
  int in_file = 0;
  ASSERT_EQ(nc_inq_nvars(table.id(), &in_file), NC_NOERR);
  EXPECT_EQ(static_cast<std::size_t>(in_file), variables);
  EXPECT_EQ(variables, 7U + 2 * 12);
}

/// Of files of float32, in which a few values come to lie on the other side of a threshold.
TEST_F(Evaluate, ThresholdsAreWhatLoopsOverTheForecastsFind) {
  const Outcome outcome = evaluate(2,
                                   "--threshold t2m=275,290 u10=0 --fss-scales 1 5 --region "
                                   "box=20,60,-30,40 --set 'mesh={\"domain\":[2,1]}' --netcdf " +
                                       (folder() / "thresholds.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"t2m >= 275 K", "u10 >= 0 m s**-1", "FSS 5", "freq.bias"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " is not in\n" << outcome.out;
  const Json found = scores().at("thresholds");
  ASSERT_EQ(predict(1, "thresholds_of.nc", "--overwrite --steps 3 --period valid").exit_code, 0);
  const NetcdfReader file(folder() / "thresholds_of.nc"), table(folder() / "thresholds.nc");
  EXPECT_EQ(table.values("t2m_threshold"), (std::vector<double>{275, 290}));
  EXPECT_EQ(table.values("fss_scale"), (std::vector<double>{1, 5}));
  constexpr std::size_t kPoints = std::size_t{kRows} * kColumns, kLead = 1, kRegions = 5;
  for (const auto& [variable, text, threshold, place] :
       std::vector<std::tuple<std::string, std::string, double, std::size_t>>{
           {"t2m", "275", 275, 0}, {"t2m", "290", 290, 1}, {"u10", "0", 0, 0}}) {
    SCOPED_TRACE(variable + " " + text);
    const Verified v(file, Truth(data(), variable), variable);
    double hits = 0, alarms = 0, misses = 0, all = 0, apart = 0, largest = 0;
    for (std::size_t window = 0; window < kWindows; ++window) {
      const double* const forecast = v.forecast.data() + (window * kLeads + kLead) * kPoints;
      const std::vector<double>& truth = v.truth[window * kLeads + kLead];
      for (std::size_t i = 0; i < kPoints; ++i) {
        const double w = v.weights[i / kColumns];
        const bool told = forecast[i] >= threshold, came = truth[i] >= threshold;
        all += w;
        hits += told && came ? w : 0;
        alarms += told && !came ? w : 0;
        misses += !told && came ? w : 0;
        double p = 0, q = 0;
        for (std::size_t row = i / kColumns < 2 ? 0 : i / kColumns - 2;
             row < std::min<std::size_t>(kRows, i / kColumns + 3); ++row) {
          for (std::size_t right = 0; right < 5; ++right) {
            const std::size_t there = row * kColumns + (i % kColumns + kColumns + right - 2) % kColumns;
            p += forecast[there] >= threshold ? 0.04 : 0;
            q += truth[there] >= threshold ? 0.04 : 0;
          }
        }
        apart += w * (p - q) * (p - q);
        largest += w * (p * p + q * q);
      }
    }
    const Json& said = found.at(variable).at(text).at("all");
    EXPECT_NEAR(said.at("hits").at(kLead).get<double>(), hits / all, 2e-3);
    EXPECT_NEAR(said.at("csi").at(kLead).get<double>(), hits / (hits + alarms + misses), 2e-3);
    EXPECT_NEAR(said.at("frequency_bias").at(kLead).get<double>(), (hits + alarms) / (hits + misses), 2e-3);
    EXPECT_NEAR(said.at("fss_5").at(kLead).get<double>(), 1 - apart / largest, 2e-3);
    EXPECT_DOUBLE_EQ(table.values(variable + "_csi")[place * kRegions * kLeads + kLead],
                     said.at("csi").at(kLead).get<double>());
    EXPECT_DOUBLE_EQ(table.values(variable + "_fss")[(place * kRegions * kLeads + kLead) * 2 + 1],
                     said.at("fss_5").at(kLead).get<double>());
    EXPECT_TRUE(found.at(variable).at(text).at("box").contains("hss"));
  }
}

TEST_F(Evaluate, SpectraAreThoseOfTheRows) {
  ASSERT_EQ(evaluate(2, "--set 'mesh={\"domain\":[1,2]}'").exit_code, 0);
  const Json found = scores().at("spectra").at("u10");
  ASSERT_EQ(predict(1, "spectra.nc", "--overwrite --steps 3 --period valid").exit_code, 0);
  const NetcdfReader file(folder() / "spectra.nc");
  const Verified v(file, Truth(data(), "u10"), "u10");
  constexpr std::size_t kPoints = std::size_t{kRows} * kColumns, kLead = 1;
  std::vector<double> truth(37), forecast(37);
  for (std::size_t window = 0; window < kWindows; ++window) {
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t k = 0; k <= 36; ++k) {
        std::complex<double> t = 0, f = 0;
        for (std::size_t l = 0; l < kColumns; ++l) {
          const auto turn =
              std::polar(1.0 / kColumns, -2 * std::numbers::pi * static_cast<double>(k * l) / kColumns);
          t += turn * v.truth[window * kLeads + kLead][row * kColumns + l];
          f += turn * v.forecast[(window * kLeads + kLead) * kPoints + row * kColumns + l];
        }
        const double weight = v.weights[row] / (kRows * kWindows) * (k == 0 || k == 36 ? 1 : 2);
        truth[k] += weight * std::norm(t);
        forecast[k] += weight * std::norm(f);
      }
    }
  }
  for (std::size_t k = 0; k <= 36; ++k) {
    EXPECT_NEAR(found.at("truth").at(kLead).at(k).get<double>(), truth[k], 1e-6 * truth[k] + 1e-9) << k;
    EXPECT_NEAR(found.at("forecast").at(kLead).at(k).get<double>(), forecast[k], 1e-5 * forecast[k] + 1e-7)
        << k;
  }
}

/// The largest relative difference of two numbers at one place; of texts and missing numbers 0 or 1.
double difference(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    const double x = a.get<double>(), y = b.get<double>();
    return std::abs(x - y) / std::max({std::abs(x), std::abs(y), 1e-6});
  }
  if (!a.is_structured() || a.size() != b.size()) return a == b ? 0 : 1;
  double worst = 0;
  const Json flat_a = a.flatten(), flat_b = b.flatten();
  for (const auto& [key, value] : flat_a.items())
    worst = std::max(worst, flat_b.contains(key) ? difference(value, flat_b.at(key)) : 1.0);
  return worst;
}

TEST_F(Evaluate, IsTheSameOnEveryMesh) {
  const std::string thresholds = "--threshold t2m=275,290 u10=0 --fss-scales 1 9 ";
  ASSERT_EQ(evaluate(1, thresholds).exit_code, 0);
  const Json one = scores();
  const std::vector<MeshCase> meshes = {{R"({"domain":[2,1]})", 2},
                                        {R"({"tensor":2})", 2},
                                        {R"({"data":2})", 2},
                                        {R"({"data":2,"domain":[1,2]})", 4},
                                        {R"({"domain":[3,1]})", 3}};
  for (const MeshCase& mesh : meshes) {
    ASSERT_EQ(evaluate(mesh.ranks, thresholds + "--set 'mesh=" + mesh.json + "'").exit_code, 0) << mesh.json;
    const Json many = scores();
    EXPECT_LE(difference(one.at("thresholds"), many.at("thresholds")), 1e-9) << mesh.json;
    const double scored = difference(one.at("scores"), many.at("scores")),
                 spectra = difference(one.at("spectra"), many.at("spectra"));
    std::printf("%-28s %d ranks: scores differ by %.1e, spectra by %.1e\n", mesh.json, mesh.ranks, scored,
                spectra);
    EXPECT_LE(scored, 1e-8) << mesh.json;
    EXPECT_LE(spectra, 1e-6) << mesh.json;
  }
}

/// What reads the table ends before it comes: the files are there, and it is no error.
TEST_F(Evaluate, AReaderWhoIsGoneTakesNoScoresAlong) {
  const std::string code = folder() / "code", json = folder() / "unread.json",
                    netcdf = folder() / "unread.nc";
  const std::string command = "{ " + std::string(JIGSAW_TRAIN) + " evaluate --config " +
                              (folder() / "config.json") + " --checkpoint " + trained() + " --json " + json +
                              " --netcdf " + netcdf + "; echo $? > " + quoted(code) + "; } | true";
  ASSERT_NE(std::system(command.c_str()), -1);
  EXPECT_EQ(read(code), "0\n");
  EXPECT_EQ(Json::parse(read(json)).at("forecasts"), kWindows);
  EXPECT_TRUE(NetcdfReader(netcdf).has("t2m_rmse"));
}

TEST_F(Evaluate, AnyPeriodAndAnyNumberOfLeads) {
  const Outcome dates = evaluate(1, "--period 2021-02-10 2021-02-11 --leads 5 --set validation.rollout=2");
  ASSERT_EQ(dates.exit_code, 0) << dates.err;
  Json found = scores();
  EXPECT_EQ(found.at("lead_hours"), (Json{6, 12, 18, 24, 30}));
  EXPECT_EQ(found.at("forecasts"), 3);
  EXPECT_EQ(found.at("periods").at(0), "2021-02-10 to 2021-02-11");
  // 11 February is 30 days from the last day of training.
  EXPECT_FALSE(found.at("scores").at("t2m").at("all").at("acc").at(0).is_null());
  ASSERT_EQ(evaluate(1, "--period 2021-02-20 2021-02-21 --leads 1").exit_code, 0);
  EXPECT_TRUE(scores().at("scores").at("t2m").at("all").at("acc").at(0).is_null());
  ASSERT_EQ(evaluate(1, "--period train --leads 1").exit_code, 0);
  EXPECT_EQ(scores().at("forecasts"), 43);
}

/// The files end on 28 February at 18:00.
TEST_F(Evaluate, SaysWhatOfThePeriodIsThere) {
  const std::string netcdf = folder() / "covered.nc";
  const Outcome beyond = evaluate(1, "--period 2021-02-26 2021-03-05 --leads 2 --netcdf " + netcdf);
  ASSERT_EQ(beyond.exit_code, 0) << beyond.err;
  std::string said;
  for (const std::string& line : beyond.said()) said += line + "\n";
  for (const char* part :
       {"--period (2021-02-26 to 2021-03-05) is not covered by the files, which hold 2021-02-26T00:00 to "
        "2021-02-28T18:00 of it",
        "of the 30 windows in --period, 20 are left out, for the files lack states that they need: 20 for "
        "t2m "
        "and 1 more variable"})
    EXPECT_NE(said.find(part), std::string::npos) << part << " is not in\n" << said;
  const Json found = scores().at("coverage");
  EXPECT_EQ(found.at("first_start"), "2021-02-26T00:00");
  EXPECT_EQ(found.at("last_start"), "2021-02-28T06:00");
  EXPECT_EQ(found.at("windows"), 30);
  EXPECT_EQ(found.at("scored"), 10);
  EXPECT_EQ(found.at("left_out"), (Json{{{"variables", {"t2m", "u10"}}, {"windows", 20}}}));
  const NetcdfReader file(netcdf);
  char text[64] = {};
  ASSERT_EQ(nc_get_att_text(file.id(), NC_GLOBAL, "last_start", text), NC_NOERR);
  EXPECT_STREQ(text, "2021-02-28T06:00");
  int windows = 0;
  ASSERT_EQ(nc_get_att_int(file.id(), NC_GLOBAL, "windows", &windows), NC_NOERR);
  EXPECT_EQ(windows, 30);
  const Outcome inside = evaluate(1, "--period 2021-02-08 2021-02-09 --leads 2");
  EXPECT_TRUE(inside.said().empty()) << inside.err;
  EXPECT_EQ(scores().at("coverage").at("windows"), 6);
  EXPECT_EQ(scores().at("coverage").at("left_out"), Json::array());
}

TEST_F(Evaluate, ShowsSomeOfManyLeadsAndWritesAll) {
  const Outcome outcome = evaluate(1, "--period 2021-02-10 2021-02-19 --leads 36");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(scores().at("scores").at("t2m").at("all").at("rmse").size(), 36U);
  // Of 36 leads the first and each second one.
  EXPECT_NE(outcome.out.find("of 36 leads 17 are left out here; the files of --json and --netcdf hold all"),
            std::string::npos)
      << outcome.out;
}

TEST_F(Evaluate, WrongInputIsOneSentence) {
  const auto check = [&](const std::string& arguments, int code, const std::string& says) {
    const Outcome outcome = evaluate(2, arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  };
  check("--period yesterday", 2, "--period yesterday must be train, valid, or two dates");
  check("--period 2021-02-10 2021-02-01", 2, "--period 2021-02-10 2021-02-01 ends before it begins");
  check("--period 1999-01-01 1999-01-02", 3, "--period (1999-01-01");
  check("--region nowhere", 2, "--region nowhere must be NAME=SOUTH,NORTH,WEST,EAST");
  check("--region tropics=1,2,3,4", 2, "name of another region");
  check("--region dot=1,2,3,4", 2, "holds no point");
  check("--set data.valid=[]", 2, "data.valid");
  check("--threshold t2n=1", 2,
        "validation.thresholds names t2n, which is no target (did you mean \"t2m\"?); known: t2m, u10");
  check("--threshold t2m=5,1", 2, "must give t2m one or more numbers, each above the one before");
  check("--threshold t2m=5 --fss-scales 4", 2, "validation.fss_scales must be odd numbers of points");
  check("--fss-scales 3", 2, "validation.fss_scales has no effect");
  const Outcome unreadable = evaluate(1, "--threshold t2m");
  EXPECT_EQ(unreadable.exit_code, 2);
  EXPECT_NE(unreadable.err.find("must be NAME=VALUE,VALUE"), std::string::npos) << unreadable.err;
  check("--netcdf " + (folder() / "./scores.json"), 2, "--json and --netcdf both name ");
  check("--netcdf /dev/full", 2, "--netcdf /dev/full is no regular file");
  check("--netcdf " + (folder() / "no/such/scores.nc"), 2, "cannot be written");
}

}  // namespace
}  // namespace jigsaw::e2e
