// jigsaw-train with CUDA's kernels compiled for the host and a fake runtime (tests/support/fake_cuda): what
// it does on machines with and without GPUs, and that it trains there as on the processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

class FakeCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    Json config = small_config(folder_);
    config["train"] = {{"steps", 3}, {"batch_size", 2}};
    config["optimizer"]["ema_decay"] = 0.9;
    config["data"]["valid"][1] = config["data"]["valid"][0];
    folder_.write("config.json", config.dump());
  }
  /// Runs a command of the program on a machine as JIGSAW_FAKE_CUDA describes it.
  Outcome run_on(const std::string& machine, int ranks, const std::string& command,
                 const std::string& program = JIGSAW_TRAIN_FAKE_CUDA) const {
    setenv("JIGSAW_FAKE_CUDA", machine.c_str(), 1);
    return Running(ranks, command + " --config " + (folder_ / "config.json"), program).collect();
  }
  /// What the fake GPU would be measured to do, which takes seconds, and work that is to be counted.
  void give_machine() const {
    Json config = Json::parse(read(folder_ / "config.json"));
    config["machine"] = {
        {"flops_per_second", 1e12},
        {"memory_bytes_per_second", 1e11},
        {"links", Json::array({Json{{"bytes_per_second", 1e10}, {"latency_seconds", 1e-6}}})}};
    folder_.write("config.json", config.dump());
  }
  /// A model of one convolution.
  void give_convolution() const {
    Json config = Json::parse(read(folder_ / "config.json"));
    config["model"] = {
        {"type", "sequential"},
        {"layers", Json::array({Json{{"type", "conv"}, {"features", 1}, {"kernel", 3}, {"padding", 1}}})}};
    folder_.write("config.json", config.dump());
  }
  static void expect_one_error(const Outcome& outcome, int code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }

  TemporaryFolder folder_;
};

