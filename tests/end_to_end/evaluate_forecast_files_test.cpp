// Forecasts in files are scored as those that the model makes, whoever wrote them and in whichever layout.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <iterator>

#include "base/text.h"
#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace evaluate_forecast_files_test {

constexpr std::size_t kLeads = 3, kWindows = 9, kPoints = std::size_t{37} * 72;

class EvaluateForecastFiles : public TrainedForecasts {
 protected:
  static Outcome evaluate(int ranks, const std::string& more, const std::string& json = "scores.json") {
    return run(ranks, "evaluate --config " + (folder() / "config.json") + " --overwrite --json " +
                          (folder() / json) + " --region 'box=20,60,-30,40' " + more);
  }
  static Json scores(const std::string& json = "scores.json") { return Json::parse(read(folder() / json)); }
  static void predict_valid() {
    if (std::filesystem::exists(folder() / "valid.nc")) return;
    ASSERT_EQ(predict(1, "valid.nc", "--steps 3 --period valid").exit_code, 0);
  }

  /// Some starts of valid.nc as another program may write them: leads before starts, rows from south to
  /// north, longitudes before latitudes, and `more` added to all values.
  static void write_foreign(const std::string& name, std::size_t first, std::size_t end, double more,
                            const std::string& units_of_t2m = "K") {
    const NetcdfReader from(folder() / "valid.nc");
    const std::vector<double> times = from.values("time"), latitudes = from.values("latitude");
    testing::NetcdfWriter file(folder() / name);
    const int lead = file.dimension("prediction_timedelta", kLeads),
              time = file.dimension("time", end - first), longitude = file.dimension("longitude", kColumns),
              latitude = file.dimension("latitude", kRows);
    const int leads = file.variable("prediction_timedelta", NC_INT64, {lead}),
              starts = file.variable("time", NC_DOUBLE, {time}),
              columns = file.variable("longitude", NC_DOUBLE, {longitude}),
              rows = file.variable("latitude", NC_DOUBLE, {latitude});
    file.text(leads, "units", "nanoseconds");
    file.text(starts, "units", from.text("time", "units"));
    file.text(columns, "units", "degrees_east");
    file.text(rows, "units", "degrees_north");
    std::vector<int> fields;
    for (const char* variable : {"t2m", "u10"}) {
      fields.push_back(file.variable(variable, NC_FLOAT, {lead, time, longitude, latitude}));
      file.text(fields.back(), "units",
                variable == std::string("t2m") ? units_of_t2m : from.text(variable, "units"));
    }
    file.end();
    file.put(leads, {6 * 3600e9, 12 * 3600e9, 18 * 3600e9});
    file.put(starts, std::vector(times.begin() + static_cast<std::ptrdiff_t>(first),
                                 times.begin() + static_cast<std::ptrdiff_t>(end)));
    file.put(columns, from.values("longitude"));
    file.put(rows, std::vector(latitudes.rbegin(), latitudes.rend()));
    for (std::size_t v = 0; v < fields.size(); ++v) {
      const std::vector<double> values = from.values(v == 0 ? "t2m" : "u10");
      std::vector<double> turned;
      for (std::size_t l = 0; l < kLeads; ++l)
        for (std::size_t s = first; s < end; ++s)
          for (std::size_t x = 0; x < kColumns; ++x)
            for (std::size_t y = 0; y < kRows; ++y)
              turned.push_back(values[(s * kLeads + l) * kPoints + (kRows - 1 - y) * kColumns + x] + more);
      file.put(fields[v], turned);
    }
  }

  static void expect_equal(const Json& found, const Json& wanted, const std::string& what) {
    for (const char* variable : {"t2m", "u10"}) {
      for (const auto& region : wanted.at("regions").items()) {
        for (const char* measure : {"rmse", "mae", "bias", "acc", "persistence_rmse"}) {
          for (std::size_t lead = 0; lead < kLeads; ++lead) {
            const auto of = [&](const Json& json) {
              return json.at("scores").at(variable).at(region.key()).at(measure).at(lead).get<double>();
            };
            // Files hold float32.
            EXPECT_NEAR(of(found), of(wanted), 2e-5) << what << variable << region.key() << measure << lead;
          }
        }
      }
    }
  }
};

