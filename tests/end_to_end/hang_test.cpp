// Whatever a rank does to its job, the job ends and says who it was: a rank that is late, stops, dies or is a
// call ahead of the others, in training, validation, saving and loading.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 3;

/// Calls of one rank inside a phase of a traced run.
std::vector<long long> calls_in(const Json& trace, int rank, const std::string& phase) {
  std::vector<long long> calls;
  for (const Json& around : trace.at("traceEvents")) {
    if (around.value("pid", -1) != rank || around.value("ph", "") != "X" ||
        !around.at("name").get<std::string>().starts_with(phase)) {
      continue;
    }
    const double begin = around.at("ts"), end = begin + around.at("dur").get<double>();
    for (const Json& event : trace.at("traceEvents")) {
      const bool call = event.value("pid", -1) == rank && event.value("ph", "") == "X" &&
                        event.contains("args") && event.at("args").contains("call") &&
                        event.at("cat") != "wait";
      if (call && event.at("ts").get<double>() >= begin && event.at("ts").get<double>() < end)
        calls.push_back(event.at("args").at("call").get<long long>());
    }
    break;
  }
  return calls;
}

class HangTest : public ::testing::Test {
 protected:
  /// A run of two steps to go on from, and which calls the phases of two more steps make.
  void SetUp() override {
    Json config = small_config(folder_);
    config["train"]["steps"] = 4;
    config["validation"]["every"] = 2;
    config["checkpoint"]["every"] = 2;
    config["mesh"] = {{"domain", {3, 1}}};
    folder_.write("config.json", config.dump());
    ASSERT_EQ(run(kRanks, arguments("begun") + "--set train.steps=2").exit_code, 0);
    fs::copy(folder_ / "begun", folder_ / "traced", fs::copy_options::recursive);
    const Outcome traced =
        run(kRanks, arguments("traced") + "--trace-steps all --trace " + (folder_ / "trace.json"));
    ASSERT_EQ(traced.exit_code, 0) << traced.err;
    trace_ = Json::parse(read(folder_ / "trace.json"));
    whole_ = read(folder_ / "traced/metrics.jsonl");
  }
  std::string arguments(const std::string& name) const {
    return "--config " + (folder_ / "config.json") + " --set output=" + (folder_ / name) + " ";
  }

  /// The same run with a fault of one rank in the middle of a phase.
  Outcome with_fault(int rank, const std::string& phase, const std::string& how, int limit) {
    const std::vector<long long> calls = calls_in(trace_, rank, phase);
    EXPECT_FALSE(calls.empty()) << phase;
    fs::remove_all(folder_ / "run");
    fs::copy(folder_ / "begun", folder_ / "run", fs::copy_options::recursive);
    const std::string fault =
        std::to_string(rank) + ":" + std::to_string(calls.at(calls.size() / 2)) + ":" + how;
    setenv("JIGSAW_FAULT", fault.c_str(), 1);
    Running running(kRanks, arguments("run") + "--set watchdog_seconds=" + std::to_string(limit),
                    JIGSAW_TRAIN_CRASHING);
    unsetenv("JIGSAW_FAULT");
    return running.collect();
  }

  void expect_named(int rank, const std::string& phase, const std::string& how) {
    SCOPED_TRACE("rank " + std::to_string(rank) + ", " + phase + ", " + how);
    if (how == "delay") {
      const Outcome late = with_fault(rank, phase, how, 600);
      EXPECT_EQ(late.exit_code, 0) << late.err;
      EXPECT_EQ(late.errors().size(), 0U) << late.err;
      EXPECT_EQ(metrics(folder_ / "run", "train").size(), 4U);
      return;
    }
    if (how == "kill") {
      EXPECT_NE(with_fault(rank, phase, how, 600).exit_code, 0);
      return;
    }
    // With ever longer limits, until one comes in which all got to run.
    for (int limit = 2;; limit *= 2) {
      const Outcome ended = with_fault(rank, phase, how, limit);
      ASSERT_EQ(ended.exit_code, 1) << ended.out << ended.err;
      ASSERT_GE(ended.errors().size(), 1U) << ended.err;
      if (how == "extra") return;
      const bool named =
          ended.err.find("not arrived: rank " + std::to_string(rank) + "\n") != std::string::npos;
      if (named || limit > 200) {
        EXPECT_TRUE(named) << ended.err;
        return;
      }
    }
  }