TEST_F(FakeCuda, WithoutAGpuTheProcessorComputesAndTheRunSaysSo) {
  for (const char* variable : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE"}) unsetenv(variable);
  for (const char* machine : {"devices=0", "driver=0,devices=0"}) {
    const Outcome outcome = run_on(machine, 1, "check");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    // On stderr where this machine has NVIDIA's driver.
    EXPECT_NE((outcome.out + outcome.err).find("no GPU here: the processor computes"), std::string::npos)
        << outcome.out;
    expect_one_error(run_on(machine, 1, "check --set device=cuda"), 2,
                     "there is no GPU that this program can use");
  }
}

/// A GPU node must not spend hours without its GPUs.
TEST_F(FakeCuda, AJobThatWasGivenGpusAndSeesNoneEnds) {
  setenv("SLURM_JOB_GPUS", "0,1", 1);
  const Outcome none = run_on("devices=0", 1, "check"),
                without = run_on("devices=0", 1, "check --set device=cpu"),
                some = run_on("devices=1", 1, "check");
  unsetenv("SLURM_JOB_GPUS");
  expect_one_error(none, 2, "this program sees no GPU, though SLURM_JOB_GPUS is \"0,1\"");
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_EQ(some.exit_code, 0) << some.err;
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  const Outcome warned = run_on("devices=0", 1, "check");
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(warned.exit_code, 0) << warned.err;
  EXPECT_NE(warned.err.find("CUDA_VISIBLE_DEVICES is \"7\" (a container wants"), std::string::npos)
      << warned.err;
}

TEST_F(FakeCuda, AGpuThatCannotBeUsedEndsTheRun) {
  expect_one_error(run_on("driver=12080", 1, "check"), 2, "is for CUDA 12.8, and this program needs 13.0");
  for (const char* error : {"209", "98"}) {
    expect_one_error(run_on(std::string("major=7,no_code=") + error, 1, "check"), 2,
                     "no code for the GPU here, fake, compute capability 7.0");
  }
  expect_one_error(run_on("devices=1", 2, "check --set device=cuda"), 2,
                   ", of which ranks 0 and 1 would share the GPU 0000:00:00.0 of ");
  expect_one_error(run_on("devices=1", 2, "check --set device=cuda"), 2, "NCCL_MULTI_RANK_GPU_ENABLE=1");
  expect_one_error(
      run_on("devices=2,unlike=1", 2, "check --set device=cuda"), 2,
      "ranks compute on unlike devices: rank 0 on fake (compute capability 9.0, driver for CUDA 13.0");
  for (const int ranks : {1, 2}) {
    expect_one_error(run_on("devices=2,cudnn=8907", ranks, "check --set device=cuda"), 2,
                     "cuDNN 9 is needed, and the library here is 8.9.7");
  }
  expect_one_error(run_on("devices=1,cudnn=91900,cudnn_cuda=12", 1, "check --set device=cuda"), 2,
                   "cuDNN for CUDA 13 is needed, and the library here, 9.19.0, is for CUDA 12");
  for (const char* device : {"auto", "cuda"}) {
    expect_one_error(
        run_on("broken=46", 1, std::string("check --set device=") + device), 2,
        "the GPUs of this machine cannot be used: all CUDA-capable devices are busy or unavailable");
  }
  expect_one_error(run_on("broken=46", 1, "check"), 2, "unavailable (cudaErrorDevicesUnavailable, 46) on ");
  expect_one_error(run_on("broken=802", 1, "check"), 2,
                   "system not yet initialized (cudaErrorSystemNotReady, 802) on ");
  expect_one_error(run_on("broken=802", 1, "check"), 2, ": the fabric manager of this NVSwitch machine ");
  expect_one_error(run_on("broken=999", 1, "check"), 2, "nvidia_uvm is not loaded");
  // Of two GPUs one is another's.
  expect_one_error(run_on("devices=2,taken=46,taken_device=1", 2, "check --set device=cuda"), 2,
                   "the GPU fake (0000:01:00.0 of ");
  expect_one_error(run_on("devices=1,taken=46", 1, "check"), 2, ") takes no other process, ");
  expect_one_error(run_on("devices=1,taken=2", 1, "check"), 2,
                   ") has no memory left for this process: out of memory (cudaErrorMemoryAllocation, 2); ");
  for (const char* machine : {"driver=12080", "cudnn=8907", "broken=46"})
    EXPECT_EQ(run_on(machine, 1, "check --set device=cpu").exit_code, 0);
}

/// All other ranks wait for one whose driver hangs, before any watchdog watches.
TEST_F(FakeCuda, ADriverThatDoesNotAnswerEndsTheJob) {
  for (const int ranks : {1, 2}) {
    const Outcome outcome = run_on("devices=2,silent=" + std::to_string(ranks - 1), ranks,
                                   "check --set device=cuda --set watchdog_seconds=4");
    const std::string who = ranks > 1 ? "[rank 1] " : "";
    expect_one_error(outcome, 1, "jigsaw-train: error: " + who + "the GPU driver of ");
    EXPECT_NE(outcome.err.find(" has not answered for 4 seconds; look at nvidia-smi"), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("jigsaw-train: warning: " + who + "the GPU driver of "), std::string::npos)
        << outcome.err;
    const std::string waits = ranks > 1 ? "all ranks wait for this one" : "this run waits";
    EXPECT_NE(outcome.err.find(" has not answered for 2 seconds; " + waits), std::string::npos)
        << outcome.err;
  }
  EXPECT_EQ(run_on("devices=1,silent=0", 1, "check --set device=cpu").exit_code, 0);
}

/// Not a run of days on slow kernels.
TEST_F(FakeCuda, ACudnnThatIsNotWholeEndsTheRun) {
  give_machine();
  give_convolution();
  for (const char* lacks : {"1001", "1008"}) {
    const Outcome outcome = run_on(std::string("devices=1,cudnn=91900,cudnn_lacks=") + lacks, 1,
                                   "--set device=cuda --set output=" + (folder_ / lacks));
    expect_one_error(outcome, 2, "install all of cuDNN 9");
    EXPECT_EQ(outcome.err.find("a far slower kernel"), std::string::npos) << outcome.err;
  }
}

TEST_F(FakeCuda, ChecksForOtherNumbersOfRanksReadOnTheHost) {
  const std::string elsewhere = "plan --set device=cuda --ranks 4 plans for GPUs";
  const Outcome outcome = run_on("devices=2", 1, "check --set device=cuda --ranks 4"),
                without = run_on("devices=0", 1, "check --ranks 4");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find(elsewhere), std::string::npos) << outcome.out;
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_NE(without.out.find(elsewhere), std::string::npos) << without.out;
}

