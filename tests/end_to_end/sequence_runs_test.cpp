// Forecasts of sequences of volumes through the executable: one loss curve on every mesh, what predict
// writes, and what evaluate says of it, against loops over files.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "end_to_end/command.h"
#include "files/hdf5_file.h"
#include "files/image_output.h"

namespace jigsaw::e2e {
namespace sequence_runs_test {

constexpr std::int64_t kSamples = 3, kSteps = 7, kDepth = 5, kHeight = 4, kWidth = 6, kPoints = 120;

/// Waves that fade to nine tenths each step: float32, as the file has them.
float value(std::int64_t sample, std::int64_t step, std::int64_t point, int field) {
  const auto phase = static_cast<double>(point % 17 + 3 * sample + field);
  return static_cast<float>((2 + std::sin(phase)) * std::pow(0.9, static_cast<double>(step)) + field);
}

class SequenceRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    const Shape p{kSamples, kSteps, kDepth, kHeight, kWidth}, v{kSamples, kSteps, kDepth, kHeight, kWidth, 2};
    const OutputImage one{
        "t0_fields/p", OutputImage::Type::kFloat, {"s", "t", "z", "y", "x"}, p, {{"units", "Pa"}}, {}},
        two{"t1_fields/v", OutputImage::Type::kFloat, {"s", "t", "z", "y", "x", "c"}, v, {}, {}};
    const Shape m{kSamples, kDepth, kHeight, kWidth};
    const OutputImage mask{"t0_fields/m", OutputImage::Type::kFloat, {"s", "z", "y", "x"}, m, {}, {}};
    const OutputImage periodic{
        "boundary_conditions/y_periodic/mask", OutputImage::Type::kByte, {"y"}, {kHeight}, {}, {}};
    const auto file =
        create_image_output(ImageFormat::kHdf5, folder_ / "well.hdf5", {one, two, mask, periodic}, {});
    std::vector<float> ps, vs, ms;
    for (std::int64_t i = 0; i < kSamples * kPoints; ++i) ms.push_back(static_cast<float>(i % 7));
    for (std::int64_t s = 0; s < kSamples; ++s)
      for (std::int64_t t = 0; t < kSteps; ++t)
        for (std::int64_t i = 0; i < kPoints; ++i) {
          ps.push_back(value(s, t, i, 0));
          for (int c = 1; c < 3; ++c) vs.push_back(value(s, t, i, c));
        }
    file->write(0, Box::whole(p), ps);
    file->write(1, Box::whole(v), vs);
    file->write(2, Box::whole(m), ms);
    file->write(3, Box::whole({kHeight}), std::vector<float>(static_cast<std::size_t>(kHeight), 1));
    file->finish();
    const Json config = {
        {"data",
         {{"task", "forecast"},
          {"files", {folder_ / "well.hdf5"}},
          {"dims", {"sample", "time", "depth", "height", "width", "channel"}},
          {"variables",
           {{{"name", "p"}, {"data_set", "t0_fields/p"}}, {{"name", "v"}, {"data_set", "t1_fields/v"}}}},
          {"static", {{{"name", "m"}, {"data_set", "t0_fields/m"}}}},
          {"input_steps", {-1, 0}},
          {"train", {{"sample", {0, 1}}}},
          {"valid", {{"sample", {2, 2}}, {"time", {1, 3}}}}}},
        {"model", {{"type", "weathermixer"}, {"patch", {2, 2, 3}}, {"embed_dim", 8}, {"depth", 1}}},
        {"train", {{"steps", 12}, {"batch_size", 2}, {"precision", "fp64"}, {"rollout", 2}}},
        {"validation", {{"every", 12}}},
        {"checkpoint", {{"every", 12}}}};
    folder_.write("config.json", config.dump());
  }

  std::string train(const std::string& name, int ranks, const std::string& mesh) {
    const std::string output = folder_ / name;
    const Outcome outcome = run(ranks, config() + " --set output=" + output + " --set 'mesh=" + mesh + "'");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return output;
  }
  std::string config() const { return "--config " + (folder_ / "config.json"); }

  TemporaryFolder folder_;
};

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

