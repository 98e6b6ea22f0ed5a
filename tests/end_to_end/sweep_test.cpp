#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/cores.h"
#include "base/text.h"
#include "command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

/// A configuration of few steps, and the common part of the sweep's commands.
std::string prepare(const TemporaryFolder& folder, const std::string& grid) {
  Json config = small_config(folder);
  config["train"]["steps"] = 4;
  config["validation"] = {{"every", 2}};
  config["output"] = folder / "run";
  folder.write("c.json", config.dump());
  folder.write("grid.json", grid);
  return "sweep --config " + folder / "c.json" + " --grid " + folder / "grid.json";
}

TEST(Sweep, TrainsEachRunInAFolderOfItsOwnAndNamesTheBest) {
  const TemporaryFolder folder;
  const std::string sweep =
      prepare(folder, R"({"keys": {"optimizer.learning_rate": [1e-3, 0.0], "seed": [1, 2]}})");
  EXPECT_EQ(run(1, sweep + " --size").out, "4\n");
  const Outcome first = run(2, sweep + " --index 0");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string at = folder / "run_sweep/learning_rate=0.001,seed=1";
  EXPECT_EQ(Json::parse(read(at + "/summary.json")).at("ranks").size(), 2U);
  // The same as a run of its own with these keys.
  const Outcome alone = run(2, "--config " + folder / "c.json" + " --set output=" + folder / "alone" +
                                   " --set optimizer.learning_rate=1e-3 --set seed=1");
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(series(metrics(at, "train"), "loss"), series(metrics(folder / "alone", "train"), "loss"));

  const Outcome rest = run(1, sweep + " --local 2");
  ASSERT_EQ(rest.exit_code, 0) << rest.err << rest.out;
  const Json summary = Json::parse(run(1, sweep + " --summary --format json").out);
  EXPECT_EQ(summary.at("counts"), (Json{{"finished", 4}}));
  double best = 1e30;
  std::string name;
  for (const Json& entry : summary.at("runs")) {
    const std::vector<Json> lines =
        metrics(folder / ("run_sweep/" + entry.at("name").get<std::string>()), "valid");
    ASSERT_EQ(lines.size(), 2U);
    const double loss = lines.back().at("loss").get<double>();
    EXPECT_EQ(entry.at("metric").get<double>(), loss);
    if (loss < best) best = loss, name = entry.at("name").get<std::string>();
  }
  EXPECT_EQ(summary.at("best"), name);
}

/// What a command of the shell prints, on both streams.
std::string printed_by(const std::string& command) {
  std::string text;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  pclose(pipe);
  return text;
}

/// As GNU's OpenMP says what it read of the environment, each time that the program begins.
TEST(Threads, WaitShortlyUnlessTheUserSaysHow) {
  const std::string version = quoted(JIGSAW_TRAIN) + " --version",
                    bare =
                        "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=VERBOSE OMP_NUM_THREADS=";
  const std::string usual = printed_by(bare + "2 " + version);
  if (usual.find("GOMP_SPINCOUNT") == std::string::npos)
    GTEST_SKIP() << "the threads are not those of GNU's OpenMP";
  EXPECT_NE(usual.find("GOMP_SPINCOUNT = '1000'"), std::string::npos) << usual;
  EXPECT_NE(usual.find("jigsaw-train "), std::string::npos) << usual;
  for (const std::string& told :
       {bare + "1 ", bare + "2 OMP_WAIT_POLICY=active ", bare + "2 GOMP_SPINCOUNT=77 "}) {
    const std::string text = printed_by(told + version);
    EXPECT_EQ(text.find("GOMP_SPINCOUNT = '1000'"), std::string::npos) << text;
    EXPECT_NE(text.find("jigsaw-train "), std::string::npos) << text;
  }
}