/// By a GPU's memory and rates, not the host's.
TEST_F(FakeCuda, AMeshIsChosenForTheGpus) {
  const Outcome outcome = run_on("devices=2,mebibytes=512", 2, "check --set device=cuda");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::string said = outcome.out;  // without the breaks of its lines
  std::replace(said.begin(), said.end(), '\n', ' ');
  EXPECT_NE(said.find("by the constants of h100, for \"fake\" is not known"), std::string::npos)
      << outcome.out;
  EXPECT_NE(said.find("of 461 MiB a rank"), std::string::npos) << outcome.out;
}

TEST_F(FakeCuda, InitNamesTheCommandForTheGpus) {
  setenv("JIGSAW_FAKE_CUDA", "devices=2", 1);
  const Json files = Json::parse(read(folder_ / "config.json")).at("data").at("files");
  const std::string file = files.is_string() ? files : files.at(0);
  const Outcome outcome = Running(1, "init --data " + quoted(file) + " --output " + (folder_ / "first.json"),
                                  JIGSAW_TRAIN_FAKE_CUDA)
                              .collect();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("mpirun -n 2 --bind-to none jigsaw-train --config "), std::string::npos)
      << outcome.out;
}

/// Each of the runs that train at a time has its share of the GPUs, and ranks that mpirun binds to no one
/// core.
TEST_F(FakeCuda, RunsOfALocalSweepShareTheGpus) {
  folder_.write("grid.json",
                Json{{"keys", {{"seed", Json::array({1, 2, 3})}}}, {"output", folder_ / "sweep"}}.dump());
  folder_.write("mpirun", "#!/bin/sh\necho \"$CUDA_VISIBLE_DEVICES: $1 $2 $3 $4\"\n");
  std::filesystem::permissions(folder_ / "mpirun", std::filesystem::perms::owner_all);
  unsetenv("CUDA_VISIBLE_DEVICES");
  const std::string before = std::getenv("PATH");
  setenv("PATH", (folder_.path().string() + ":" + before).c_str(), 1);
  const auto shares = [&](const std::string& machine, const char* visible) {
    std::filesystem::remove_all(folder_ / "sweep");
    if (visible != nullptr) setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    const Outcome outcome =
        run_on(machine, 1,
               "sweep --grid " + (folder_ / "grid.json") + " --set validation.every=1 --local 2 --ranks 2");
    unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::set<std::string> said;
    for (const auto& run : std::filesystem::directory_iterator(folder_ / "sweep")) {
      if (run.is_directory()) said.insert(read(run.path() / "output.txt"));
    }
    return said;
  };
  using Said = std::set<std::string>;
  const std::string command = ": -n 2 --bind-to none\n";
  EXPECT_EQ(shares("devices=4", nullptr), (Said{"0,1" + command, "2,3" + command}));
  EXPECT_EQ(shares("devices=3", "4,6,7"), (Said{"4,6" + command, "6,7" + command}));
  EXPECT_EQ(shares("devices=2", nullptr), (Said{"0,1" + command, "1,0" + command}));
  EXPECT_EQ(shares("devices=1", nullptr), (Said{"0" + command}));
  EXPECT_EQ(shares("devices=0", nullptr), (Said{command}));
  setenv("PATH", before.c_str(), 1);
}

TEST_F(FakeCuda, GpuCheckTriesWhatTrainingTakes) {
  setenv("JIGSAW_FAKE_CUDA", "devices=2,cudnn=91900,peers=1", 1);
  for (const int ranks : {1, 2}) {
    const Outcome outcome = Running(ranks, "gpu-check", JIGSAW_TRAIN_FAKE_CUDA).collect();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const char* part : {"rank 0  0000:00:00.0 of ", "9.19.0), ", " of 4.0 GiB free", "cores ",
                             "for CUDA 13.0 (13.0 or newer needed)", "cuBLASLt 13.0.2",
                             "products: ", "FLOP/s in bfloat16", "copies: ", "are right"})
      EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
    for (const char* part : {"within a machine, 2 ranks: each sends ", "(plans assume 40 GB/s after 15 µs",
                             "rank 1  0000:01:00.0 of ", "; PCIe to GPU 0", "arrays of", "all_gather",
                             "reduce_scatter", "all_reduce", "all_to_all", "exchange"})
      EXPECT_EQ(outcome.out.find(part) != std::string::npos, ranks == 2) << part << " in\n" << outcome.out;
  }
  setenv("JIGSAW_FAKE_CUDA", "devices=0", 1);
  expect_one_error(Running(1, "gpu-check", JIGSAW_TRAIN_FAKE_CUDA).collect(), 2,
                   "there is no GPU that this program can use");
}

