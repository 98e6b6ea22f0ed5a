// A run that is killed or stopped goes on from its last checkpoint as if nothing had happened.
#include <gtest/gtest.h>

#include <fstream>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

class Resume : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    Json config = small_config(folder_);
    config["train"]["steps"] = 60;
    config["optimizer"]["ema_decay"] = 0.9;
    config["checkpoint"] = {{"every", 10}, {"keep", 2}};
    config["validation"] = {{"every", 20}};
    folder_.write("config.json", config.dump());
  }
  std::string arguments(const std::string& name) const {
    return "--config " + (folder_ / "config.json") + " --set output=" + (folder_ / name);
  }
  TemporaryFolder folder_;
};

TEST_P(Resume, AfterKillTheMetricsAreThoseOfAnUninterruptedRun) {
  const int ranks = GetParam();
  ASSERT_EQ(run(ranks, arguments("whole")).exit_code, 0);
  EXPECT_NE(run_and_kill(ranks, arguments("killed"), folder_ / "killed/metrics.jsonl", 27).exit_code, 0);
  const Outcome resumed = run(ranks, arguments("killed"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("resumed from "), std::string::npos) << resumed.out;
  for (const char* kind : {"train", "valid"}) {
    const auto whole = metrics(folder_ / "whole", kind), again = metrics(folder_ / "killed", kind);
    ASSERT_FALSE(whole.empty());
    EXPECT_EQ(series(whole, "step"), series(again, "step"));
    EXPECT_EQ(series(whole, "loss"), series(again, "loss"));
  }
  const Outcome done = run(ranks, arguments("killed"));
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_NE(done.out.find("nothing is left to do"), std::string::npos) << done.out;
}
INSTANTIATE_TEST_SUITE_P(Ranks, Resume, ::testing::Values(1, 2));

TEST_F(Resume, ATimeLimitEndsWithACheckpointAndExitCode75) {
  const Outcome stopped = run(2, arguments("limited") + " --max-minutes 0.001 --set train.steps=100000");
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "limited/checkpoints/latest"));
}

TEST_F(Resume, AChangedKeyThatDecidesTheResultIsRefused) {
  ASSERT_EQ(run(1, arguments("changed") + " --set train.steps=10").exit_code, 0);
  const Outcome refused = run(1, arguments("changed") + " --set optimizer.weight_decay=0.5");
  EXPECT_EQ(refused.exit_code, 2);
  ASSERT_EQ(refused.errors().size(), 1U) << refused.err;
  EXPECT_NE(refused.errors()[0].find("optimizer.weight_decay"), std::string::npos) << refused.err;
  EXPECT_EQ(run(1, arguments("changed") + " --set optimizer.weight_decay=0.5 --allow-change").exit_code, 0);
}

TEST_F(Resume, AnotherMeshOfAsManyRanksIsRefused) {
  ASSERT_EQ(run(2, arguments("mesh") + " --set train.steps=10 --set 'mesh={\"domain\":[2,1]}'").exit_code, 0);
  const Outcome refused = run(2, arguments("mesh") + " --set train.steps=20 --set 'mesh={\"tensor\":2}'");
  EXPECT_EQ(refused.exit_code, 4);
  ASSERT_EQ(refused.errors().size(), 1U) << refused.err;
  EXPECT_NE(refused.errors()[0].find("mesh"), std::string::npos) << refused.err;
}

TEST_F(Resume, AFolderThatIsNoCheckpointIsExitCode4) {
  const Outcome outcome = run(2, arguments("none") + " --resume " + (folder_ / "nowhere"));
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.errors().size(), 1U) << outcome.err;
}

}  // namespace
}  // namespace jigsaw::e2e
