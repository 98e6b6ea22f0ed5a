// Parameters are a function of the data only together with the statistics that they were trained with.
#include <gtest/gtest.h>

#include <cmath>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

class StatisticsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = small_config(folder_);
    config_["train"]["steps"] = 12;
    config_["checkpoint"] = {{"every", 12}};
    config_["validation"] = {{"every", 12}};
    folder_.write("config.json", config_.dump());
    const Outcome first = train("first", "");
    ASSERT_EQ(first.exit_code, 0) << first.err;
  }
  Outcome train(const std::string& name, const std::string& more, int ranks = 1) {
    return run(ranks,
               "--config " + (folder_ / "config.json") + " --set output=" + (folder_ / name) + " " + more);
  }
  std::string checkpoint(const std::string& name) const {
    return folder_ / (name + "/checkpoints/" + read(folder_ / (name + "/checkpoints/latest")));
  }
  Json extra(const std::string& name) const {
    return Json::parse(read(checkpoint(name) + "/manifest.json")).at("extra");
  }
  double error_of(const std::string& name) const {
    return metrics(folder_ / name, "valid").back().at("metrics").at("t2m").at("rmse").get<double>();
  }
  /// One step that moves nothing, over a shorter period of training.
  std::string elsewhere() const {
    Json period = config_["data"]["train"];
    period[1] = period[0].get<std::string>().substr(0, 8) + "06";
    return "--set train.steps=1 --set optimizer.learning_rate=0 --set " +
           quoted("data.train=" + period.dump()) + " ";
  }

  TemporaryFolder folder_;
  Json config_;
};

TEST_F(StatisticsTest, GoAlongWithTheParametersThatARunBeginsWith) {
  const std::string from = "--init-from " + checkpoint("first") + " ";
  for (const int ranks : {1, 2}) {
    const std::string name = "second" + std::to_string(ranks);
    const Outcome second = train(name, from + elsewhere(), ranks);
    EXPECT_EQ(second.exit_code, 0) << second.err;
    EXPECT_NE(second.out.find("statistics of 1 variables are those of " + checkpoint("first")),
              std::string::npos)
        << second.out;
    EXPECT_NEAR(error_of(name), error_of("first"), 1e-6 * error_of("first"));
    EXPECT_EQ(extra(name).at("statistics"), extra("first").at("statistics"));
  }
  // Going on needs no --init-from.
  const Outcome resumed = train("second1", elsewhere() + "--set train.steps=2");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(extra("second1").at("statistics"), extra("first").at("statistics"));
}

TEST_F(StatisticsTest, AreComputedAnewWhereThatIsSaid) {
  const Outcome second = train(
      "second", "--init-from " + checkpoint("first") + " " + elsewhere() + "--set data.normalization=auto");
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.out.find("statistics are not those that the parameters of"), std::string::npos)
      << second.out;
  EXPECT_GT(std::abs(error_of("second") - error_of("first")), 1e-5 * error_of("first"));
  EXPECT_NE(extra("second").at("statistics"), extra("first").at("statistics"));
}

TEST_F(StatisticsTest, OfACheckpointMayBeNamed) {
  const std::string named = "--set data.normalization=" + checkpoint("first") + " ";
  const Outcome second = train("second", elsewhere() + named);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(extra("second").at("statistics"), extra("first").at("statistics"));
  // What predicts takes its own checkpoint's, wherever they once came from.
  std::filesystem::remove_all(folder_ / "first");
  const Outcome predicted =
      run(1, "predict --config " + (folder_ / "config.json") + " " + named + "--checkpoint " +
                 (folder_ / "second") + " --output " + (folder_ / "out.nc"));
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
}

/// The same parameters are the same function behind --allow-change, and without it from then on.
TEST_F(StatisticsTest, StayWhereARunGoesOnWithOtherData) {
  const double before = error_of("first");
  const Json statistics = extra("first").at("statistics");
  const Outcome changed = train("first", elsewhere() + "--set train.steps=13 --allow-change");
  ASSERT_EQ(changed.exit_code, 0) << changed.err;
  EXPECT_NE(changed.err.find("the samples of the training data ("), std::string::npos) << changed.err;
  EXPECT_NE(changed.out.find("the statistics stay those of the checkpoint"), std::string::npos)
      << changed.out;
  EXPECT_NEAR(error_of("first"), before, 1e-6 * before);
  EXPECT_EQ(extra("first").at("statistics"), statistics);
  const Outcome resumed = train("first", elsewhere() + "--set train.steps=14", 2);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NEAR(error_of("first"), before, 1e-6 * before);
  EXPECT_EQ(extra("first").at("statistics"), statistics);
  const Outcome anew =
      train("first", elsewhere() + "--set train.steps=15 --set data.normalization=auto --allow-change");
  ASSERT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_NE(
      anew.err.find("normalised otherwise than the parameters were trained with, most of all t2m: mean "),
      std::string::npos)
      << anew.err;
  EXPECT_NE(extra("first").at("statistics"), statistics);
  EXPECT_GT(std::abs(error_of("first") - before), 1e-5 * before);
}

TEST_F(StatisticsTest, GoAlongThroughOtherFormats) {
  const std::string file = folder_ / "parameters.safetensors", imported = folder_ / "imported";
  EXPECT_EQ(run(1, "export --checkpoint " + checkpoint("first") + " --output " + file).exit_code, 0);
  EXPECT_EQ(run(1, "import --input " + file + " --output " + imported).exit_code, 0);
  const Outcome second = train("second", "--init-from " + imported + " " + elsewhere());
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NEAR(error_of("second"), error_of("first"), 1e-6 * error_of("first"));
}

TEST_F(StatisticsTest, ThatAreMalformedAreNotImported) {
  const std::string file = folder_ / "parameters.safetensors", imported = folder_ / "imported",
                    header = R"({"__metadata__":{"jigsaw.statistics":)"
                             R"("{\"lead_hours\":6,\"fields\":{\"t2m\":{\"mean\":\"x\"}}}"}})";
  const std::uint64_t length = header.size();
  folder_.write("parameters.safetensors", std::string(reinterpret_cast<const char*>(&length), 8) + header);
  const Outcome outcome = run(1, "import --input " + file + " --output " + imported);
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("is no safetensors file that can be used: the field t2m of its metadata "
                             "jigsaw.statistics has no number \"mean\""),
            std::string::npos)
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(imported));
}

}  // namespace
}  // namespace jigsaw::e2e
