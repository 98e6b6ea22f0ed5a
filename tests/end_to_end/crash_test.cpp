// kill -9 at any moment, and a disk that is full, lose at most the steps since the last checkpoint.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "checkpoint/save_phase.h"
#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

class CrashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = small_config(folder_);
    config_["data"].erase("valid");
    config_["train"]["steps"] = 20;
    config_["checkpoint"] = {{"every", 3}, {"keep", 1}};
    config_["model"]["embed_dim"] = 8;
    config_["schedule"]["type"] = "constant";
    folder_.write("config.json", config_.dump());
  }
  std::string arguments(const std::string& name) const {
    return "--config " + (folder_ / "config.json") + " --set output=" + (folder_ / name) + " ";
  }
  /// The step of the newest checkpoint with a manifest that is whole JSON, found without the program.
  int newest_step(const std::string& name) const {
    int newest = 0;
    std::int64_t serial = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / (name + "/checkpoints"), none)) {
      if (!entry.path().filename().string().starts_with("step_")) continue;
      const Json manifest = Json::parse(read(entry.path() / "manifest.json"));
      if (manifest.at("serial") <= serial) continue;
      serial = manifest.at("serial");
      newest = manifest.at("step");
    }
    return newest;
  }

  /// The step of the checkpoint that `latest` names, also while a run goes on.
  int newest_named(const std::string& name) const {
    const std::string latest = read(folder_ / (name + "/checkpoints/latest"));
    return latest.empty() ? 0 : std::stoi(latest.substr(std::strlen("step_")));
  }

  TemporaryFolder folder_;
  Json config_;
};

/// At each phase of the second or third save one rank dies, or all at once.
TEST_F(CrashTest, KilledAtEachPhaseOfASaveTheRunGoesOnFromTheNewestWholeCheckpoint) {
  ASSERT_EQ(run(2, arguments("whole")).exit_code, 0);
  const std::string whole = timeless(folder_ / "whole");
  const std::string mark = folder_ / "mark";
  ASSERT_EQ(setenv("JIGSAW_CRASH_MARK", mark.c_str(), 1), 0);
  int crashes = 0;
  for (int phase = 0; phase < kSavePhases; ++phase) {
    // The first save replaces nothing and removes nothing: the phases after it come from the second on.
    for (const bool all : {false, true}) {
      const int rank = phase < 4 && !all ? 1 : 0,
                save = static_cast<SavePhase>(phase) == SavePhase::kOldMoved ? 1 : 2;
      const std::string name = "crash" + std::to_string(phase) + (all ? "all" : "one");
      if (static_cast<SavePhase>(phase) == SavePhase::kOldMoved) {
        // Only a step that exists makes room: one saved by a run that was then taken back to before it.
        ASSERT_EQ(run(2, arguments(name) + "--set train.steps=9 --set checkpoint.keep=3").exit_code, 0);
        const std::string checkpoints = folder_ / (name + "/checkpoints/");
        fs::rename(checkpoints + "step_00000006", checkpoints + "step_00000012");
        fs::remove_all(checkpoints + "step_00000003");
      }
      const std::string crash = std::to_string(phase) + ":" + std::to_string(rank) + ":" +
                                std::to_string(save) + (all ? ":stop" : ":kill");
      ASSERT_EQ(setenv("JIGSAW_CRASH", crash.c_str(), 1), 0);
      fs::remove(mark);
      Running running(2, arguments(name), JIGSAW_TRAIN_CRASHING);
      if (all) {
        ASSERT_TRUE(running.until([&] { return fs::exists(mark); })) << crash;
        running.kill_all();
      }
      EXPECT_NE(running.collect().exit_code, 0) << crash;
      unsetenv("JIGSAW_CRASH");
      const int newest = newest_step(name);
      const Outcome resumed = run(2, arguments(name));
      ASSERT_EQ(resumed.exit_code, 0) << crash << resumed.err;
      EXPECT_GE(newest, 3) << crash;
      EXPECT_NE(resumed.out.find("at step " + std::to_string(newest) + "\n"), std::string::npos)
          << crash << resumed.out;
      EXPECT_EQ(timeless(folder_ / name), whole) << crash;
      EXPECT_EQ(resumed.err.find("passed over"), std::string::npos) << resumed.err;
      ++crashes;
    }
  }
  std::printf("%d crashes in %d phases of a save, of one rank and of all\n", crashes, kSavePhases);
}

