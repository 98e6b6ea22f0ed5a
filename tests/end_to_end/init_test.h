#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "end_to_end/command.h"

namespace jigsaw::e2e {

/// What `init` writes, and what it says meanwhile.
class InitTest : public ::testing::Test {
 protected:
  void expect_ok(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err; }
  void expect_error(const Outcome& outcome, int code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }
  std::string text() const {
    std::ifstream file(folder_ / "first.json");
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  void expect_text(const std::vector<std::string>& parts) const {
    for (const std::string& part : parts)
      EXPECT_NE(text().find(part), std::string::npos) << part << " in\n" << text();
  }
  /// Writes it anew.
  Outcome init(const std::string& arguments) {
    std::filesystem::remove(folder_ / "first.json");
    const Outcome outcome = run(1, "init --output " + quoted(folder_ / "first.json") + " " + arguments);
    warnings_ = outcome.err;
    return outcome;
  }
  /// Of the last init().
  void expect_warnings(const std::vector<std::string>& parts) const {
    for (const std::string& part : parts)
      EXPECT_NE(warnings_.find(part), std::string::npos) << part << " in\n" << warnings_;
  }
  /// Writes it, opens all that it names, and trains for a moment.
  void expect_runs(const std::string& arguments, const std::string& steps) {
    expect_ok(init(arguments));
    const std::string config = "--config " + quoted(folder_ / "first.json");
    expect_ok(run(2, "check " + config));
    std::filesystem::remove_all(folder_ / "run");
    const Outcome trained = run(
        2, config + " --set train.epochs=" + steps +
               " --set validation.every=0 --set checkpoint.every=0 --set output=" + quoted(folder_ / "run"));
    expect_ok(trained);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run/summary.json"));
  }

  TemporaryFolder folder_;
  std::string warnings_;
};

}  // namespace jigsaw::e2e