  TemporaryFolder folder_;
  Json trace_;
  std::string whole_;
};

/// Each way, each phase and each rank once; JIGSAW_ALL_HANGS=1 tries all of their combinations.
TEST_F(HangTest, TheJobEndsAndSaysWhoItWas) {
  const std::vector<std::string> phases = {"step", "validation", "save", "load"};
  const std::vector<std::string> ways = {"stop", "extra", "kill", "delay"};
  const bool all = std::getenv("JIGSAW_ALL_HANGS") != nullptr;
  int cases = 0;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    for (std::size_t w = 0; w < ways.size(); ++w) {
      for (int rank = 0; rank < kRanks; ++rank) {
        const bool quick = w == (p + 1) % ways.size() && rank == static_cast<int>(p) % kRanks;
        if (!all && !quick && !(p == 0 && w == 0 && rank == 0)) continue;
        expect_named(rank, phases[p], ways[w]);
        ++cases;
      }
    }
  }
  std::printf("%d cases of a rank that is late, stops, dies or is ahead\n", cases);
}

/// What stands in a folder of the watchdog's in the working folder of a job; none: there is no such folder.
std::vector<std::string> watchdog_files(const fs::path& working_folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(working_folder)) {
    if (entry.path().string().find("jigsaw-watchdog.") != std::string::npos)
      names.push_back(entry.path().filename().string());
  }
  return names;
}

/// Of commands that have no run directory, in the middle of what they do.
TEST_F(HangTest, AnEvaluationThatHangsEndsAndSaysWhoItWas) {
  const std::string evaluate =
      "evaluate " + arguments("other") + "--checkpoint " + (folder_ / "begun") + " --set watchdog_seconds=";
  for (int limit = 2;; limit *= 2) {
    SCOPED_TRACE(limit);
    setenv("JIGSAW_FAULT", "1:40:stop", 1);
    Running running(kRanks, evaluate + std::to_string(limit), JIGSAW_TRAIN_CRASHING);
    unsetenv("JIGSAW_FAULT");
    const Outcome ended = running.collect();
    ASSERT_EQ(ended.exit_code, 1) << ended.out << ended.err;
    ASSERT_EQ(ended.errors().size(), 1U) << ended.err;
    const std::vector<std::string> left = watchdog_files(running.folder());
    EXPECT_TRUE(std::ranges::any_of(left, [](const std::string& name) { return name.ends_with("Z.txt"); }));
    const bool named = ended.errors()[0].find("not arrived: rank 1") != std::string::npos;
    if (!named && limit < 200) continue;
    EXPECT_TRUE(named) << ended.err;
    break;
  }
  Running whole(kRanks, evaluate + "600");
  const Outcome done = whole.collect();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(watchdog_files(whole.folder()).empty()) << "left behind";
}

/// A signal ends it as any program, and what the watchdog had goes with it.
TEST_F(HangTest, AnEvaluationThatASignalEndsLeavesNothing) {
  setenv("JIGSAW_FAULT", "1:40:stop", 1);
  Running running(kRanks, "evaluate " + arguments("other") + "--checkpoint " + (folder_ / "begun"),
                  JIGSAW_TRAIN_CRASHING);
  unsetenv("JIGSAW_FAULT");
  ASSERT_TRUE(running.until([&] { return !watchdog_files(running.folder()).empty(); }));
  kill(running.ranks().at(0), SIGTERM);
  EXPECT_NE(running.collect().exit_code, 0);
  EXPECT_TRUE(watchdog_files(running.folder()).empty());
}

}  // namespace
}  // namespace jigsaw::e2e
