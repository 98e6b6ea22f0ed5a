// A run that is killed, stopped, requeued, out of disk and slow again and again, each time on another mesh,
// is the run that never was disturbed. JIGSAW_ENDURANCE_CYCLES=1000 does so a thousand times (default 30),
// JIGSAW_ENDURANCE_MINUTES=60 for an hour.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "base/clock.h"
#include "checkpoint/save_phase.h"
#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

struct Launch {
  int ranks;
  const char* mesh;
};
constexpr Launch kLaunches[] = {{1, "{}"},
                                {2, R"({"domain":[2,1]})"},
                                {2, R"({"domain":[1,2]})"},
                                {2, R"({"tensor":2})"},
                                {2, R"({"data":2})"},
                                {3, R"({"domain":[3,1]})"}};

enum Disturbance { kKillAll, kKillOne, kTerminate, kUser1, kFullDisk, kSlowDisk, kDisturbances };

/// Until when disturbances go on.
class Duration {
 public:
  bool is_over(int cycles) const {
    if (minutes_ > 0) return monotonic_seconds() - begin_ > 60 * minutes_;
    return cycles >= (cycles_ > 0 ? cycles_ : 30);
  }

 private:
  static double number(const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atof(text) : 0;
  }
  double minutes_ = number("JIGSAW_ENDURANCE_MINUTES"), cycles_ = number("JIGSAW_ENDURANCE_CYCLES"),
         begin_ = monotonic_seconds();
};

class EnduranceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Json config = small_config(folder_);
    config["data"].erase("valid");
    config["train"]["precision"] = "fp64";
    config["train"]["steps"] = 1000000;
    config["model"]["embed_dim"] = 8;
    config["schedule"]["type"] = "constant";
    config["checkpoint"] = {{"every", 1}, {"keep", 2}};
    folder_.write("config.json", config.dump());
  }
  std::string arguments(const char* name, const Launch& launch) const {
    return "--config " + (folder_ / "config.json") + " --set output=" + (folder_ / name) + " --set " +
           quoted(std::string("mesh=") + launch.mesh) + " ";
  }
  /// The step that `latest` names, also while a run goes on.
  int newest() const {
    const std::string latest = read(folder_ / "disturbed/checkpoints/latest");
    return latest.empty() ? 0 : std::stoi(latest.substr(std::strlen("step_")));
  }
  /// Loss by step; each step stands once.
  std::map<int, double> losses(const char* name) const {
    std::map<int, double> losses;
    for (const Json& line : metrics(folder_ / name, "train"))
      EXPECT_TRUE(losses.emplace(line.at("step"), line.at("loss")).second) << line;
    return losses;
  }

  TemporaryFolder folder_;
};

/// Of a disk that fails or sleeps, at any phase of the first save of a cycle that touches it.
void put_fault(std::mt19937& random, const char* how) {
  auto phase = random() % kSavePhases;
  if (phase == static_cast<unsigned>(SavePhase::kAgreed)) ++phase;  // ranks only talk
  const std::string fault = std::to_string(phase) + ":0:1:" + how;
  ASSERT_EQ(setenv("JIGSAW_CRASH", fault.c_str(), 1), 0);
}

TEST_F(EnduranceTest, DisturbedOnChangingMeshesTheCurveIsTheUndisturbedOne) {
  const Duration duration;
  std::mt19937 random(11);
  int counts[kDisturbances] = {};
  int done = 0;
  for (; !duration.is_over(done); ++done) {
    const auto what = static_cast<Disturbance>(random() % kDisturbances);
    const Launch& launch = kLaunches[random() % std::size(kLaunches)];
    if (what == kFullDisk) put_fault(random, "full");
    if (what == kSlowDisk) put_fault(random, "slow");
    const int target = newest() + 1 + static_cast<int>(random() % 3);
    Running running(launch.ranks, arguments("disturbed", launch), JIGSAW_TRAIN_CRASHING);
    ASSERT_TRUE(running.until([&] { return newest() >= target; }))
        << done << ": " << launch.mesh << running.collect().err;
    unsetenv("JIGSAW_CRASH");
    if (what == kKillAll || what == kSlowDisk) {
      running.kill_all();
    } else if (what == kKillOne) {
      ::kill(running.ranks()[random() % running.ranks().size()], SIGKILL);
    } else {
      running.signal(what == kTerminate ? SIGTERM : SIGUSR1);
    }
    const Outcome outcome = running.collect();
    if (what == kTerminate || what == kUser1 || what == kFullDisk) {
      EXPECT_EQ(outcome.exit_code, 75) << done << ": " << launch.mesh << outcome.err;
      EXPECT_EQ(outcome.errors(), std::vector<std::string>());
    } else {
      EXPECT_NE(outcome.exit_code, 0) << done;
    }
    EXPECT_GE(newest(), target) << done;
    ++counts[what];
  }
  const Launch& last = kLaunches[random() % std::size(kLaunches)];
  const int steps = newest() + 12;
  const std::string to_the_end = "--allow-change --set train.steps=" + std::to_string(steps) + " ";
  const Outcome finished = run(last.ranks, arguments("disturbed", last) + to_the_end);
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  ASSERT_EQ(run(1, arguments("whole", kLaunches[0]) + to_the_end + "--set checkpoint.every=0").exit_code, 0);

  const std::map<int, double> whole = losses("whole"), disturbed = losses("disturbed");
  ASSERT_EQ(whole.size(), static_cast<std::size_t>(steps));
  ASSERT_EQ(disturbed.size(), whole.size());
  double worst = 0;
  for (const auto& [step, loss] : whole) worst = std::max(worst, std::abs(disturbed.at(step) / loss - 1));
  EXPECT_LT(worst, 1e-9);
  std::printf(
      "%d cycles: %d kills of all ranks, %d of one, %d SIGTERM, %d SIGUSR1, %d failed saves, %d slow ones;"
      " losses at most %.1e apart over %zu steps\n",
      done, counts[kKillAll], counts[kKillOne], counts[kTerminate], counts[kUser1], counts[kFullDisk],
      counts[kSlowDisk], worst, whole.size());
}

}  // namespace
}  // namespace jigsaw::e2e