TEST_F(CrashTest, KilledAtAHundredRandomTimesTheRunIsTheOneThatNeverWas) {
  constexpr int kSteps = 500, kSavesAhead = 4;
  const std::string steps = "--set train.steps=" + std::to_string(kSteps) + " --set checkpoint.every=1 ";
  ASSERT_EQ(run(1, arguments("whole") + steps).exit_code, 0);
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(run(1, arguments("short") + "--set train.steps=1").exit_code, 0);
  const double start = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  std::mt19937 random(3);
  int resumed = 0, kills = 0, last = 0, begun = 1;
  for (; kills < 100; ++kills) {
    // Where kills come late the run is soon done: it begins anew.
    if (last + kSavesAhead > kSteps) {
      std::filesystem::remove_all(folder_ / "killed");
      last = 0;
      ++begun;
    }
    Running running(1, arguments("killed") + steps);
    // A quarter while they start or load, the others some saves later and at any moment of one.
    double pause = start * static_cast<double>(random() % 1000) / 1000;
    if (kills % 4 != 0) {
      const int saves = last + 1 + static_cast<int>(random() % kSavesAhead);
      ASSERT_TRUE(running.until([&] { return newest_named("killed") >= saves; })) << last;
      pause = 0.005 * static_cast<double>(random() % 1000) / 1000;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    running.kill_all();
    const Outcome outcome = running.collect();
    if (outcome.out.find("resumed from") != std::string::npos) {
      ++resumed;
      EXPECT_NE(outcome.out.find(" at step " + std::to_string(last) + "\n"), std::string::npos)
          << last << outcome.out;
    }
    // Where the last one was killed behind its first line of metrics, and before its first save, that is
    // said.
    for (const std::string& said : outcome.said())
      EXPECT_TRUE(last == 0 && said.find("warning: no checkpoint is in ") != std::string::npos)
          << last << said;
    ASSERT_GE(newest_step("killed"), last);
    last = newest_step("killed");
  }
  ASSERT_EQ(run(1, arguments("killed") + steps).exit_code, 0);
  EXPECT_EQ(timeless(folder_ / "killed"), timeless(folder_ / "whole"));
  std::printf("%d kills up to step %d; %d of the runs had resumed\n", kills, last, resumed);
  EXPECT_GE(resumed, 75 - begun);  // but for those that began, all that came to save something
}

/// Behind the line of a validation that is the best, and before the save that says so.
TEST_F(CrashTest, ABestValidationIsNotForgotten) {
  config_ = small_config(folder_);
  config_["train"]["steps"] = 8;
  config_["checkpoint"] = {{"every", 4}, {"best", "t2m.rmse"}};
  config_["validation"] = {{"every", 4}};
  config_["optimizer"] = {{"learning_rate", 0.0}};  // no later validation is better
  folder_.write("config.json", config_.dump());
  const std::string best = folder_ / "run/checkpoints/best";
  ASSERT_EQ(setenv("JIGSAW_CRASH", "0:0:2:kill", 1), 0);
  Running running(2, arguments("run"), JIGSAW_TRAIN_CRASHING);
  EXPECT_NE(running.collect().exit_code, 0);
  unsetenv("JIGSAW_CRASH");
  ASSERT_EQ(newest_step("run"), 4);
  ASSERT_EQ(metrics(folder_ / "run", "valid").size(), 1U);
  ASSERT_FALSE(fs::exists(best));
  const Outcome resumed = run(2, arguments("run"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(read(best), "step_00000004");
  const std::vector<Json> lines = metrics(folder_ / "run", "valid");
  ASSERT_EQ(lines.size(), 2U);
  const Json manifest = Json::parse(read(folder_ / "run/checkpoints/step_00000004/manifest.json"));
  EXPECT_EQ(manifest.at("score").at("value"), lines.front().at("metrics").at("t2m").at("rmse"));
}

struct Unmounted {
  std::string path;
  ~Unmounted() { ::umount(path.c_str()); }
};

TEST_F(CrashTest, AFullDiskCostsNoStepAndThreeFailuresInARowEndTheRun) {
  const std::string checkpoints = folder_ / "full/checkpoints";
  fs::create_directories(checkpoints);
  if (::mount("tmpfs", checkpoints.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "may not mount a tmpfs here";
  const Unmounted at_end{checkpoints};
  const auto fill = [&](std::size_t bytes) {
    std::FILE* file = std::fopen((checkpoints + "/other").c_str(), "w");
    const std::string block(bytes, 'x');
    std::fwrite(block.data(), 1, bytes, file);
    std::fclose(file);
  };
  ASSERT_EQ(run(2, arguments("full") + "--set train.steps=4").exit_code, 0);
  fill(5'000'000);
  const Outcome full = run(2, arguments("full") + "--set train.steps=60");
  EXPECT_EQ(full.exit_code, 4) << full.err;
  EXPECT_EQ(full.errors().size(), 1U) << full.err;
  EXPECT_NE(full.err.find("3 checkpoints in a row could not be saved, the last of step 12: "),
            std::string::npos)
      << full.err;
  EXPECT_NE(full.err.find("the checkpoint of step 6 cannot be saved: "), std::string::npos) << full.err;
  EXPECT_EQ(newest_step("full"), 4);
  EXPECT_EQ(std::distance(fs::directory_iterator(checkpoints), {}), 3);  // latest, other
  fs::remove(checkpoints + "/other");
  const Outcome after = run(2, arguments("full") + "--set train.steps=60");
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_NE(after.out.find(" at step 4\n"), std::string::npos) << after.out;
  EXPECT_EQ(newest_step("full"), 60);
}

}  // namespace
}  // namespace jigsaw::e2e
