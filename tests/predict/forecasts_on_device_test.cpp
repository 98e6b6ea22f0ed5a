// Validations, scores and files of forecasts on a simulated device, whose memory the host cannot read and
// whose work runs late, equal the host's bit for bit; with CUDA's kernels they do but for rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "config/config.h"
#include "evaluate/climatology_scores.h"
#include "evaluate/evaluation.h"
#include "predict/forecast.h"
#include "predict/restart_file.h"
#include "support/netcdf_reader.h"
#include "support/on_device.h"
#include "support/temporary_folder.h"
#include "train/forecast_file.h"
#include "train/trainer.h"

namespace jigsaw {
namespace forecasts_on_device_test {

using testing::NetcdfReader;
using testing::on_ranks;
using testing::Where;

/// Two fields around the globe, one of them missing here and there, of five days every six hours.
void write_fields(const std::string& path) {
  constexpr std::size_t kTimes = 20, kRows = 8, kColumns = 12;
  const testing::FileAxes axes = {testing::coordinates(kTimes, 0, 6), testing::coordinates(kRows, 70, -20),
                                  testing::coordinates(kColumns, 0, 30)};
  std::vector<double> warm, windy;
  for (std::size_t i = 0; i < kTimes * kRows * kColumns; ++i) {
    warm.push_back(280 + 9 * std::sin(0.37 * static_cast<double>(i)));
    windy.push_back(i % 61 == 0 ? NAN : 4 * std::cos(0.21 * static_cast<double>(i)));
  }
  testing::write_forecast_file(path, axes, {{"t2m", warm}, {"u10", windy}});
}

struct Case {
  const char* name;
  int ranks;
  const char* mesh;
  const char* precision;
  bool transformed;
};
const Case kCases[] = {{"plain", 1, "{}", "fp32", false},
                       {"transformed", 1, "{}", "fp32", true},
                       {"on_domain", 2, R"({"domain": [1, 2]})", "bf16", true},
                       {"on_tensor", 2, R"({"tensor": 2})", "fp32", true},
                       {"on_data", 2, R"({"data": 2})", "fp64", true}};

Configuration configuration_of(const Case& one, const std::string& output) {
  Json json = {{"data",
                {{"files", {"fields.nc"}},
                 {"variables", {"t2m", "u10"}},
                 {"forcings", {"latitude", "time_of_day"}},
                 {"predict", "increment"},
                 {"boundary_width", 1},
                 {"clamp", {{"u10", {-3.5, nullptr}}}},
                 {"train", {"2019-12-30", "2020-01-01"}},
                 {"valid", {"2020-01-02", "2020-01-03"}}}},
               {"model", {{"type", "weathermixer"}, {"patch", {2, 2}}, {"embed_dim", 8}, {"depth", 1}}},
               {"train", {{"steps", 2}, {"batch_size", 2}, {"precision", one.precision}}},
               {"validation",
                {{"every", 2},
                 {"rollout", 2},
                 {"thresholds", {{"t2m", {275, 285}}, {"u10", Json::array({0})}}},
                 {"fss_scales", {1, 3}}}},
               {"checkpoint", {{"every", 2}}},
               {"mesh", Json::parse(one.mesh)},
               // As if they had been measured, for on a fake GPU that takes long.
               {"machine",
                {{"flops_per_second", 1e12},
                 {"memory_bytes_per_second", 1e11},
                 {"links", {{{"bytes_per_second", 1e10}, {"latency_seconds", 1e-6}}}}}},
               {"output", output}};
  if (one.transformed) json["data"]["transforms"] = {{"t2m", "log"}};
  return parse<Configuration>(json);
}

/// What is found of forecasts.
struct Found {
  Json validation;                   ///< of the training, by variable, with those of later leads
  Json scores, thresholds, climate;  ///< of evaluate_forecasts()
  std::string maps, error_maps;      ///< of its climate, and of errors, all bytes
  std::string file;                  ///< of write_forecasts(), all bytes
  std::vector<double> warm, windy;   ///< what it holds
};

class ForecastsOnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    write_fields(folder_.path() + "/fields.nc");
  }

