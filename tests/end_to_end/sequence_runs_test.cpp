// Forecasts of sequences of volumes through the executable: one loss curve on every mesh, what predict
// writes, and what evaluate says of it, against loops over files.
#include "end_to_end/sequence_runs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "files/hdf5_file.h"

namespace jigsaw::e2e {
namespace sequence_runs_test {

TEST_F(SequenceRuns, AreOneFunctionOnEveryMesh) {
  const std::string one = train("one", 1, R"({"domain":[1,1,1]})");
  const auto losses = series(metrics(one, "train"), "loss");
  ASSERT_EQ(losses.size(), 12U);
  EXPECT_LT(losses.back(), losses.front());
  const Json valid = metrics(one, "valid").back();
  ASSERT_TRUE(valid.at("leads").contains("2"));
  for (const auto& [mesh, ranks] : {std::pair{R"({"domain":[2,1,1]})", 2}, {R"({"domain":[1,2,2]})", 4}}) {
    ASSERT_GT(ranks, 1);
    const std::string many = train("many", ranks, mesh);
    const auto others = series(metrics(many, "train"), "loss");
    ASSERT_EQ(others.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(others[i] / losses[i], 1, 1e-12) << mesh;
    EXPECT_NEAR(metrics(many, "valid").back().at("loss").get<double>() / valid.at("loss").get<double>(), 1,
                1e-12);
    std::filesystem::remove_all(many);
  }
  // The one window is from state 1.
  double squares = 0;
  for (std::int64_t i = 0; i < kPoints; ++i)
    squares += std::pow(value(2, 3, i, 0) - value(2, 1, i, 0), 2) / kPoints;
  EXPECT_NEAR(valid.at("leads").at("2").at("p").at("persistence_rmse").get<double>(), std::sqrt(squares),
              1e-9);
}

TEST_F(SequenceRuns, PredictAndEvaluateTellTheSameOfAnyNumberOfRanks) {
  const std::string checkpoint = " --checkpoint " + train("run", 1, "\"auto\"");
  for (const int ranks : {1, 2}) {
    const Outcome predicted =
        run(ranks, "predict " + config() + checkpoint + " --steps 2 --start-step 1 --output " +
                       (folder_ / std::to_string(ranks) + ".h5"));
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  }
  Hdf5File one(folder_ / "1.h5"), two(folder_ / "2.h5");
  const Shape shape{kSamples, 2, kDepth, kHeight, kWidth, 2};
  ASSERT_EQ(one.find("v")->shape, shape);
  std::vector<double> v(static_cast<std::size_t>(shape.count())), again(v.size());
  one.read<double>(*one.find("v"), Box::whole(shape), v);
  two.read<double>(*two.find("v"), Box::whole(shape), again);
  for (std::size_t i = 0; i < v.size(); ++i) ASSERT_NEAR(v[i], again[i], 1e-5);
  const Outcome scored = run(2, "evaluate " + config() + checkpoint + " --leads 2 --json " +
                                    (folder_ / "scores.json") + " --netcdf " + (folder_ / "scores.nc"));
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const Json scores = Json::parse(std::ifstream(folder_ / "scores.json"));
  EXPECT_EQ(scores.at("forecasts"), 1);  // from state 1 of sequence 2
  for (int c = 0; c < 2; ++c) {
    for (std::int64_t lead = 0; lead < 2; ++lead) {
      double squares = 0, absolute = 0, bias = 0, mean = 0, variance = 0, rest = 0;
      for (std::int64_t i = 0; i < kPoints; ++i)
        mean += value(2, 2 + lead, i, c + 1) / static_cast<double>(kPoints);
      for (std::int64_t i = 0; i < kPoints; ++i) {
        const double truth = value(2, 2 + lead, i, c + 1);
        const double error = v[static_cast<std::size_t>(((2 * 2 + lead) * kPoints + i) * 2 + c)] - truth;
        squares += error * error / kPoints;
        absolute += std::abs(error) / kPoints;
        bias += error / kPoints;
        variance += (truth - mean) * (truth - mean) / kPoints;
        rest += std::pow(value(2, 1, i, c + 1) - truth, 2) / kPoints;
      }
      const Json& of = scores.at("variables").at(c == 0 ? "v_0" : "v_1");
      const auto at = static_cast<std::size_t>(lead);
      EXPECT_NEAR(of.at("rmse")[at].get<double>(), std::sqrt(squares), 1e-5);
      EXPECT_NEAR(of.at("mae")[at].get<double>(), absolute, 1e-5);
      EXPECT_NEAR(of.at("bias")[at].get<double>(), bias, 1e-5);
      EXPECT_NEAR(of.at("persistence_rmse")[at].get<double>(), std::sqrt(rest), 1e-9);
      EXPECT_NEAR(of.at("vrmse")[at].get<double>(), std::sqrt(squares / variance), 1e-5);
      double bands = 0;
      for (const Json& band : of.at("spectral_mse")[at]) bands += band.get<double>();
      EXPECT_NEAR(bands, squares, 1e-5);
      EXPECT_EQ(of.at("spectral_nmse")[at].size(), 3U);
    }
  }
  // HDF5 underneath.
  Hdf5File table(folder_ / "scores.nc");
  for (const auto& [name, of] : scores.at("variables").items()) {
    std::vector<double> rmse(2), bands(6);
    table.read<double>(*table.find(name + "_rmse"), Box::whole({2}), rmse);
    table.read<double>(*table.find(name + "_spectral_mse"), Box::whole({2, 3}), bands);
    EXPECT_EQ(Json(rmse), of.at("rmse"));
    EXPECT_EQ(Json(bands[4]), of.at("spectral_mse")[1][1]);
  }
  // One channel of one variable, each second lead.
  const Outcome part = run(2, "predict " + config() + checkpoint +
                                  " --steps 2 --start-step 1 --every 2 --variables v --levels 1 --output " +
                                  (folder_ / "part.h5"));
  ASSERT_EQ(part.exit_code, 0) << part.err;
  Hdf5File some(folder_ / "part.h5");
  EXPECT_EQ(some.find("p"), nullptr);
  const Shape chosen{kSamples, 1, kDepth, kHeight, kWidth, 1};
  ASSERT_EQ(some.find("v")->shape, chosen);
  std::vector<double> second(static_cast<std::size_t>(chosen.count()));
  some.read<double>(*some.find("v"), Box::whole(chosen), second);
  for (std::int64_t sample = 0; sample < kSamples; ++sample)
    for (std::int64_t i = 0; i < kPoints; ++i)
      EXPECT_NEAR(second[static_cast<std::size_t>(sample * kPoints + i)],
                  v[static_cast<std::size_t>(((sample * 2 + 1) * kPoints + i) * 2 + 1)], 1e-5);
  const Outcome refused =
      run(1, "predict " + config() + checkpoint + " --start-step 0 --output " + (folder_ / "x.nc"));
  EXPECT_EQ(refused.exit_code, 2);
  ASSERT_EQ(refused.errors().size(), 1U);
  EXPECT_NE(refused.errors()[0].find("--start-step 0 is no state to start from"), std::string::npos);
  for (const auto& [options, why] :
       {std::pair{"--steps 2 --every 3", "--every 3 and --steps 2 leave nothing"},
        {"--variables q", "--variables names q, which the model does not predict"}}) {
    const Outcome none =
        run(1, "predict " + config() + checkpoint + " --output " + (folder_ / "x.nc") + " " + options);
    EXPECT_EQ(none.exit_code, 2);
    ASSERT_EQ(none.errors().size(), 1U);
    EXPECT_NE(none.errors()[0].find(why), std::string::npos) << none.errors()[0];
  }
}

/// A model that says 0 of every increment, whose forecasts are the states that they start from, within
/// ranges.
TEST_F(SequenceRuns, OfTransformedVariablesAreInTheUnitOfTheFiles) {
  Json config = Json::parse(read(folder_ / "config.json"));
  constexpr double kLow = 4;
  config["data"]["transforms"] = {{"p", {{"type", "log"}, {"epsilon", 1e-3}}}, {"v", "sqrt"}, {"m", "sqrt"}};
  config["data"]["clamp"] = {{"v_1", {kLow, nullptr}}};
  config["model"] = {{"type", "sequential"},
                     {"layers", {{{"type", "linear"}, {"features", 3}, {"zero_start", true}}}}};
  config["optimizer"] = {{"learning_rate", 1e-30}};
  config["train"]["steps"] = config["validation"]["every"] = config["checkpoint"]["every"] = 2;
  folder_.write("config.json", config.dump());
  const auto wanted = [&](std::int64_t sample, std::int64_t point, int field) {
    const double x = value(sample, 1, point, field);
    return field == 2 ? std::max(x, kLow) : x;
  };
  const std::string checkpoint = " --checkpoint " + train("logs", 2, R"({"domain":[1,2,1]})");
  const Outcome predicted = run(2, "predict " + this->config() + checkpoint +
                                       " --steps 2 --start-step 1 --output " + (folder_ / "logs.h5"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  Hdf5File file(folder_ / "logs.h5");
  const auto values = [&](const char* name) {
    const FileVariable& found = *file.find(name);
    std::vector<double> all(static_cast<std::size_t>(found.shape.count()));
    file.read<double>(found, Box::whole(found.shape), all);
    return all;
  };
  const std::vector<double> p = values("p"), v = values("v");
  ASSERT_EQ(v.size(), static_cast<std::size_t>(kSamples * 2 * kPoints * 2));
  std::int64_t at_low = 0;
  for (std::int64_t sample = 0; sample < kSamples; ++sample)
    for (std::int64_t lead = 0; lead < 2; ++lead)
      for (std::int64_t i = 0; i < kPoints; ++i) {
        const auto at = static_cast<std::size_t>((sample * 2 + lead) * kPoints + i);
        EXPECT_NEAR(p[at], wanted(sample, i, 0), 1e-5);
        EXPECT_NEAR(v[2 * at], wanted(sample, i, 1), 1e-5);
        EXPECT_NEAR(v[2 * at + 1], wanted(sample, i, 2), 1e-5);
        EXPECT_GE(v[2 * at + 1], kLow);
        at_low += v[2 * at + 1] == kLow ? 1 : 0;
      }
  EXPECT_GT(at_low, kPoints);
  const Outcome scored =
      run(2, "evaluate " + this->config() + checkpoint + " --leads 2 --json " + (folder_ / "logs.json"));
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const Json scores = Json::parse(std::ifstream(folder_ / "logs.json")).at("variables"),
             valid = metrics(folder_ / "logs", "valid").back();
  for (const auto& [name, field] : {std::pair{"p", 0}, {"v_0", 1}, {"v_1", 2}}) {
    for (std::int64_t lead = 0; lead < 2; ++lead) {
      double squares = 0, mean = 0, variance = 0;
      for (std::int64_t i = 0; i < kPoints; ++i)
        mean += value(2, 2 + lead, i, field) / static_cast<double>(kPoints);
      for (std::int64_t i = 0; i < kPoints; ++i) {
        const double truth = value(2, 2 + lead, i, field);
        squares += std::pow(wanted(2, i, field) - truth, 2) / kPoints;
        variance += (truth - mean) * (truth - mean) / kPoints;
      }
      const Json& of = scores.at(name);
      const auto at = static_cast<std::size_t>(lead);
      EXPECT_NEAR(of.at("rmse")[at].get<double>(), std::sqrt(squares), 1e-9) << name;
      EXPECT_NEAR(of.at("vrmse")[at].get<double>(), std::sqrt(squares / variance), 1e-6) << name;
      EXPECT_NEAR(
          (lead == 0 ? valid.at("metrics") : valid.at("leads").at("2")).at(name).at("rmse").get<double>(),
          std::sqrt(squares), 1e-9)
          << name;
    }
  }
}

/// Files that are whole stay, the one in work is not there, and the rest is made as if nothing had happened.
TEST_F(SequenceRuns, PredictStopsAfterASignalAndMakesTheRestLater) {
  const std::string checkpoint = " --checkpoint " + train("run", 1, "\"auto\"");
  std::string inputs;
  constexpr int kFiles = 12;
  for (int i = 0; i < kFiles; ++i) {
    const std::string path = folder_ / ("in_" + std::to_string(i) + ".hdf5");
    std::filesystem::copy_file(folder_ / "well.hdf5", path);
    inputs += " " + path;
  }
  const std::string command =
      "predict " + config() + checkpoint + " --steps 80 --every 80 --input" + inputs + " --output ";
  const auto output = [&](const std::string& where, int i) {
    return folder_ / (where + "/in_" + std::to_string(i) + ".nc");
  };
  Running running(2, command + (folder_ / "out"));
  ASSERT_TRUE(running.until([&] { return std::filesystem::exists(output("out", 0)); }));
  ASSERT_EQ(running.ranks().size(), 2U);
  running.signal(SIGUSR1);
  const Outcome stopped = running.collect();
  ASSERT_EQ(stopped.exit_code, 75) << stopped.out << stopped.err;
  int there = 0;
  for (int i = 0; i < kFiles; ++i) there += std::filesystem::exists(output("out", i)) ? 1 : 0;
  ASSERT_LT(there, kFiles);
  ASSERT_FALSE(stopped.said().empty()) << stopped.err;
  EXPECT_NE(stopped.said().back().find("warning: stopped early: " + std::to_string(there) + " of " +
                                       std::to_string(kFiles) + " files are there and whole"),
            std::string::npos)
      << stopped.err;
  const std::filesystem::directory_iterator all(folder_ / "out");
  EXPECT_EQ(std::distance(begin(all), end(all)), there);  // nothing that is half written
  const Outcome rest = run(2, command + (folder_ / "out") + " --skip-existing");
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_NE(rest.out.find("left alone " + std::to_string(there) + " input"), std::string::npos) << rest.out;
  const auto read_p = [&](int i) {
    Hdf5File file(output("out", i));
    std::vector<double> p(static_cast<std::size_t>(kSamples * kPoints));
    file.read<double>(*file.find("p"), Box::whole(file.find("p")->shape), p);
    return p;
  };
  const std::vector<double> first = read_p(0);
  for (int i = 1; i < kFiles; ++i) EXPECT_EQ(read_p(i), first);
}

/// Fields along a line: a convolution and attention on any mesh, and what follows of it.
TEST_F(SequenceRuns, AreLearntAlongALine) {
  constexpr std::int64_t kLength = 20;
  const Shape shape{kSteps, kLength};
  for (int number = 0; number < 2; ++number) {
    const OutputImage u{"u", OutputImage::Type::kFloat, {"t", "x"}, shape, {}, {}};
    const auto file = create_image_output(ImageFormat::kHdf5,
                                          folder_ / ("line_" + std::to_string(number) + ".h5"), {u}, {});
    std::vector<float> us;
    for (std::int64_t t = 0; t < kSteps; ++t)
      for (std::int64_t x = 0; x < kLength; ++x) us.push_back(value(number, t, x, 0));
    file->write(0, Box::whole(shape), us);
    file->finish();
  }
  Json config = {{"data",
                  {{"task", "forecast"},
                   {"files", {folder_ / "line_*.h5"}},
                   {"dims", {"time", "width"}},
                   {"variables", {"u"}},
                   {"train", {{"sample", {0, 0}}}},
                   {"valid", {{"sample", {1, 1}}}}}},
                 {"train", {{"steps", 6}, {"batch_size", 2}, {"precision", "fp64"}}},
                 {"validation", {{"every", 6}}},
                 {"checkpoint", {{"every", 6}}}};
  const std::vector<std::pair<Json, int>> models = {
      {{{"type", "unet"}, {"base_width", 4}, {"levels", 2}, {"norm_groups", 2}, {"padding_mode", "circular"}},
       2},
      {{{"type", "vit"}, {"patch", {2}}, {"embed_dim", 8}, {"depth", 1}, {"heads", 2}}, 4}};
  for (const auto& [model, most] : models) {
    config["model"] = model;
    folder_.write("config.json", config.dump());
    std::vector<double> losses;
    for (const int ranks : {1, most}) {
      const std::string name = "line_" + std::to_string(ranks);
      std::filesystem::remove_all(folder_ / name);
      const std::string output = train(name, ranks, R"({"domain":[)" + std::to_string(ranks) + "]}");
      const auto found = series(metrics(output, "train"), "loss");
      ASSERT_EQ(found.size(), 6U);
      if (ranks == 1) losses = found;
      for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(found[i] / losses[i], 1, 1e-11) << ranks;
    }
  }
  const std::string checkpoint = " --checkpoint " + (folder_ / "line_4");
  const Outcome predicted =
      run(2, "predict " + this->config() + checkpoint + " --steps 3 --output " + (folder_ / "lines"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  Hdf5File file(folder_ / "lines/line_1.nc");
  EXPECT_EQ(file.find("u")->shape, (Shape{1, 3, kLength}));
  const Outcome scored = run(2, "evaluate " + this->config() + checkpoint + " --leads 2");
  EXPECT_EQ(scored.exit_code, 0) << scored.err;
}

/// What predict writes as missing, for it is so at the start, does not count in scores.
TEST_F(SequenceRuns, WhatIsMissingAtTheStartIsNotScored) {
  constexpr std::int64_t kLength = 12;
  const auto truth = [&](std::int64_t t, std::int64_t x) {
    return t == 1 && x % 4 == 0 ? NAN : value(0, t, x, 0);
  };
  const Shape shape{kSteps, kLength};
  const OutputImage u{"u", OutputImage::Type::kFloat, {"t", "x"}, shape, {}, {}};
  const auto file = create_image_output(ImageFormat::kHdf5, folder_ / "gaps.h5", {u}, {});
  std::vector<float> us;
  for (std::int64_t t = 0; t < kSteps; ++t)
    for (std::int64_t x = 0; x < kLength; ++x) us.push_back(truth(t, x));
  file->write(0, Box::whole(shape), us);
  file->finish();
  const Json config = {{"data",
                        {{"task", "forecast"},
                         {"files", {folder_ / "gaps.h5"}},
                         {"dims", {"time", "width"}},
                         {"variables", {"u"}},
                         {"predict", "state"},
                         {"train", {{"time", {2, kSteps - 1}}}},
                         {"valid", {{"time", {1, 2}}}}}},
                       {"model", {{"type", "unet"}, {"base_width", 4}, {"levels", 1}, {"norm_groups", 2}}},
                       {"train", {{"steps", 2}, {"batch_size", 1}, {"precision", "fp64"}}},
                       {"checkpoint", {{"every", 2}}}};
  folder_.write("config.json", config.dump());
  const std::string checkpoint = " --checkpoint " + train("gaps", 1, "\"auto\"");
  const Outcome predicted = run(1, "predict " + this->config() + checkpoint +
                                       " --steps 1 --start-step 1 --output " + (folder_ / "out.h5"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  Hdf5File written(folder_ / "out.h5");
  std::vector<double> forecast(kLength);
  const FileVariable& found = *written.find("u");
  written.read<double>(found, Box::whole(found.shape), forecast);
  double squares = 0, count = 0;
  for (std::int64_t x = 0; x < kLength; ++x) {
    const double of = forecast[static_cast<std::size_t>(x)];
    ASSERT_EQ(std::isnan(of), x % 4 == 0);
    if (std::isnan(of)) continue;
    squares += std::pow(of - value(0, 2, x, 0), 2);
    count += 1;
  }
  const Outcome scored =
      run(2, "evaluate " + this->config() + checkpoint + " --leads 1 --json " + (folder_ / "gaps.json"));
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const Json scores = Json::parse(std::ifstream(folder_ / "gaps.json"));
  EXPECT_NEAR(scores.at("variables").at("u").at("rmse")[0].get<double>(), std::sqrt(squares / count), 1e-5);
}

/// By powers of two beyond float32 nothing changes but the unit: neither what is predicted, which is then
/// float64, nor the VRMSE.
TEST_F(SequenceRuns, ValuesBeyondSinglePrecisionAreWrittenAndScored) {
  constexpr std::int64_t kLength = 12;
  const Shape shape{kSteps, kLength};
  std::vector<double> first;
  Json vrmse;
  for (const int exponent : {0, 146, -132}) {
    const std::string name = "unit_" + std::to_string(exponent);
    const OutputImage u{"u", OutputImage::Type::kDouble, {"t", "x"}, shape, {}, {}};
    const auto file = create_image_output(ImageFormat::kHdf5, folder_ / (name + ".h5"), {u}, {});
    std::vector<double> us;
    for (std::int64_t t = 0; t < kSteps; ++t)
      for (std::int64_t x = 0; x < kLength; ++x)
        us.push_back(std::ldexp(static_cast<double>(value(0, t, x, 0)), exponent));
    file->write(0, Box::whole(shape), us);
    file->finish();
    const Json config = {{"data",
                          {{"task", "forecast"},
                           {"files", {folder_ / (name + ".h5")}},
                           {"dims", {"time", "width"}},
                           {"variables", {"u"}},
                           {"train", {{"time", {0, 4}}}},
                           {"valid", {{"time", {4, 6}}}}}},
                         {"model", {{"type", "unet"}, {"base_width", 4}, {"levels", 1}, {"norm_groups", 2}}},
                         {"train", {{"steps", 3}, {"batch_size", 1}, {"precision", "fp64"}}},
                         {"checkpoint", {{"every", 3}}}};
    folder_.write("config.json", config.dump());
    const std::string checkpoint = " --checkpoint " + train(name, 1, "\"auto\"");
    for (const char* ending : {".out.h5", ".out.nc"}) {
      const Outcome predicted = run(
          2, "predict " + this->config() + checkpoint + " --steps 2 --output " + (folder_ / (name + ending)));
      ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
      const auto written = open_variables(folder_ / (name + ending), Dimensions::kByNumber);
      const FileVariable* found = written->find("u");
      ASSERT_NE(found, nullptr);
      std::vector<double> forecast(static_cast<std::size_t>(found->shape.count()));
      ASSERT_EQ(forecast.size(), static_cast<std::size_t>(2 * kLength));
      written->read<double>(*found, Box::whole(found->shape), forecast);
      if (first.empty()) first = forecast;
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_NEAR(std::ldexp(forecast[i], -exponent), first[i], 1e-6) << name << ending;
    }
    const Outcome scored = run(
        1, "evaluate " + this->config() + checkpoint + " --leads 2 --json " + (folder_ / (name + ".json")));
    ASSERT_EQ(scored.exit_code, 0) << scored.err;
    const Json found =
        Json::parse(std::ifstream(folder_ / (name + ".json"))).at("variables").at("u").at("vrmse");
    if (exponent == 0) vrmse = found;
    for (const std::size_t lead : {0, 1}) {
      ASSERT_TRUE(found[lead].is_number()) << found;
      EXPECT_NEAR(found[lead].get<double>() / vrmse[lead].get<double>(), 1, 1e-6);
    }
  }
}

/// As of a file in another unit.
TEST_F(SequenceRuns, PredictWarnsOfForecastsFarFromTheTrainingData) {
  constexpr std::int64_t kLength = 12;
  const Shape shape{kSteps, kLength};
  for (const auto& [name, factor] : {std::pair{"usual.h5", 1.0F}, {"hot.h5", 100.0F}}) {
    const OutputImage u{"u", OutputImage::Type::kFloat, {"t", "x"}, shape, {}, {}};
    const auto file = create_image_output(ImageFormat::kHdf5, folder_ / name, {u}, {});
    std::vector<float> us;
    for (std::int64_t t = 0; t < kSteps; ++t)
      for (std::int64_t x = 0; x < kLength; ++x) us.push_back(factor * value(0, t, x, 0));
    file->write(0, Box::whole(shape), us);
    file->finish();
  }
  const Json config = {
      {"data",
       {{"task", "forecast"},
        {"files", {folder_ / "usual.h5"}},
        {"dims", {"time", "width"}},
        {"variables", {"u"}},
        {"input_steps", {0}},
        {"train", {{"time", {0, kSteps - 1}}}}}},
      {"model",
       {{"type", "unet"}, {"base_width", 4}, {"levels", 1}, {"norm_groups", 2}, {"zero_head", true}}},
      {"train", {{"steps", 1}, {"batch_size", 1}, {"precision", "fp64"}}},
      {"checkpoint", {{"every", 1}}}};
  folder_.write("config.json", config.dump());
  const std::string checkpoint = " --checkpoint " + train("run", 1, "\"auto\"");
  for (const char* name : {"usual.h5", "hot.h5"}) {
    for (const int ranks : {1, 2}) {
      const Outcome predicted =
          run(ranks, "predict " + this->config() + checkpoint + " --steps 2 --every 2 --overwrite --input " +
                         (folder_ / name) + " --output " + (folder_ / "out.nc"));
      ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
      const bool told = predicted.err.find(
                            "forecasts of u leave what the model was trained on by far, first at step 1 of "
                            "that from state 0 of sequence 0 (" +
                            (folder_ / name) + "): above ") != std::string::npos;
      EXPECT_EQ(told, std::string(name) == "hot.h5") << predicted.err;
    }
  }
}

TEST_F(SequenceRuns, AreNotRechunked) {
  const Outcome refused = run(2, "rechunk " + config() + " --output " + (folder_ / "copies"));
  EXPECT_EQ(refused.exit_code, 2);
  ASSERT_EQ(refused.errors().size(), 1U);
  EXPECT_NE(refused.errors()[0].find("rechunk is for fields on latitude and longitude, and data.dims makes "
                                     "these images or sequences"),
            std::string::npos)
      << refused.errors()[0];
  EXPECT_FALSE(std::filesystem::exists(folder_ / "copies"));
}

}  // namespace sequence_runs_test
}  // namespace jigsaw::e2e
