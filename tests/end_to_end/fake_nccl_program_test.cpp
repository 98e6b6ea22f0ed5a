// jigsaw-train with ranks on GPUs that are not there, each a process, and NCCL between them
// (tests/support/fake_nccl/between_processes.cpp): what it computes is what MPI between the same GPUs gives,
// and it ends as it should where NCCL is too old, a GPU is lost or hangs, or a rank dies.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "end_to_end/command.h"
#include "support/netcdf_reader.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 2;

class FakeNcclProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    Json config = small_config(folder_);
    config["train"] = {{"steps", 4}, {"batch_size", 2}};
    const std::string day = config["data"]["valid"][0];
    config["data"]["valid"] = {day + "T00:00", day + "T14:00"};
    config["optimizer"]["ema_decay"] = 0.9;
    config["log_every"] = 1;
    config["validation"]["every"] = 3;
    config["checkpoint"] = {{"every", 2}, {"keep", 100}};
    config["schedule"] = {{"type", "constant"}};  // whatever the number of steps
    config["device"] = "cuda";
    config["mesh"] = {{"domain", {2, 1}}};
    config["machine"] = {
        {"flops_per_second", 1e12},
        {"memory_bytes_per_second", 1e11},
        {"links", Json::array({Json{{"bytes_per_second", 1e10}, {"latency_seconds", 1e-6}}})}};
    folder_.write("config.json", config.dump());
    setenv("JIGSAW_FAKE_NCCL", (folder_ / "wire").c_str(), 1);
    fs::create_directories(folder_ / "wire");
  }
  void TearDown() override {
    unsetenv("JIGSAW_FAKE_NCCL");
    unsetenv("JIGSAW_FAKE_CUDA");
  }

  /// Two GPUs, and what goes wrong on them.
  static void set_machine(const std::string& faults = "") {
    setenv("JIGSAW_FAKE_CUDA", ("devices=2" + faults).c_str(), 1);
  }
  std::string arguments(const std::string& command) const {
    return command + " --config " + (folder_ / "config.json");
  }
  Outcome run_with(const char* program, const std::string& command) const {
    return Running(kRanks, arguments(command), program).collect();
  }
  /// With NCCL; what was sent was taken, and all communicators have ended.
  Outcome run_well(const std::string& command) const { return expect_well(arguments(command)); }
  Outcome expect_well(const std::string& command) const {
    set_machine();
    Outcome outcome = Running(kRanks, command, JIGSAW_TRAIN_FAKE_NCCL).collect();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("nobody took"), std::string::npos) << outcome.err;
    EXPECT_TRUE(fs::is_empty(folder_ / "wire"));
    return outcome;
  }
  Outcome run_over_mpi(const std::string& command) const {
    set_machine();
    Outcome outcome = run_with(JIGSAW_TRAIN_FAKE_CUDA, command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }
  std::string output(const std::string& name) const { return " --set output=" + (folder_ / name); }

  std::vector<std::vector<double>> steps(const std::string& name) const {
    std::vector<std::vector<double>> all;
    for (const Json& line : metrics(folder_ / name, "train"))
      all.push_back({line.at("step"), line.at("loss"), line.at("grad_norm")});
    return all;
  }
  /// Digests among them.
  Json saved(const std::string& name) const {
    Json pieces = Json::array();
    const std::string manifest = read(folder_ / (name + "/checkpoints/step_00000004/manifest.json"));
    for (const Json& shard : Json::parse(manifest).at("shards")) pieces.push_back(shard.at("pieces"));
    return pieces;
  }

  TemporaryFolder folder_;
};

/// Bit for bit: steps that are recorded with their calls of NCCL, validations, checkpoints, and what goes on
/// from one on another mesh.
TEST_F(FakeNcclProgram, TrainsAsOverMpi) {
  run_over_mpi(output("mpi"));
  run_well(output("nccl"));
  ASSERT_EQ(steps("mpi").size(), 4U);
  ASSERT_EQ(steps("nccl"), steps("mpi"));
  EXPECT_EQ(metrics(folder_ / "nccl", "valid").back().at("metrics"),
            metrics(folder_ / "mpi", "valid").back().at("metrics"));
  EXPECT_EQ(saved("nccl"), saved("mpi"));
  const Json summary = Json::parse(read(folder_ / "nccl/summary.json"));
  EXPECT_GE(summary.value("recorded_steps", 0), 2);
  EXPECT_EQ(Json::parse(read(folder_ / "mpi/summary.json")).value("recorded_steps", 0), 0);

  const std::string resume =
      " --set 'mesh={\"data\":2}' --resume " + (folder_ / "nccl/checkpoints/step_00000002");
  run_over_mpi(output("mpi_data") + resume);
  run_well(output("nccl_data") + resume);
  ASSERT_EQ(steps("mpi_data").size(), 2U);
  EXPECT_EQ(steps("nccl_data"), steps("mpi_data"));
  EXPECT_EQ(saved("nccl_data"), saved("mpi_data"));
}