TEST(Sweep, LocalRunsShareTheCores) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"keys": {"seed": [1, 2]}})");
  const std::string text =
      printed_by("cd " + folder.path().string() + "; env -u OMP_NUM_THREADS OMP_DISPLAY_ENV=TRUE " +
                 quoted(JIGSAW_TRAIN) + " " + sweep + " --local 2");
  const std::string output = read(folder / "run_sweep/seed=1/output.txt");
  if (output.find("OMP_NUM_THREADS") == std::string::npos)
    GTEST_SKIP() << "the threads are not those of GNU's OpenMP";
  EXPECT_NE(output.find(concat("OMP_NUM_THREADS = '", std::max(1, usable_cores() / 2), "'")),
            std::string::npos)
      << text << output;
}

TEST(Sweep, LocalRunsTakeTheOptionsOfTraining) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"keys": {"seed": [1, 2]}})");
  ASSERT_EQ(
      run(1, "--config " + folder / "c.json" + " --set checkpoint.every=4 --set output=" + folder / "first")
          .exit_code,
      0);
  const Outcome outcome = run(1, sweep + " --local 1 --init-from " + folder / "first" + " --no-verify");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* seed : {"1", "2"}) {
    EXPECT_NE(read(folder / ("run_sweep/seed=" + std::string(seed) + "/log.txt")).find("initialised "),
              std::string::npos);
  }
}

/// Open MPI 4 has one folder for all jobs of a user on a machine. Jobs that begin in it while others end fail
/// at times; where a file has its name all do, but those that have another.
TEST(Sweep, LocalRunsAreNotInEachOthersWay) {
  const TemporaryFolder folder;
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const std::string name = host;
  for (const std::string& each : {name, name.substr(0, name.find('.'))})
    folder.write("ompi." + each + "." + std::to_string(::geteuid()), "");
  const std::string sweep = prepare(folder, R"({"keys": {"seed": [1, 2]}})");
  const char* const given = std::getenv("OMPI_MCA_orte_tmpdir_base");  // ctest gives one
  const std::string base = given == nullptr ? "" : given;
  ::unsetenv("OMPI_MCA_orte_tmpdir_base");
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  const bool shared = std::system((quoted(JIGSAW_MPIEXEC) + " -n 1 true > /dev/null 2>&1").c_str()) != 0;
  // Nor is a run that no launcher starts.
  EXPECT_EQ(run(1, "check --config " + folder / "c.json").exit_code, 0);
  for (const char* ranks : {"1", "2"}) {
    const Outcome outcome = run(1, sweep + " --local 2 --ranks " + ranks);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err << read(folder / "run_sweep/seed=1/output.txt");
    fs::remove_all(folder / "run_sweep");
  }
  ::unsetenv("TMPDIR");
  if (given != nullptr) ::setenv("OMPI_MCA_orte_tmpdir_base", base.c_str(), 1);
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with("jigsaw-mpi")) << entry.path();
  if (!shared) GTEST_SKIP() << "this MPI has no such folder";
}

/// What runs meanwhile is not left alone.
TEST(Sweep, ARunThatCannotBeStartedWaitsForTheOthers) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"keys": {"seed": [1, 2]}})");
  fs::create_directories(folder / "run_sweep/seed=2/output.txt");
  const Outcome outcome = run(1, sweep + " --local 2");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("for run seed=2 with its output in "), std::string::npos) << outcome.err;
  EXPECT_TRUE(fs::exists(folder / "run_sweep/seed=1/summary.json"));
}

TEST(Sweep, WhatCanNeverBeJudgedIsRefusedBeforeTheFirstRun) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& grid, const std::string& more, const std::string& says) {
    const Outcome outcome = run(1, prepare(folder, grid) + " --local 1" + more);
    EXPECT_EQ(outcome.exit_code, 2) << grid << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(folder / "run_sweep")) << grid;
  };
  refused(R"({"metric": "t2m.rsme", "keys": {"seed": [1, 2]}})", "", "t2m.rmse");
  refused(R"({"metric": "foo", "keys": {"seed": [1, 2]}})", "", "validation gives no \"foo\"");
  refused(R"({"keys": {"seed": []}})", "", "no run");
  refused(
      R"({"method": "halving", "count": 4, "keys": {"optimizer.learning_rate": {"from": 1e-4, "to": 1e-2}}})",
      " --set validation.every=0", "needs validations");
}