/// A machine on which something is not as it should be.
TEST_F(FakeCuda, GpuCheckNamesWhatIsWrong) {
  setenv("JIGSAW_FAKE_CUDA", "devices=2,peers=1,spoil_device=1", 1);
  const Outcome wrong = Running(2, "gpu-check", JIGSAW_TRAIN_FAKE_CUDA).collect();
  expect_one_error(wrong, 1, "[rank 1] a product in fp32 gives ");
  EXPECT_NE(wrong.out.find("; PCIe to GPU 0"), std::string::npos) << wrong.out;
  setenv("JIGSAW_FAKE_CUDA", "devices=1,own=1", 1);
  const Outcome alone = Running(2, "gpu-check", JIGSAW_TRAIN_FAKE_CUDA).collect();
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_NE(alone.err.find("see their own GPU alone"), std::string::npos) << alone.err;
}

/// Of those that it sees each rank takes one that no other has, whatever the launcher hides or turns round.
TEST_F(FakeCuda, RanksFindTheirGpus) {
  for (const char* machine : {"devices=1,own=1", "devices=2,own=2"}) {
    const Outcome outcome = run_on(machine, 2, "gpu-check");
    EXPECT_EQ(outcome.exit_code, 0) << machine << outcome.err;
    for (const char* part : {"rank 0  0000:00:00.0 of ", "rank 1  0000:01:00.0 of "})
      EXPECT_NE(outcome.out.find(part), std::string::npos) << machine << ": " << part << " in\n"
                                                           << outcome.out;
  }
  // Two slices of one GPU are two devices, which MPI connects.
  EXPECT_EQ(run_on("devices=2,slices=1", 2, "check --set device=cuda").exit_code, 0);
}

/// The axes of a mesh that is named, or of a configuration's.
TEST_F(FakeCuda, GpuCheckTriesTheAxesOfAMesh) {
  setenv("JIGSAW_FAKE_CUDA", "devices=2", 1);
  for (const std::string& command :
       {std::string("gpu-check --mesh '{\"domain\":[2,1]}'"),
        "gpu-check --set 'mesh={\"domain\":[2,1]}' --config " + (folder_ / "config.json")}) {
    const Outcome outcome = Running(2, command, JIGSAW_TRAIN_FAKE_CUDA).collect();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("along domain0, 2 ranks: each sends "), std::string::npos) << outcome.out;
  }
  expect_one_error(Running(2, "gpu-check --mesh '{\"data\":3}'", JIGSAW_TRAIN_FAKE_CUDA).collect(), 2, "3");
  expect_one_error(Running(2, "gpu-check --mesh '{\"row\":2}'", JIGSAW_TRAIN_FAKE_CUDA).collect(), 2,
                   "--mesh: ");
  expect_one_error(Running(1, "gpu-check --set train.steps=1", JIGSAW_TRAIN_FAKE_CUDA).collect(), 2,
                   "--config");
}

/// A GPU that hangs ends the job; its rank is named.
TEST_F(FakeCuda, GpuCheckNamesARankThatDoesNotCome) {
  for (int limit = 2;; limit *= 2) {  // until one comes in which all got to run
    const Outcome hung =
        run_on("devices=2,hang_after=6,hang_device=1", 2,
               "gpu-check --set mesh.data=2 --set watchdog_seconds=" + std::to_string(limit));
    ASSERT_EQ(hung.exit_code, 1) << hung.out << hung.err;
    const bool named = hung.err.find("not arrived: rank 1") != std::string::npos;
    if (!named && limit < 200) continue;
    EXPECT_TRUE(named) << hung.err;
    break;
  }
}