/// Forecasts and scores of a checkpoint, and a run whose sums NCCL itself forms.
TEST_F(FakeNcclProgram, ForecastsAsOverMpi) {
  run_well(output("run") + " --set reduction=fast");
  run_over_mpi(output("mpi"));
  const std::vector<std::vector<double>> fast = steps("run"), exact = steps("mpi");
  ASSERT_EQ(fast.size(), exact.size());
  for (std::size_t i = 0; i < fast.size(); ++i) EXPECT_NEAR(fast[i][1], exact[i][1], 1e-4 * exact[i][1]);

  const std::string checkpoint = " --checkpoint " + (folder_ / "run/checkpoints/step_00000004");
  const Json valid = Json::parse(read(folder_ / "config.json")).at("data").at("valid");
  const std::string predict = "predict --start " + valid.at(0).get<std::string>() + checkpoint;
  run_well(predict + " --output " + (folder_ / "nccl.nc"));
  run_over_mpi(predict + " --output " + (folder_ / "mpi.nc"));
  const auto forecasts = [&](const char* name) {
    return testing::NetcdfReader(folder_ / name).values("t2m");
  };
  EXPECT_EQ(forecasts("nccl.nc"), forecasts("mpi.nc"));
  // Without how long it took, which ends the last line.
  const auto scores = [](const Outcome& outcome) { return outcome.out.substr(0, outcome.out.rfind(" in ")); };
  EXPECT_EQ(scores(run_well("evaluate" + checkpoint)), scores(run_over_mpi("evaluate" + checkpoint)));
}

TEST_F(FakeNcclProgram, GpuCheckTriesNccl) {
  const Outcome outcome = expect_well("gpu-check --mesh '{\"domain\":[2,1]}'");
  for (const char* part : {"nccl 2.28.9", "along domain0, 2 ranks: each sends ", "all_reduce", "are right"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
}

/// What NCCL is likely to take is left to it, half of a GPU that is small: in warnings, and where a mesh is
/// chosen, by nine tenths of the rest.
TEST_F(FakeNcclProgram, MemoryIsLeftToNccl) {
  const auto checked = [&](const char* program, const std::string& mesh) {
    setenv("JIGSAW_FAKE_CUDA", "devices=2,mebibytes=120", 1);
    const Outcome outcome = run_with(program, "check --set train.batch_size=200" + mesh);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out + outcome.err;
  };
  const auto expect_said = [&](const std::string& said, const std::string& part, bool there = true) {
    EXPECT_EQ(said.find(part) != std::string::npos, there) << part << " in\n" << said;
  };
  expect_said(checked(JIGSAW_TRAIN_FAKE_CUDA, ""), "memory: as planned a rank holds up to ", false);
  expect_said(checked(JIGSAW_TRAIN_FAKE_NCCL, ""),
              "1 rank has 120 MiB on a GPU, of which NCCL takes some 60.0 MiB");
  const std::string any = " --set 'mesh=\"auto\"'";
  expect_said(checked(JIGSAW_TRAIN_FAKE_CUDA, any), " of 108 MiB a rank");
  expect_said(checked(JIGSAW_TRAIN_FAKE_NCCL, any), " of 54.0 MiB a rank");
}

TEST_F(FakeNcclProgram, AnOldNcclIsRefused) {
  set_machine();
  setenv("JIGSAW_FAKE_NCCL_VERSION", "22505", 1);
  const Outcome outcome = run_with(JIGSAW_TRAIN_FAKE_NCCL, "check");
  unsetenv("JIGSAW_FAKE_NCCL_VERSION");
  EXPECT_EQ(outcome.exit_code, 2);
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("NCCL 2.26.2 or newer is needed, and the library here is 2.25.5"),
            std::string::npos)
      << outcome.err;
}

/// Nothing travels from one rank: no NCCL is asked for.
TEST_F(FakeNcclProgram, OneRankNeedsNoNccl) {
  set_machine();
  setenv("JIGSAW_FAKE_NCCL_VERSION", "22505", 1);
  const Outcome outcome = Running(1, arguments("--set 'mesh=\"auto\"' --set train.steps=8" + output("one")),
                                  JIGSAW_TRAIN_FAKE_NCCL)
                              .collect();
  unsetenv("JIGSAW_FAKE_NCCL_VERSION");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GE(Json::parse(read(folder_ / "one/summary.json")).value("recorded_steps", 0), 2);
  EXPECT_TRUE(fs::is_empty(folder_ / "wire"));
}

TEST_F(FakeNcclProgram, SlicesOfOneGpuAreRefused) {
  set_machine(",slices=1");
  const Outcome outcome = run_with(JIGSAW_TRAIN_FAKE_NCCL, "check");
  EXPECT_EQ(outcome.exit_code, 2);
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("ranks 0 and 1 compute on slices of one GPU (MIG), 0000:00:00.0 of "),
            std::string::npos)
      << outcome.err;
}

