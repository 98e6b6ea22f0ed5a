#pragma once
#include <gtest/gtest.h>

#include <string>

#include "end_to_end/command.h"

namespace jigsaw::e2e {

/// Runs of 60 steps that are saved every 7.
class SavedRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = small_config(folder_);
    config_["train"]["steps"] = 60;
    config_["optimizer"]["ema_decay"] = 0.9;
    config_["checkpoint"] = {{"every", 7}, {"keep", 2}};
    config_["validation"] = {{"every", 20}};
    write();
  }
  void write() { folder_.write("config.json", config_.dump()); }
  std::string arguments(const std::string& name) const {
    return "--config " + (folder_ / "config.json") + " --set output=" + (folder_ / name) + " ";
  }
  std::string newest(const std::string& name) const {
    return folder_ / (name + "/checkpoints/" + read(folder_ / (name + "/checkpoints/latest")));
  }
  void expect_one_error(const Outcome& outcome, int exit_code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }

  TemporaryFolder folder_;
  Json config_;
};

}  // namespace jigsaw::e2e