  std::string output(const Case& one, Where place) const {
    return folder_.path() + "/" + one.name + std::to_string(static_cast<int>(place));
  }
  void train(const Case& one, Where where) {
    on_ranks(one.name, one.ranks, where, [&](Communicator& world, Log& log) {
      ClimatologyScores climatology(log);
      RunOptions options;
      options.config_folder = folder_.path();
      options.resume = "never";
      options.observers = {&climatology};
      Trainer trainer(configuration_of(one, output(one, where)), options, world, log);
      EXPECT_EQ(trainer.run(), ExitCode::kDone);
    });
  }
  /// Of the model that the host has trained, which is planned for four leads. @return  u10, then t2m
  std::vector<double> forecast(const Case& one, Where where, ForecastOptions forecasts,
                               const std::string& from) {
    on_ranks(one.name, one.ranks, where, [&](Communicator& world, Log& log) {
      Configuration configuration = configuration_of(one, output(one, Where::kHost));
      configuration.validation.rollout = 4;
      DataUse inputs_only;
      inputs_only.train = inputs_only.valid = false;
      TrainedModel model(configuration, folder_.path(), output(one, Where::kHost), Weights::kAuto,
                         inputs_only, world, log);
      std::optional<RestartFile> restart;
      if (!from.empty()) restart.emplace(from);
      ForecastOptions own = forecasts;
      own.restart_from = restart ? &*restart : nullptr;
      EXPECT_FALSE(write_forecasts(model, own, log));
    });
    const NetcdfReader reader(forecasts.output);
    std::vector<double> values = reader.values("u10");
    const std::vector<double> warm = reader.values("t2m");
    values.insert(values.end(), warm.begin(), warm.end());
    return values;
  }

  /// Trains there, and scores and writes what the model predicts that the host has trained.
  Found find(const Case& one, Where where) {
    train(one, where);
    const std::string json = output(one, where) + "/scores.json", file = output(one, where) + "/forecasts.nc";
    on_ranks(one.name, one.ranks, where, [&](Communicator& world, Log& log) {
      DataUse validation_only;
      validation_only.train = false;
      TrainedModel model(configuration_of(one, output(one, Where::kHost)), folder_.path(),
                         output(one, Where::kHost), Weights::kAuto, validation_only, world, log);
      EvaluationOptions scores{.json = json, .netcdf = ""};
      scores.regions = {"box=-40,40,50,200"};
      scores.climate = {ClimateGroups::kSeason, 1};
      scores.maps = {output(one, where) + "/maps.nc", output(one, where) + "/errors.nc"};
      evaluate_forecasts(model, scores, log);
      ForecastOptions forecasts;
      forecasts.output = file;
      forecasts.steps = 2;
      write_forecasts(model, forecasts, log);
    });
    if (HasFailure()) return {};
    Found found;
    std::istringstream lines(testing::text_of(output(one, where) + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json said = Json::parse(line);
      if (said.at("kind") == "valid")
        found.validation = {
            {"loss", said.at("loss")}, {"metrics", said.at("metrics")}, {"leads", said.at("leads")}};
    }
    const Json evaluated = Json::parse(testing::text_of(json));
    found.scores = evaluated.at("scores");
    found.thresholds = evaluated.at("thresholds");
    found.climate = evaluated.at("climate");
    found.maps = testing::text_of(output(one, where) + "/maps.nc");
    found.error_maps = testing::text_of(output(one, where) + "/errors.nc");
    found.file = testing::text_of(file);
    const NetcdfReader reader(file);
    found.warm = reader.values("t2m");
    found.windy = reader.values("u10");
    return found;
  }

  testing::TemporaryFolder folder_;
};

/// Whether there is something in all that is compared.
void expect_whole(const Found& found) {
  const Json& metrics = found.validation.at("metrics");
  for (const char* measure : {"rmse", "bias", "persistence_rmse", "climatology_rmse"}) {
    EXPECT_TRUE(metrics.at("t2m").at(measure).is_number()) << metrics;
    EXPECT_TRUE(metrics.at("u10").at(measure).is_number()) << metrics;
  }
  EXPECT_EQ(found.validation.at("leads").size(), 1U);
  const Json& box = found.scores.at("u10").at("box");
  for (const char* measure : {"rmse", "mae", "bias", "acc"})
    EXPECT_TRUE(box.at(measure).at(1).is_number()) << box;
  const Json& cold = found.thresholds.at("t2m").at("275").at("box");
  for (const char* measure : {"csi", "hss", "fss_3"}) EXPECT_TRUE(cold.at(measure).at(1).is_number()) << cold;
  const Json& climate = found.climate.at("scores").at("u10").at("box");
  for (const char* measure : {"rmse", "pattern_correlation", "std_ratio"})
    EXPECT_TRUE(climate.at(measure).at(1).is_number()) << climate;
  EXPECT_EQ(std::ranges::count_if(found.warm, [](double value) { return std::isnan(value); }), 0);
  EXPECT_GT(std::ranges::count(found.windy, -3.5), 0) << "nothing was clamped";
}

TEST_F(ForecastsOnDevice, AreTheHostsBitForBit) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    const Found host = find(one, Where::kHost), device = find(one, Where::kSimulated);
    if (HasFailure()) return;
    expect_whole(host);
    EXPECT_EQ(device.validation, host.validation);
    EXPECT_EQ(device.scores, host.scores);
    EXPECT_EQ(device.thresholds, host.thresholds);
    EXPECT_EQ(device.climate, host.climate);
    EXPECT_TRUE(device.maps == host.maps);
    EXPECT_TRUE(device.error_maps == host.error_maps);
    EXPECT_TRUE(device.file == host.file);
  }
}