/// What a user is told of errors that a device reports later than they happen, and of one that has no room.
TEST_F(FakeCuda, ErrorsNameOperationAndStep) {
  give_machine();
  const std::string output = " --set device=cuda --set train.steps=40 --set output=" + (folder_ / "run");
  const Outcome later = run_on("devices=1,fail_after=400,fail_with=700", 1, output);
  expect_one_error(later, 1, "an illegal memory access was encountered");
  EXPECT_NE(later.err.find("CUDA failed in operation "), std::string::npos) << later.err;
  EXPECT_NE(later.err.find(" of step "), std::string::npos) << later.err;
  setenv("JIGSAW_CUDA_SYNC", "1", 1);
  const Outcome at_once = run_on("devices=1,fail_after=400,fail_with=700", 1, output);
  unsetenv("JIGSAW_CUDA_SYNC");
  expect_one_error(at_once, 1, "CUDA failed in the launch of ");
  // Which launch is the 400th depends on the machine: it may stand between two operations.
  EXPECT_TRUE(at_once.err.find(", operation ") != std::string::npos ||
              at_once.err.find(", work between operations of step ") != std::string::npos)
      << at_once.err;
  const Outcome replayed = run_on("devices=1,fail_after=1500,fail_with=700", 1, output);
  expect_one_error(replayed, 1, "CUDA failed in operation replay of ");
  EXPECT_TRUE(replayed.err.find(" replay of part 1 of the batch of step ") != std::string::npos ||
              replayed.err.find(" replay of the update of step ") != std::string::npos)
      << replayed.err;
  EXPECT_NE(replayed.err.find("JIGSAW_CUDA_SYNC=1"), std::string::npos) << replayed.err;
}

TEST_F(FakeCuda, AFullDeviceIsNamedWithItsRank) {
  give_machine();
  const Outcome full =
      run_on("devices=2,mebibytes=4", 2,
             " --set device=cuda --set mesh.data=2 --set train.steps=2 --set output=" + (folder_ / "run"));
  EXPECT_EQ(full.exit_code, 1);
  const std::regex said(
      "\\[rank [01]\\] out of memory on CUDA device [01] in [^:]*, [0-9.]+ MiB of 4.0 MiB are in use: an "
      "array of [0-9.]+ [KM]iB \\([a-z]+\\) does not fit, .*arrays hold ");
  EXPECT_TRUE(std::regex_search(full.err, said)) << full.err;
}

/// One of two ranks loses its GPU: both end, somebody can find it, and what was saved before stands alone.
TEST_F(FakeCuda, ALostGpuEndsTheJobAndNothingOfItIsSaved) {
  give_machine();
  const std::string
      output = folder_ / "run",
      command =
          " --set device=cuda --set mesh.data=2 --set train.steps=40 --set watchdog_seconds=300 "
          "--set checkpoint.every=1 --set checkpoint.keep=100 --set output=" +
          output;
  const char* const folders = std::getenv("LD_LIBRARY_PATH");
  const std::string before = folders == nullptr ? "" : folders;
  setenv("LD_LIBRARY_PATH", (JIGSAW_FAKE_NVML_DIR ":" + before).c_str(), 1);
  const Outcome lost = run_on("devices=2,fail_after=4000,fail_with=214,fail_device=1", 2, command);
  setenv("LD_LIBRARY_PATH", before.c_str(), 1);
  expect_one_error(lost, 1, "[rank 1] the GPU fake, serial number 1650923012301 (0000:01:00.0 of ");
  EXPECT_NE(lost.err.find("uncorrectable ECC error encountered; nothing is saved from it"), std::string::npos)
      << lost.err;
  const std::size_t named = lost.err.find("the last whole checkpoint is " + output + "/checkpoints/step_");
  EXPECT_NE(named, std::string::npos) << lost.err;
  std::int64_t step = 0;
  const std::size_t at = lost.err.find(" of step ");
  ASSERT_NE(at, std::string::npos) << lost.err;
  step = std::stoll(lost.err.substr(at + 9));
  EXPECT_GT(step, 1);
  for (const auto& entry : std::filesystem::directory_iterator(output + "/checkpoints")) {
    const std::string name = entry.path().filename();
    if (name.rfind("step_", 0) == 0) {
      EXPECT_LT(std::stoll(name.substr(5)), step) << name;
    }
  }
  const Outcome gone_on = run_on("devices=2", 2, command + " --set train.steps=" + std::to_string(step));
  EXPECT_EQ(gone_on.exit_code, 0) << gone_on.err;
}

