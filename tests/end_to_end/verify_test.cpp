// jigsaw-train verify: the user's own model and data, on started ranks and on threads.
#include <gtest/gtest.h>

#include <cstdlib>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    Json config = small_config(folder_);
    config["output"] = folder_ / "run";
    folder_.write("config.json", config.dump());
  }
  std::string arguments() const { return "verify --config " + (folder_ / "config.json") + " "; }
  static void expect_verified(const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
    for (const char* words : {"verified:", "tolerances:", "step 2", "encoder"})
      EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
  static void expect_refused(const Outcome& outcome, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }

  TemporaryFolder folder_;
};

TEST_F(VerifyTest, OnThreadsOfOneProcess) {
  for (const char* more : {"", "--set 'train.precision=\"fp64\"'"})
    expect_verified(run(1, arguments() + "--ranks 3 --steps 2 " + more));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(VerifyTest, OnStartedRanks) {
  expect_verified(run(2, arguments() + "--steps 2"));
  expect_verified(run(4, arguments() + "--steps 2 --set 'mesh={\"domain\":[2,1],\"tensor\":2}' --against "
                                       "'{\"data\":2,\"domain\":[1,2]}'"));
}

TEST_F(VerifyTest, EndsWithOneWhenSomethingDiffers) {
  setenv("JIGSAW_FAULT", "1:0:spoil", 1);
  Running running(2, arguments() + "--steps 1 --set 'mesh={\"domain\":[2,1]}'", JIGSAW_TRAIN_CRASHING);
  unsetenv("JIGSAW_FAULT");
  const Outcome outcome = running.collect();
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err << outcome.out;
  for (const char* words :
       {"DIFFERS", "differs first in step 1", "beyond what 8 show", "not verified: the meshes differ"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
}

TEST_F(VerifyTest, SaysWhatCannotBeCompared) {
  expect_refused(run(1, arguments()), "--ranks");
  expect_refused(run(2, arguments() + "--ranks 4"), "--ranks");
  expect_refused(run(1, arguments() + "--ranks 2 --against '{\"data\":8}'"), "--against");
  expect_refused(run(1, arguments() + "--ranks 2 --against 8"), "--against");
}

}  // namespace
}  // namespace jigsaw::e2e