TEST_F(SequenceRuns, InitWritesThemForFilesOfTheWell) {
  const Outcome made =
      run(1, "init --data " + (folder_ / "well.hdf5") + " --output " + (folder_ / "first.json"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::ifstream file(folder_ / "first.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find(R"("dims": ["sample", "time", "depth", "height", "width", "channel"])"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"name": "v", "data_set": "t1_fields/v"})"), std::string::npos);
  EXPECT_NE(text.find(R"("static": [{"name": "m", "data_set": "t0_fields/m"}])"), std::string::npos);
  EXPECT_NE(text.find(R"("padding_mode": ["zeros", "circular", "zeros"])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("train": {"sample": [0, 1]})"), std::string::npos);
  EXPECT_NE(text.find(R"("valid": {"sample": [2, 2]})"), std::string::npos);
  const Outcome checked = run(2, "check --config " + (folder_ / "first.json"));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
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

/// Groups that say by an attribute alone what goes round, and numbers that may be inputs.
TEST_F(SequenceRuns, InitReadsAttributesOfBoundariesAndNamesNumbers) {
  const hid_t file = H5Fopen((folder_ / "well.hdf5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
  H5Tset_size(text, 16);
  for (const auto& [name, type] : {std::pair{"boundary_conditions/x_periodic", "PERIODIC"},
                                   {"boundary_conditions/z_periodic", "WALL"}}) {
    const hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                attribute = H5Acreate2(group, "bc_type", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
    std::array<char, 16> value{};
    std::string(type).copy(value.data(), value.size() - 1);
    H5Awrite(attribute, text, value.data());
    H5Aclose(attribute);
    H5Gclose(group);
  }
  H5Gclose(H5Gcreate2(file, "scalars", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const hsize_t samples = kSamples, others = kSamples + 1;
  for (const auto& [name, count] : {std::pair{"scalars/kappa", samples}, {"scalars/others", others}}) {
    const hid_t space = H5Screate_simple(1, &count, nullptr),
                set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const std::vector<double> values = {0.25, 0.5, 0.125, 1};
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(set);
    H5Sclose(space);
  }
  H5Tclose(text);
  H5Sclose(scalar);
  H5Fclose(file);
  const Outcome made =
      run(1, "init --data " + (folder_ / "well.hdf5") + " --output " + (folder_ / "first.json"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::string config = read(folder_ / "first.json");
  EXPECT_NE(config.find(R"("padding_mode": ["circular", "circular", "zeros"])"), std::string::npos) << config;
  const std::string kappa = R"({"name": "kappa", "data_set": "scalars/kappa"})";
  EXPECT_NE(
      config.find("// numbers of each sequence that may be inputs, too, in \"static\": [" + kappa + "]\n"),
      std::string::npos)
      << config;
  // As it is proposed.
  const std::string before = R"("static": [)";
  config.insert(config.rfind(before) + before.size(), kappa + ", ");
  folder_.write("with.json", config);
  const Outcome checked = run(2, "check --config " + (folder_ / "with.json"));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE(checked.out.find("kappa"), std::string::npos) << checked.out;
}

/// Of other layouts: by the names of dimensions, or as they are asked for by their number.
TEST_F(SequenceRuns, InitWritesThemForFilesOfOtherLayouts) {
  const Shape one{kSteps, kHeight, kWidth}, two{kSteps, kHeight, kWidth, 2}, space{kHeight, kWidth};
  const auto write = [&](const std::string& name, ImageFormat format, const std::vector<std::string>& dims) {
    const OutputImage p{"p", OutputImage::Type::kFloat, dims, one, {}, {}},
        bottom{"bottom", OutputImage::Type::kFloat, {dims[1], dims[2]}, space, {}, {}};
    std::vector<std::string> with_channels = dims;
    with_channels.emplace_back("component");
    const OutputImage v{"v", OutputImage::Type::kFloat, with_channels, two, {}, {}};
    const auto file = create_image_output(format, folder_ / name, {p, v, bottom}, {});
    const auto fill = [&](std::size_t number, const Shape& shape) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < shape.count(); ++i)
        values.push_back(value(0, i % kSteps, i, static_cast<int>(number)));
      file->write(number, Box::whole(shape), values);
    };
    fill(0, one);
    fill(1, two);
    fill(2, space);
    file->finish();
  };
  write("named.nc", ImageFormat::kNetcdf, {"time", "y", "x"});
  write("plain.h5", ImageFormat::kHdf5, {"time", "y", "x"});
  for (const auto& [name, options] : {std::pair{"named.nc", ""}, {"plain.h5", " --task forecast"}}) {
    const std::string output = folder_ / (std::string(name) + ".json");
    const Outcome made = run(1, "init --data " + (folder_ / name) + options + " --output " + output);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const std::string text = read(output);
    for (const char* part :
         {R"("dims": ["time", "height", "width", "channel"])", R"("variables": ["p", "v"])",
          R"("static": ["bottom"])", R"("train": {"time": [0, 4]})", R"("valid": {"time": [5, 6]})"})
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    const Outcome checked = run(1, "check --config " + output);
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
  }
}

/// Names that groups share are whole; sequences in which no window is are refused.
TEST_F(SequenceRuns, InitWritesOnlyWhatCheckTakes) {
  const auto init = [&](const std::string& name, std::int64_t samples, std::int64_t steps) {
    const Shape shape{samples, steps, kHeight, kWidth};
    const OutputImage a{"a/u", OutputImage::Type::kFloat, {"s", "t", "y", "x"}, shape, {}, {}},
        b{"b/u", OutputImage::Type::kFloat, {"s", "t", "y", "x"}, shape, {}, {}};
    const auto file = create_image_output(ImageFormat::kHdf5, folder_ / name, {a, b}, {});
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.count(); ++i) values.push_back(value(0, i % steps, i, 0));
    for (const std::size_t number : {0, 1}) file->write(number, Box::whole(shape), values);
    file->finish();
    return run(
        1, "init --data " + (folder_ / name) + " --task forecast --output " + (folder_ / (name + ".json")));
  };
  const Outcome made = init("groups.h5", 3, kSteps);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(read(folder_ / "groups.h5.json").find(R"("variables": ["a/u", "b/u"])"), std::string::npos);
  const Outcome checked = run(1, "check --config " + (folder_ / "groups.h5.json"));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const Outcome brief = init("short.h5", 3, 2);
  EXPECT_EQ(brief.exit_code, 3);
  EXPECT_NE(brief.err.find("has 2 states only: too few for a window of 3"), std::string::npos) << brief.err;
}

}  // namespace sequence_runs_test
}  // namespace jigsaw::e2e