/// Averaged weights, which a validation uses, are not exchanged back on a GPU that is gone.
TEST_F(FakeCuda, AGpuThatIsLostInAValidationIsNamed) {
  give_machine();
  const std::string output = folder_ / "run";
  // Behind ever more work, until it is behind the only step: a validation has far more than is added.
  for (int behind = 150;; behind += 150) {
    std::filesystem::remove_all(output);
    const Outcome lost = run_on("devices=1,fail_with=214,fail_after=" + std::to_string(behind), 1,
                                " --set device=cuda --set train.steps=1 --set log_every=1 "
                                "--set validation.every=1 --set output=" +
                                    output);
    expect_one_error(lost, 1, "the GPU fake, ");
    if (HasFailure()) break;
    if (metrics(output, "train").empty()) continue;
    EXPECT_NE(lost.err.find("uncorrectable ECC error encountered"), std::string::npos) << lost.err;
    EXPECT_EQ(metrics(output, "valid").size(), 0U);
    break;
  }
}

/// Each once in a run, not in every step; they say that train.tf32 came to the device.
TEST_F(FakeCuda, ConvolutionsThatCudnnRefusesAreSaidOnce) {
  give_machine();
  give_convolution();
  const std::string command = "--set device=cuda --set train.tf32=true --set output=" + (folder_ / "run");
  for (const bool refuses : {true, false}) {
    const Outcome outcome =
        run_on(refuses ? "devices=1,cudnn=91900,cudnn_refuses=1" : "devices=1,cudnn=91900", 1,
               command + (refuses ? "_refused" : "_planned"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::multiset<std::string> said;
    for (const std::string& line : outcome.said()) {
      if (line.find("cuDNN has no plan for ") != std::string::npos) said.insert(line);
    }
    EXPECT_EQ(said.empty(), !refuses) << outcome.err;
    for (const std::string& line : said) {
      EXPECT_EQ(said.count(line), 1U) << line;
      EXPECT_NE(line.find(", factors rounded"), std::string::npos) << line;
    }
  }
}

/// A run whose products cuBLASLt does not know goes on with kernels of the program's own, and says so.
TEST_F(FakeCuda, TrainsWithoutCublas) {
  give_machine();
  std::vector<double> losses;
  for (const char* machine : {"devices=1", "devices=1,cublas_refuses=-1"}) {
    const std::string output = folder_ / ("run" + std::to_string(losses.size()));
    const Outcome outcome =
        run_on(machine, 1, "--set device=cuda --set train.steps=3 --set output=" + output);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::map<std::string, int> said;
    for (const std::string& line : outcome.said()) {
      if (line.find("cuBLASLt has no algorithm for the product of ") != std::string::npos) ++said[line];
    }
    EXPECT_EQ(said.empty(), losses.empty()) << outcome.err;
    for (const auto& [line, times] : said) EXPECT_EQ(times, 1) << line;
    const auto lines = metrics(output, "train");
    ASSERT_FALSE(lines.empty());
    losses.push_back(lines.back().at("loss").get<double>());
  }
  EXPECT_NEAR(losses[1], losses[0], 1e-4 * std::abs(losses[0]));
}

/// Plans for GPUs are made by the constants of a GPU, in a run as by `plan`, and are not those for
/// processors.
TEST_F(FakeCuda, SendsWhatIsPlannedForGpus) {
  give_machine();
  const std::string command =
      "--set device=cuda --set train.steps=1 --set 'mesh={\"domain\":[2,1]}' --set model.embed_dim=256 --set "
      "output=" +
      (folder_ / "run");
  const auto planned = [&](const std::string& options) {
    const Outcome outcome = run_on("devices=2", 1, "plan --json --ranks 2 " + command + options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out).at("configured");
  };
  const Outcome outcome = run_on("devices=2", 2, command);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json ranks = Json::parse(read(folder_ / "run/summary.json")).at("ranks"), plan = planned("");
  ASSERT_EQ(ranks.size(), 2U);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const char* key : {"parameter_bytes", "optimizer_bytes", "peak_activation_bytes", "sent_bytes"})
      EXPECT_EQ(plan.at("ranks")[r].at(key), ranks[r].at(key)) << key << " of rank " << r;
  }
  EXPECT_NE(plan.at("collectives"), planned(" --machine cpu-node").at("collectives"));
}