TEST_F(FakeNcclProgram, ALostGpuIsNamedByItsRankAlone) {
  set_machine(",fail_after=3000,fail_with=214,fail_device=1");
  const Outcome lost = run_with(JIGSAW_TRAIN_FAKE_NCCL, "--set train.steps=40" + output("run"));
  EXPECT_EQ(lost.exit_code, 1);
  ASSERT_EQ(lost.errors().size(), 1U) << lost.err;
  EXPECT_NE(lost.err.find("[rank 1] the GPU fake, "), std::string::npos) << lost.err;
  EXPECT_NE(lost.err.find("uncorrectable ECC error encountered; nothing is saved from it"), std::string::npos)
      << lost.err;
}

/// The watchdog sees by the log of calls, though the host does not wait for NCCL.
TEST_F(FakeNcclProgram, AGpuThatHangsIsNamed) {
  for (int limit = 4;; limit *= 2) {  // until one comes in which all got to run
    fs::remove_all(folder_ / "run");
    set_machine(",hang_after=2000,hang_device=1");
    const Outcome hung =
        run_with(JIGSAW_TRAIN_FAKE_NCCL,
                 "--set train.steps=40 --set watchdog_seconds=" + std::to_string(limit) + output("run"));
    ASSERT_EQ(hung.exit_code, 1) << hung.out << hung.err;
    const bool named = hung.err.find("; not arrived: rank 1\n") != std::string::npos;
    if (!named && limit < 200) continue;
    EXPECT_TRUE(named) << hung.err;
    EXPECT_NE(hung.err.find("no progress for "), std::string::npos) << hung.err;
    break;
  }
}

/// What was saved before stands, and a run goes on from it. A signal lets ranks save together.
TEST_F(FakeNcclProgram, GoesOnBehindARankThatDied) {
  set_machine();
  const fs::path checkpoints = folder_ / "run/checkpoints";
  const std::string endless = "--set train.steps=400 --set train.graphs=false" + output("run");
  {
    Running running(kRanks, arguments(endless), JIGSAW_TRAIN_FAKE_NCCL);
    ASSERT_TRUE(running.until([&] { return fs::exists(checkpoints / "step_00000002/manifest.json"); }));
    kill(running.ranks().at(1), SIGKILL);
    EXPECT_NE(running.collect().exit_code, 0);
  }
  const auto last_step = [&] {
    std::size_t last = 0;
    for (const Json& line : metrics(folder_ / "run", "train")) last = line.at("step");
    return last;
  };
  const std::size_t killed_behind = last_step();
  fs::remove_all(folder_ / "wire");  // what the dead have left
  fs::create_directories(folder_ / "wire");
  {
    Running running(kRanks, arguments(endless), JIGSAW_TRAIN_FAKE_NCCL);
    ASSERT_TRUE(running.until([&] { return last_step() > killed_behind; }));
    running.signal(SIGTERM);
    EXPECT_EQ(running.collect().exit_code, 75);
  }
  const std::size_t last = last_step();
  char name[32];
  std::snprintf(name, sizeof(name), "step_%08zu", last);
  EXPECT_TRUE(fs::exists(checkpoints / name)) << name;
  const std::size_t goal = (last / 2 + 1) * 2;
  run_well("--set train.steps=" + std::to_string(goal) + output("run"));
  // The same as a run that nobody ended.
  run_over_mpi("--set train.steps=" + std::to_string(goal) + output("whole"));
  ASSERT_FALSE(steps("run").empty());
  ASSERT_FALSE(steps("whole").empty());
  EXPECT_EQ(steps("run").back(), steps("whole").back());
}

}  // namespace
}  // namespace jigsaw::e2e
