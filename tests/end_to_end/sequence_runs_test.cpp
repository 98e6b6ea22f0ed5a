// Forecasts of sequences of volumes through the executable: one loss curve on every mesh, what predict
// writes, and what evaluate says of it, against loops over files.
#include <gtest/gtest.h>

#include <cmath>
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
    const auto file = create_image_output(ImageFormat::kHdf5, folder_ / "well.hdf5", {one, two}, {});
    std::vector<float> ps, vs;
    for (std::int64_t s = 0; s < kSamples; ++s)
      for (std::int64_t t = 0; t < kSteps; ++t)
        for (std::int64_t i = 0; i < kPoints; ++i) {
          ps.push_back(value(s, t, i, 0));
          for (int c = 1; c < 3; ++c) vs.push_back(value(s, t, i, c));
        }
    file->write(0, Box::whole(p), ps);
    file->write(1, Box::whole(v), vs);
    file->finish();
    const Json config = {
        {"data",
         {{"task", "forecast"},
          {"files", {folder_ / "well.hdf5"}},
          {"dims", {"sample", "time", "depth", "height", "width", "channel"}},
          {"variables",
           {{{"name", "p"}, {"data_set", "t0_fields/p"}}, {{"name", "v"}, {"data_set", "t1_fields/v"}}}},
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
  const Outcome scored =
      run(2, "evaluate " + config() + checkpoint + " --leads 2 --json " + (folder_ / "scores.json"));
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
    }
  }
  const Outcome refused =
      run(1, "predict " + config() + checkpoint + " --start-step 0 --output " + (folder_ / "x.nc"));
  EXPECT_EQ(refused.exit_code, 2);
  ASSERT_EQ(refused.errors().size(), 1U);
  EXPECT_NE(refused.errors()[0].find("--start-step 0 is no state to start from"), std::string::npos);
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
  EXPECT_NE(text.find(R"("train": {"sample": [0, 1]})"), std::string::npos);
  EXPECT_NE(text.find(R"("valid": {"sample": [2, 2]})"), std::string::npos);
  const Outcome checked = run(2, "check --config " + (folder_ / "first.json"));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
}

}  // namespace sequence_runs_test
}  // namespace jigsaw::e2e