/// What is wrong is the metric, and not the rates that are no whole numbers.
TEST(Sweep, AMetricThatIsNotThereIsNoMatterOfWholeNumbers) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"method": "random", "count": 2, "metric": "accuracy",
    "keys": {"optimizer.learning_rate": {"from": 1e-4, "to": 1e-2}}})");
  const Outcome outcome = run(1, sweep + " --list");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("validation gives no \"accuracy\""), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("integer"), std::string::npos) << outcome.err;
}

TEST(Sweep, WhatDoesNotCompareIsWarnedOf) {
  const TemporaryFolder folder;
  const std::string other = prepare(folder, R"({"keys": {"loss.type": ["mse", "l1"]}})");
  for (const char* how : {" --list", " --summary"}) {
    const Outcome outcome = run(1, other + how);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.err.find("the sweep changes loss.type, and with it what loss measures"),
              std::string::npos)
        << outcome.err;
  }
  const Outcome turned = run(1, prepare(folder, R"({"keys": {"seed": [1, 2]}, "metric": "t2m.rmse",
    "best_is": "highest"})") + " --summary");
  EXPECT_NE(turned.err.find("best_is is \"highest\", and of t2m.rmse \"lowest\" is better"),
            std::string::npos)
      << turned.err;
  EXPECT_TRUE(run(1, prepare(folder, R"({"keys": {"seed": [1, 2]}})") + " --summary").said().empty());
}

TEST(Sweep, HalvingTrainsTheBestOnFromTheirCheckpoints) {
  const TemporaryFolder folder;
  const std::string sweep =
      prepare(folder, R"({"method": "halving", "count": 4, "halving": {"first_steps": 2, "factor": 2},
    "keys": {"optimizer.learning_rate": {"from": 1e-4, "to": 1e-2, "scale": "log"}}})");
  EXPECT_EQ(run(1, sweep + " --index 4").exit_code, 75) << "a round that is not ready";
  const Outcome all = run(1, sweep + " --local 1");
  ASSERT_EQ(all.exit_code, 0) << all.err << all.out;
  const Json summary = Json::parse(run(1, sweep + " --summary --format json").out);
  int at_two = 0, at_four = 0;
  for (const Json& entry : summary.at("runs")) {
    at_two += entry.at("step") == 2 ? 1 : 0;
    at_four += entry.at("step") == 4 ? 1 : 0;
  }
  EXPECT_EQ(at_two, 2);
  EXPECT_EQ(at_four, 2);
}

/// A killed run leaves no exit code, until whoever starts it says that it will not be started again.
TEST(Sweep, ARunThatIsGivenUpIsNotWaitedFor) {
  const TemporaryFolder folder;
  const std::string sweep =
      prepare(folder, R"({"method": "halving", "count": 4, "halving": {"first_steps": 2, "factor": 2},
    "keys": {"optimizer.learning_rate": {"from": 1e-4, "to": 1e-2, "scale": "log"}}})");
  const auto state = [&](int index) {
    return run(1, sweep + " --state --index " + std::to_string(index)).out;
  };
  EXPECT_EQ(state(3), "waiting\n");
  for (const char* index : {"0", "1", "2"}) ASSERT_EQ(run(1, sweep + " --index " + index).exit_code, 0);
  EXPECT_EQ(state(2), "finished 0\n");
  const std::string killed =
      Json::parse(run(1, sweep + " --summary --format json").out).at("runs").at(3).at("name");
  fs::create_directories(folder / ("run_sweep/" + killed));
  folder.write("run_sweep/" + killed + "/exit.json", "{}\n");
  EXPECT_EQ(state(3), "interrupted\n");
  EXPECT_EQ(run(1, sweep + " --index 4").exit_code, 75);
  EXPECT_EQ(run(1, sweep + " --gave-up 137 --index 3").exit_code, 0);
  EXPECT_EQ(state(3), "failed 137\n");
  EXPECT_EQ(run(1, sweep + " --gave-up 9 --index 2").exit_code, 0) << "it is finished";
  EXPECT_EQ(state(2), "finished 0\n");
  EXPECT_EQ(run(1, sweep + " --index 4").exit_code, 0);
}