TEST_F(EvaluateForecastFiles, AsTheModelThatMadeThem) {
  predict_valid();
  ASSERT_EQ(evaluate(1, "--checkpoint " + trained(), "model.json").exit_code, 0);
  const Json model = scores("model.json");
  write_foreign("foreign_a.nc", 0, 4, 0);
  write_foreign("foreign_b.nc", 4, kWindows, 0);
  for (const auto& [files, ranks] : std::vector<std::pair<std::string, int>>{
           {"valid.nc", 1}, {"valid.nc", 3}, {"foreign_*.nc", 1}, {"foreign_*.nc", 2}}) {
    const Outcome outcome = evaluate(ranks, "--predictions '" + (folder() / files) + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.out.find("scored 9 forecasts of 3 steps"), std::string::npos) << outcome.out;
    expect_equal(scores(), model, files + ": ");
    EXPECT_EQ(scores().at("spectra").size(), 2U);
  }
}

TEST_F(EvaluateForecastFiles, SeveralOfOneForecastAreMembers) {
  predict_valid();
  write_foreign("warmer.nc", 0, kWindows, 1);
  ASSERT_EQ(evaluate(1, "--checkpoint " + trained(), "model.json").exit_code, 0);
  const Json model = scores("model.json");
  for (const int ranks : {1, 2}) {
    const Outcome outcome =
        evaluate(ranks, "--predictions " + (folder() / "valid.nc") + " " + (folder() / "warmer.nc"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json found = scores();
    EXPECT_EQ(found.at("members"), 2);
    for (const char* variable : {"t2m", "u10"}) {
      const Json &together = found.at("scores").at(variable).at("all"),
                 &alone = model.at("scores").at(variable).at("all");
      for (std::size_t lead = 0; lead < kLeads; ++lead) {
        const auto of = [&](const Json& json, const char* measure) {
          return json.at(measure).at(lead).get<double>();
        };
        // Half a kelvin more is the mean; members f and f + 1 differ by √(1/2) from it.
        EXPECT_NEAR(of(together, "bias"), of(alone, "bias") + 0.5, 2e-5);
        EXPECT_NEAR(of(together, "rmse"),
                    std::sqrt(of(alone, "rmse") * of(alone, "rmse") + of(alone, "bias") + 0.25), 2e-5);
        EXPECT_NEAR(of(together, "spread"), std::sqrt(0.5), 1e-5);
      }
    }
  }
}

/// A pattern that takes in the files of two models makes an ensemble of them: that is said, with two of them.
TEST_F(EvaluateForecastFiles, OfSeveralModelsAreSaidToBe) {
  predict_valid();
  ASSERT_EQ(predict(1, "last.nc", "--steps 3 --period valid --average never").exit_code, 0);
  const std::string valid = folder() / "valid.nc", last = folder() / "last.nc";
  for (const int ranks : {1, 2}) {
    const Outcome outcome = evaluate(ranks, "--predictions " + valid + " " + last);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("--predictions: " + last + " and " + valid + " were made by different models"),
              std::string::npos)
        << outcome.err;
  }
}

TEST_F(EvaluateForecastFiles, WhatIsMissingIsSaid) {
  predict_valid();
  write_foreign("part.nc", 2, 7, 0);
  const Outcome part = evaluate(2, "--predictions " + (folder() / "part.nc"));
  ASSERT_EQ(part.exit_code, 0) << part.err;
  EXPECT_NE(part.err.find(
                "of the 9 windows in data.valid, 4 are left out, for --predictions hold no whole forecast: "
                "from 2021-02-01T00:00 no forecast starts then"),
            std::string::npos)
      << part.err;
  EXPECT_EQ(scores().at("forecasts"), 5);
  EXPECT_EQ(scores().at("coverage").at("without_forecast"), 4);
  EXPECT_EQ(scores().at("coverage").at("first_start"), "2021-02-01T12:00");

  // One start of another forecast is no ensemble, and the same forecast twice no second member.
  write_foreign("warm_start.nc", 2, 3, 1);
  const Outcome stray =
      evaluate(1, "--predictions " + (folder() / "valid.nc") + " " + (folder() / "warm_start.nc"));
  ASSERT_EQ(stray.exit_code, 0) << stray.err;
  EXPECT_NE(stray.err.find("from 2021-02-01T12:00 there are 2 members, and 1 elsewhere"), std::string::npos)
      << stray.err;
  EXPECT_EQ(scores().at("forecasts"), 8);

  // Another unit, other leads, no forecasts, and what is a model's.
  write_foreign("celsius.nc", 0, kWindows, 0, "degC");
  const std::string valid = "--predictions " + (folder() / "valid.nc");
  for (const auto& [arguments, exit_code, error] : std::vector<std::tuple<std::string, int, std::string>>{
           {"--predictions " + (folder() / "celsius.nc"), 3,
            "t2m in " + (folder() / "celsius.nc") + " is in \"degC\""},
           {valid + " --leads 4", 3, "there is no lead 24 h of t2m"},
           {valid + " " + (folder() / "part.nc"), 3, "hold the same forecast from 2021-02-01T12:00"},
           {"--predictions " + data() + "/sample_2021-02.nc", 3, "there is no lead 6 h of t2m"},
           {"--predictions " + (folder() / "config.json"), 3, "config.json"},
           {valid + " --checkpoint " + trained(), 2, "--checkpoint is of a model"},
           {valid + " --members 2", 2, "--members is of a model"},
           {"", 2, "--checkpoint is required, or --predictions"}}) {
    const Outcome outcome = evaluate(1, arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << arguments << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(error), std::string::npos) << outcome.errors()[0];
  }
}

TEST_F(EvaluateForecastFiles, ByStart) {
  predict_valid();
  const auto by_start = [](int ranks, const std::string& name, const std::string& more) {
    return evaluate(ranks, more + " --by-start " + (folder() / name));
  };
  ASSERT_EQ(by_start(1, "model.nc", "--checkpoint " + trained()).exit_code, 0);
  const Json model = scores();
  // On ranks that share samples, and that share rows; of samples in another number at a time.
  ASSERT_EQ(by_start(2, "samples.nc", "--checkpoint " + trained() + " --set 'mesh={\"data\":2}'").exit_code,
            0);
  ASSERT_EQ(by_start(3, "rows.nc", "--predictions " + (folder() / "valid.nc")).exit_code, 0);
  const NetcdfReader file(folder() / "model.nc");
  EXPECT_EQ(file.dimensions("t2m_rmse"), (std::vector<std::string>{"time", "region", "lead_time"}));
  EXPECT_EQ(file.values("time").size(), kWindows);
  const std::size_t regions = file.values("region").size();
  for (const char* variable : {"t2m", "u10"}) {
    for (const char* measure : {"rmse", "mae", "bias", "acc", "persistence_rmse"}) {
      const std::string name = concat(variable, "_", measure);
      const std::vector<double> values = file.values(name),
                                of_samples = NetcdfReader(folder() / "samples.nc").values(name),
                                of_rows = NetcdfReader(folder() / "rows.nc").values(name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(of_samples[i], values[i], 1e-9) << name;
        EXPECT_NEAR(of_rows[i], values[i], 5e-5) << name;
      }
      const bool roots = std::string(measure).ends_with("rmse");
      for (std::size_t region = 0; region < regions; ++region) {
        for (std::size_t lead = 0; lead < kLeads; ++lead) {
          double sum = 0;
          for (std::size_t start = 0; start < kWindows; ++start) {
            const double value = values[(start * regions + region) * kLeads + lead];
            sum += (roots ? value * value : value) / kWindows;
          }
          const auto names = model.at("regions");
          const double wanted = model.at("scores")
                                    .at(variable)
                                    .at(std::next(names.begin(), static_cast<std::ptrdiff_t>(region)).key())
                                    .at(measure)
                                    .at(lead)
                                    .get<double>();
          EXPECT_NEAR(roots ? std::sqrt(sum) : sum, wanted, 1e-12 * (1 + std::abs(wanted))) << name;
        }
      }
    }
  }
}

TEST_F(EvaluateForecastFiles, ComparedOverTheirCommonStarts) {
  predict_valid();
  write_foreign("warmer_part.nc", 2, kWindows, 1);
  ASSERT_EQ(evaluate(1, "--predictions " + (folder() / "valid.nc") + " --by-start " + (folder() / "a.nc"))
                .exit_code,
            0);
  ASSERT_EQ(
      evaluate(1, "--predictions " + (folder() / "warmer_part.nc") + " --by-start " + (folder() / "b.nc"))
          .exit_code,
      0);
  const auto compare = [](const std::string& more) {
    return run(1, "compare " + (folder() / "a.nc") + " " + (folder() / "b.nc") + " " + more);
  };
  const Outcome outcome = compare("--score rmse bias --overwrite --json " + (folder() / "compared.json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("7 forecasts of both, from 2021-02-01T12:00 to 2021-02-03T00:00"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("t2m [K], rmse, all"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("tropics"), std::string::npos) << outcome.out;
  const Json found = scores("compared.json");
  EXPECT_EQ(found.at("forecasts"), 7);
  const NetcdfReader a(folder() / "a.nc"), b(folder() / "b.nc");
  const std::size_t regions = a.values("region").size();
  for (const char* variable : {"t2m", "u10"}) {
    const std::vector<double> of_a = a.values(concat(variable, "_rmse")),
                              of_b = b.values(concat(variable, "_rmse"));
    for (std::size_t lead = 0; lead < kLeads; ++lead) {
      double first = 0, second = 0;
      for (std::size_t start = 2; start < kWindows; ++start) {
        first += std::pow(of_a[start * regions * kLeads + lead], 2) / 7;
        second += std::pow(of_b[(start - 2) * regions * kLeads + lead], 2) / 7;
      }
      const Json &rmse = found.at("scores").at(variable).at("all").at("rmse"),
                 &bias = found.at("scores").at(variable).at("all").at("bias");
      const auto of = [lead](const Json& json, const char* name) {
        return json.at(name).at(lead).get<double>();
      };
      EXPECT_NEAR(of(rmse, "first"), std::sqrt(first), 1e-12);
      EXPECT_NEAR(of(rmse, "second"), std::sqrt(second), 1e-12);
      EXPECT_NEAR(of(rmse, "difference"), std::sqrt(second) - std::sqrt(first), 1e-12);
      EXPECT_LT(of(rmse, "low"), of(rmse, "difference"));
      EXPECT_GT(of(rmse, "high"), of(rmse, "difference"));
      EXPECT_EQ(of(rmse, "forecasts"), 7);
      // All forecasts are one warmer.
      EXPECT_NEAR(of(bias, "difference"), 1, 1e-5);
      EXPECT_LT(of(bias, "p"), 1e-6);
    }
  }
  for (const auto& [arguments, exit_code, error] : std::vector<std::tuple<std::string, int, std::string>>{
           {"--score crps", 2, "--score crps is not in both"},
           {"--score spread_skill", 2, "is a ratio of means"},
           {"--region tropic", 2, "did you mean \"tropics\""},
           {"--json " + (folder() / "a.nc") + " --overwrite", 2, "a.nc"}}) {
    const Outcome refused = compare(arguments);
    EXPECT_EQ(refused.exit_code, exit_code) << arguments << refused.err;
    ASSERT_EQ(refused.errors().size(), 1U) << arguments << refused.err;
    EXPECT_NE(refused.errors()[0].find(error), std::string::npos) << refused.errors()[0];
  }
  // Files from which scores were left out say of the others what they did.
  std::filesystem::copy_file(folder() / "a.nc", folder() / "some.nc",
                             std::filesystem::copy_options::overwrite_existing);
  int some = -1, variable = -1;
  ASSERT_EQ(nc_open((folder() / "some.nc").c_str(), NC_WRITE, &some), NC_NOERR);
  ASSERT_EQ(nc_inq_varid(some, "t2m_persistence_rmse", &variable), NC_NOERR);
  ASSERT_EQ(nc_rename_var(some, variable, "t2m_left_out"), NC_NOERR);
  ASSERT_EQ(nc_close(some), NC_NOERR);
  const Outcome left_out = run(1, "compare " + (folder() / "some.nc") + " " + (folder() / "b.nc"));
  EXPECT_EQ(left_out.exit_code, 0) << left_out.err;
  EXPECT_NE(left_out.out.find("t2m [K], rmse, all"), std::string::npos) << left_out.out;
  // Of the same forecasts beside another truth, which is another variable's here.
  ASSERT_EQ(evaluate(1, "--predictions " + (folder() / "valid.nc") +
                            " --set 'data.variables=[{\"name\":\"t2m\",\"data_set\":\"t2m\"}]' --set "
                            "data.every=[2,2] --by-start " +
                            (folder() / "coarse.nc"))
                .exit_code,
            0);
  const Outcome truths = run(1, "compare " + (folder() / "a.nc") + " " + (folder() / "coarse.nc"));
  EXPECT_EQ(truths.exit_code, 3) << truths.err;
  EXPECT_NE(truths.err.find("are of other truths: the mean of t2m"), std::string::npos) << truths.err;
  const Outcome other = run(1, "compare " + (folder() / "a.nc") + " " + (folder() / "valid.nc"));
  EXPECT_EQ(other.exit_code, 3) << other.err;
  EXPECT_NE(other.err.find("holds no scores by start"), std::string::npos) << other.err;
}

/// A forecast that is not finite is no better one for that.
TEST_F(EvaluateForecastFiles, WhatIsNotFiniteHasNoScore) {
  predict_valid();
  std::filesystem::copy_file(folder() / "valid.nc", folder() / "broken.nc",
                             std::filesystem::copy_options::overwrite_existing);
  write_foreign("warm.nc", 0, kWindows, 1);
  int file = -1, variable = -1;
  ASSERT_EQ(nc_open((folder() / "broken.nc").c_str(), NC_WRITE, &file), NC_NOERR);
  ASSERT_EQ(nc_inq_varid(file, "t2m", &variable), NC_NOERR);
  const std::size_t at[] = {4, 1, 10, 20};  // of one start the second lead at one point
  const float nan = std::nanf("");
  ASSERT_EQ(nc_put_var1_float(file, variable, at, &nan), NC_NOERR);
  ASSERT_EQ(nc_close(file), NC_NOERR);
  for (const int members : {1, 2}) {
    const Outcome outcome =
        evaluate(1, "--predictions " + (folder() / "broken.nc") +
                        (members == 2 ? " " + (folder() / "warm.nc") : "") + " --threshold t2m=280");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("forecasts of t2m are not finite"), std::string::npos) << outcome.err;
    const Json found = scores().at("scores").at("t2m").at("all");
    for (const char* measure : {"rmse", "mae", "bias", "acc", "crps", "spread"}) {
      if (!found.contains(measure)) continue;
      EXPECT_FALSE(found.at(measure).at(0).is_null()) << measure;
      EXPECT_TRUE(found.at(measure).at(1).is_null()) << measure << found.at(measure);
    }
    EXPECT_FALSE(found.at("climatology_rmse").at(1).is_null());
    if (members == 1) continue;
    const Json threshold = scores().at("thresholds").at("t2m").at("280").at("all");
    for (const char* measure : {"brier", "reliability", "resolution", "roc_area"})
      EXPECT_TRUE(threshold.at(measure).at(1).is_null()) << measure;
  }
}

/// What scores are worth depends on what the model, or the climatology, has seen.
TEST_F(EvaluateForecastFiles, WhatWasSeenInTrainingIsSaid) {
  const std::string checkpoint = "--checkpoint " + trained() + " ";
  const Outcome known = evaluate(1, checkpoint + "--period 2021-01-11 2021-01-14");
  ASSERT_EQ(known.exit_code, 0) << known.err;
  // They start from 11 January 00:00 to 14 January 00:00; those up to 12:00 of the 12th verify at times of
  // it.
  EXPECT_NE(
      known.err.find(
          "7 of the 13 forecasts are of times that the model was trained on (2021-01-02 to 2021-01-12)"),
      std::string::npos)
      << known.err;
  EXPECT_EQ(evaluate(1, checkpoint).err.find("trained on"), std::string::npos);
  EXPECT_EQ(evaluate(1, checkpoint + "--period train").err.find("trained on ("), std::string::npos);
  // The climatology ends thirty days behind 12 January.
  for (const int ranks : {1, 2}) {
    const Outcome partly = evaluate(ranks, checkpoint + "--period 2021-02-09 2021-02-12");
    ASSERT_EQ(partly.exit_code, 0) << partly.err;
    EXPECT_NE(partly.err.find(
                  "the climatology of data.train knows nothing of 8 of the 15 times that are verified, first "
                  "2021-02-11T00:00"),
              std::string::npos)
        << partly.err;
    const Json acc = scores().at("scores").at("t2m").at("all").at("acc_forecasts");
    EXPECT_EQ(acc, (Json{7, 6, 5}));
  }
  EXPECT_EQ(evaluate(1, checkpoint).err.find("climatology"), std::string::npos);
}

TEST_F(EvaluateForecastFiles, ASignalLeavesNothingAndTheConfigurationStays) {
  Running running(1, "evaluate --config " + (folder() / "config.json") + " --checkpoint " + trained() +
                         " --period 2021-01-01 2021-02-27 --leads 40 --json " + (folder() / "late.json") +
                         " --by-start " + (folder() / "late.nc"));
  ASSERT_TRUE(running.until([] { return is_under_way(folder() / "late.nc"); }));
  running.signal(SIGTERM);
  EXPECT_EQ(running.collect().exit_code, 75);
  for (const char* name : {"late.json", "late.nc"}) {
    EXPECT_FALSE(is_under_way(folder() / name)) << name;
    EXPECT_FALSE(std::filesystem::exists(folder() / name)) << name;
  }
  const std::string before = read(folder() / "config.json");
  for (const char* arguments : {"evaluate --json ", "predict --steps 1 --start 2021-02-02 --output "}) {
    const std::string command(arguments);
    const Outcome refused =
        run(1, command.substr(0, command.find(' ')) + " --config " + (folder() / "config.json") +
                   " --checkpoint " + trained() + command.substr(command.find(' ')) +
                   (folder() / "config.json") + " --overwrite");
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_NE(refused.err.find("is read, and is not replaced"), std::string::npos) << refused.err;
    EXPECT_EQ(read(folder() / "config.json"), before);
  }
}

}  // namespace evaluate_forecast_files_test
}  // namespace jigsaw::e2e