/// Steps that are replayed, with validations and checkpoints between them, and those that go on from one, are
/// those that the host puts in, bit for bit; so are those of a virtual GPU, whose memory cannot be mapped.
TEST_F(FakeCuda, ReplayedRunsAreTheSame) {
  give_machine();
  constexpr std::size_t kSteps = 9;
  const auto train = [&](const std::string& name, const std::string& options,
                         const std::string& machine = "devices=1") {
    const Outcome outcome = run_on(
        machine, 1,
        "--set device=cuda --set log_every=1 --set train.steps=" + std::to_string(kSteps) +
            " --set validation.every=4 --set checkpoint.every=3 --set checkpoint.keep=10 --set output=" +
            (folder_ / name) + options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find("are not recorded"), std::string::npos) << outcome.out;
  };
  const auto lines = [&](const std::string& name, std::size_t first) {
    std::vector<std::vector<double>> all;
    for (const Json& line : metrics(folder_ / name, "train")) {
      if (line.at("step").get<std::size_t>() >= first)
        all.push_back({line.at("step"), line.at("loss"), line.at("grad_norm"), line.at("learning_rate")});
    }
    return all;
  };
  const auto saved = [&](const std::string& name) {
    Json pieces = Json::array();
    const std::string manifest = read(folder_ / (name + "/checkpoints/step_00000009/manifest.json"));
    for (const Json& shard : Json::parse(manifest).at("shards")) pieces.push_back(shard.at("pieces"));
    return pieces;
  };
  const auto recorded = [&](const std::string& name) {
    return Json::parse(read(folder_ / (name + "/summary.json"))).value("recorded_steps", 0);
  };
  train("plain", " --set train.graphs=false");
  train("replayed", "");
  train("virtual", "", "devices=1,vmm=0");
  train("refused", "", "devices=1,vmm=2");
  train("resumed", " --resume " + (folder_ / "plain/checkpoints/step_00000003"));
  ASSERT_EQ(lines("plain", 1).size(), kSteps);
  EXPECT_EQ(lines("replayed", 1), lines("plain", 1));
  EXPECT_EQ(lines("virtual", 1), lines("plain", 1));
  EXPECT_EQ(lines("refused", 1), lines("plain", 1));
  EXPECT_EQ(lines("resumed", 4), lines("plain", 4));
  EXPECT_EQ(metrics(folder_ / "replayed", "valid").back().at("metrics"),
            metrics(folder_ / "plain", "valid").back().at("metrics"));
  for (const char* name : {"replayed", "resumed", "virtual"}) EXPECT_EQ(saved(name), saved("plain")) << name;
  EXPECT_EQ(recorded("plain"), 0);
  EXPECT_GE(recorded("replayed"), 4);
  EXPECT_GE(recorded("virtual"), 2);
  EXPECT_GE(recorded("resumed"), 2);
}

TEST_F(FakeCuda, TrainsAsOnTheProcessor) {
  const auto losses = [&](const std::string& name, const std::string& program, const std::string& device) {
    const std::string output = folder_ / name;
    const Outcome outcome = run_on(
        "devices=1", 1, "--set output=" + output + " --set log_every=1 --set device=" + device, program);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return series(metrics(output, "train"), "loss");
  };
  const std::vector<double> wanted = losses("processor", JIGSAW_TRAIN, "cpu"),
                            found = losses("gpu", JIGSAW_TRAIN_FAKE_CUDA, "cuda");
  ASSERT_EQ(wanted.size(), 3U);
  ASSERT_EQ(found.size(), 3U);
  for (std::size_t step = 0; step < wanted.size(); ++step)
    EXPECT_NEAR(found[step], wanted[step], 1e-4 * std::abs(wanted[step]));
  // The GPU was measured.
  const Json machine = Json::parse(read(folder_ / "gpu/machine.json"));
  EXPECT_EQ(machine.at("device"), "cuda");
  EXPECT_GT(machine.at("machine").at("flops_per_second"), 0);
  EXPECT_GT(series(metrics(folder_ / "gpu", "train"), "peak_share").at(0), 0);
}

}  // namespace
}  // namespace jigsaw::e2e