/// What is refused says nothing of the run that another start trains, or that has finished.
TEST(Sweep, ARefusedStartLeavesTheRunAsItStands) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"method": "grid", "keys": {"seed": [1, 2]}})");
  ASSERT_EQ(run(1, sweep + " --index 0").exit_code, 0);
  const auto state = [&](const char* index) { return run(1, sweep + " --state --index " + index).out; };
  EXPECT_EQ(state("0"), "finished 0\n");
  EXPECT_EQ(run(1, sweep + " --index 0 --set mesh.data=2").exit_code, 2);
  EXPECT_EQ(state("0"), "finished 0\n");

  EXPECT_EQ(run(1, sweep + " --index 1 --set mesh.data=2").exit_code, 2);
  EXPECT_EQ(state("1"), "failed 2\n");
  const Json summary = Json::parse(run(1, sweep + " --summary --format json").out);
  const std::string name = summary.at("runs").at(1).at("name");
  const std::string of_run = folder / ("run_sweep/" + name);
  folder.write("run_sweep/" + name + "/exit.json", "{}\n");
  folder.write("run_sweep/" + name + "/lock", "");
  const int lock = ::open((of_run + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_EQ(state("1"), "running\n");
  EXPECT_EQ(run(1, sweep + " --index 1").exit_code, 2) << "another start trains it";
  EXPECT_EQ(state("1"), "running\n");
  ::close(lock);
  EXPECT_EQ(state("1"), "interrupted\n");
}

TEST(Sweep, AWrongValueIsToldBeforeTheFirstRun) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"keys": {"train.batch_size": [4, -1]}})");
  for (const char* how : {" --index 0", " --local 1", " --list"}) {
    const Outcome outcome = run(1, sweep + how);
    EXPECT_EQ(outcome.exit_code, 2) << how;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find("train.batch_size"), std::string::npos) << outcome.errors()[0];
  }
  EXPECT_FALSE(fs::exists(folder / "run_sweep/sweep.json"));
}

/// What the sweep sets in whole would silently replace it.
TEST(Sweep, WhatItReplacesCannotBeSetBesideIt) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(
      folder, R"({"method": "list", "runs": [{"schedule": {"type": "constant"}, "train.batch_size": 4},
                     {"schedule": {"type": "cosine"}, "train.batch_size": 2, "seed": 3}]})");
  for (const char* given : {"schedule.warmup_steps=1", "train.batch_size=4"}) {
    for (const char* how : {" --index 0", " --local 1", " --list"}) {
      const Outcome outcome = run(1, sweep + how + " --set " + given);
      EXPECT_EQ(outcome.exit_code, 2) << how;
      ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
      EXPECT_NE(outcome.errors()[0].find("has no effect, for all runs of the sweep set"), std::string::npos)
          << outcome.errors()[0];
    }
  }
  EXPECT_EQ(run(1, sweep + " --size --set schedule={} --set train.batch=0").exit_code, 2) << "no such key";
  EXPECT_EQ(run(1, sweep + " --size --set train.steps=3 --set seed=2").out, "2\n") << "one run has that seed";
}

TEST(Sweep, RangesOverWholeNumbersGiveSuch) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"method": "random", "count": 4, "keys": {
      "seed": {"from": 1, "to": 100}, "optimizer.learning_rate": {"from": 1e-3, "to": 5}}})");
  const Outcome list = run(1, sweep + " --list");
  EXPECT_EQ(list.exit_code, 0) << list.err;
  for (const std::string& line : split(list.out, '\n')) {
    if (line.empty()) continue;
    const Json set = Json::parse(line.substr(line.find('{')));
    EXPECT_TRUE(set.at("seed").is_number_integer()) << line;
    EXPECT_TRUE(set.at("optimizer.learning_rate").is_number_float()) << line;
  }
}