/// Two steps and two more from the state that they end in are four steps: of three starts in two batches,
/// with ranges, a rim and increments, in any precision and on any mesh.
TEST_F(ForecastsOnDevice, GoOnToTheLastBit) {
  constexpr std::size_t kStarts = 3, kPoints = 8 * 12;
  for (const Case& one : kCases) {
    train(one, Where::kHost);
    for (const Where where : {Where::kHost, Where::kSimulated}) {
      SCOPED_TRACE(::testing::Message() << one.name << static_cast<int>(where));
      ForecastOptions whole;
      whole.starts = {"2020-01-01", "2020-01-01T12:00", "2020-01-02"};
      whole.steps = 4;
      whole.overwrite = true;
      whole.output = folder_.path() + "/whole.nc";
      ForecastOptions begun = whole, rest = whole;
      begun.steps = rest.steps = 2;
      begun.output = folder_.path() + "/begun.nc";
      rest.output = folder_.path() + "/rest.nc";
      const std::vector<double> four = forecast(one, where, whole, ""), two = forecast(one, where, begun, ""),
                                more = forecast(one, where, rest, begun.output);
      if (HasFailure()) return;
      ASSERT_EQ(four.size(), 2 * kStarts * 4 * kPoints);
      ASSERT_EQ(two.size() + more.size(), four.size());
      for (std::size_t i = 0; i < four.size(); ++i) {
        const std::size_t forecast = i / (4 * kPoints), lead = i / kPoints % 4, point = i % kPoints;
        const std::size_t at = (forecast * 2 + lead % 2) * kPoints + point;
        ASSERT_EQ(lead < 2 ? two[at] : more[at], four[i]) << forecast << " " << lead << " " << point;
      }
    }
  }
}

/// What validation and evaluate say of the same forecasts.
TEST_F(ForecastsOnDevice, ValidationsFindWhatScoresOfTheSameModelAre) {
  for (const Case& one : kCases) {
    if (one.precision != std::string("fp32")) continue;
    SCOPED_TRACE(one.name);
    const Found found = find(one, Where::kHost);
    if (HasFailure()) return;
    for (const char* variable : {"t2m", "u10"}) {
      const Json &valid = found.validation.at("metrics").at(variable),
                 &all = found.scores.at(variable).at("all");
      for (const char* measure : {"rmse", "bias"}) {
        const double wanted = valid.at(measure), scored = all.at(measure).at(0);
        // Validations leave what is brought to an end of its range there but for roundings.
        const bool exact = one.transformed && variable == std::string("t2m");
        EXPECT_NEAR(scored, wanted, (exact ? 1e-12 : 1e-4) * std::abs(wanted)) << variable << " " << measure;
      }
    }
  }
}

/// Each number within `share` of the other, or of 1.
void expect_close(const Json& found, const Json& wanted, double share, const std::string& place = "") {
  if (wanted.is_number()) {
    const double number = wanted;
    ASSERT_TRUE(found.is_number()) << place;
    EXPECT_NEAR(found.get<double>(), number, share * std::max(1.0, std::abs(number))) << place;
  } else if (wanted.is_structured()) {
    ASSERT_EQ(found.size(), wanted.size()) << place;
    for (const auto& [key, value] : wanted.items()) {
      expect_close(wanted.is_array() ? found.at(std::stoul(key)) : found.at(key), value, share,
                   place + "/" + key);
    }
  } else {
    EXPECT_EQ(found, wanted) << place;
  }
}

TEST_F(ForecastsOnDevice, OnCudaAreTheHostsButForRounding) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const Case& one : kCases) {
    if (one.precision == std::string("fp64")) continue;
    SCOPED_TRACE(one.name);
    const Found host = find(one, Where::kHost), cuda = find(one, Where::kCuda);
    if (HasFailure()) return;
    const double share = one.precision == std::string("bf16") ? 3e-2 : 1e-3;
    expect_close(cuda.validation, host.validation, share);
    expect_close(cuda.scores, host.scores, share);
    ASSERT_EQ(cuda.warm.size(), host.warm.size());
    for (std::size_t i = 0; i < host.warm.size(); ++i) {
      EXPECT_NEAR(cuda.warm[i], host.warm[i], share * std::abs(host.warm[i])) << i;
      EXPECT_EQ(std::isnan(cuda.windy[i]), std::isnan(host.windy[i])) << i;
      if (std::isfinite(host.windy[i])) {
        EXPECT_NEAR(cuda.windy[i], host.windy[i], share * std::max(1.0, std::abs(host.windy[i]))) << i;
      }
    }
  }
}

}  // namespace forecasts_on_device_test
}  // namespace jigsaw