/// FOLDER/* names the list and the lock beside the runs.
TEST(Sweep, ReportsOfItsFolderAreOfItsRunsAlone) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"keys": {"seed": [1, 2]}})");
  ASSERT_EQ(run(1, sweep + " --local 1").exit_code, 0);
  std::string all;
  for (const auto& entry : fs::directory_iterator(folder / "run_sweep"))
    all += " " + quoted(entry.path().string());
  ASSERT_NE(all.find("sweep.json"), std::string::npos);
  ASSERT_NE(all.find("sweep.lock"), std::string::npos);
  const Outcome states = run(1, "report --states" + all);
  EXPECT_NE(states.out.find("2 runs: 2 finished\n"), std::string::npos) << states.out;
  const Outcome page = run(1, "report --output " + folder / "r.html" + all);
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_EQ(run(1, "report " + folder / "run_sweep/sweep.json").exit_code, 2);
}

/// What the list has was read when it came there.
TEST(Sweep, StatesOfAllAreToldAtOnceAndReadNoConfigurations) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"keys": {"seed": [1, 2, 3]}})"),
                    at = folder / "run_sweep/seed=";
  for (const char* run : {"1", "2"}) fs::create_directories(at + run);
  std::ofstream(at + "1/exit.json") << R"({"exit_code": 0})";
  std::ofstream(at + "2/exit.json") << R"({"exit_code": 137})";
  EXPECT_EQ(run(1, sweep + " --states").out, "0 finished 0\n1 failed 137\n2 waiting\n");
  EXPECT_EQ(run(1, sweep + " --state --index 1").out, "failed 137\n");
}

/// The one that is refused, for the other trains the run, has not failed.
TEST(Sweep, TwoStartsAtOnceAreNoFailure) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"keys": {"seed": [1]}})");
  ASSERT_EQ(run(1, sweep + " --list").exit_code, 0);
  fs::create_directories(folder / "run_sweep/seed=1");
  const std::string file = folder / "run_sweep/seed=1/lock";
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  const Outcome outcome = run(1, sweep + " --local 1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("seed=1: trained by another process"), std::string::npos) << outcome.out;
  ::close(lock);
}

TEST(Sweep, AFailedRunIsSaidAndTheOthersAreTrained) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(
      folder, R"({"keys": {"data.variables": [["nothing"], ["t2m"]]}, "output": ")" + folder / "s" + "\"}");
  const Outcome all = run(1, sweep + " --local 2");
  EXPECT_EQ(all.exit_code, 3) << "all that failed ended so";
  EXPECT_NE(all.out.find(": failed with exit code 3 "), std::string::npos) << all.out;
  EXPECT_EQ(all.errors().size(), 1U) << all.err;
  const Json summary = Json::parse(run(1, sweep + " --summary --format json").out);
  EXPECT_EQ(summary.at("counts"), (Json{{"failed", 1}, {"finished", 1}}));
}

/// One run finds no data, the other more ranks in its mesh than were started.
TEST(Sweep, RunsThatFailWithSeveralCodesEndWithNoneOfThem) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(
      folder,
      R"({"method": "list", "runs": [{"data.variables": ["nothing"]}, {"mesh.data": 2}], "output": ")" +
          folder / "s" + "\"}");
  const Outcome all = run(1, sweep + " --local 1");
  EXPECT_EQ(all.exit_code, 1) << all.err;
  for (const char* code : {"2", "3"})
    EXPECT_NE(all.out.find(std::string(": failed with exit code ") + code), std::string::npos) << all.out;
}

TEST(Sweep, WithoutANumberItSaysWhatIsMissing) {
  const TemporaryFolder folder;
  const std::string sweep = prepare(folder, R"({"keys": {"seed": [1]}})");
  EXPECT_NE(run(1, sweep).err.find("SLURM_ARRAY_TASK_ID"), std::string::npos);
  EXPECT_NE(run(1, sweep + " --index 1").err.find("the last one is 0"), std::string::npos);
}

}  // namespace
}  // namespace jigsaw::e2e
