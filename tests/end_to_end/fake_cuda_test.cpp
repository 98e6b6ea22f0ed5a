// jigsaw-train with CUDA's kernels compiled for the host and a fake runtime (tests/support/fake_cuda): what
// it does on machines with and without GPUs, and that it trains there as on the processor.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

class FakeCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    Json config = small_config(folder_);
    config["train"] = {{"steps", 3}, {"batch_size", 2}};
    config["optimizer"]["ema_decay"] = 0.9;
    folder_.write("config.json", config.dump());
  }
  /// Runs a command of the program on a machine as JIGSAW_FAKE_CUDA describes it.
  Outcome run_on(const std::string& machine, int ranks, const std::string& command,
                 const std::string& program = JIGSAW_TRAIN_FAKE_CUDA) const {
    setenv("JIGSAW_FAKE_CUDA", machine.c_str(), 1);
    return Running(ranks, command + " --config " + (folder_ / "config.json"), program).collect();
  }
  static void expect_one_error(const Outcome& outcome, int code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }

  TemporaryFolder folder_;
};

TEST_F(FakeCuda, WithoutAGpuTheProcessorComputesAndTheRunSaysSo) {
  for (const char* machine : {"devices=0", "driver=0,devices=0"}) {
    const Outcome outcome = run_on(machine, 1, "check");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("no GPU here: the processor computes"), std::string::npos) << outcome.out;
    expect_one_error(run_on(machine, 1, "check --set device=cuda"), 2,
                     "there is no GPU that this program can use");
  }
}

TEST_F(FakeCuda, AGpuThatCannotBeUsedEndsTheRun) {
  expect_one_error(run_on("driver=12080", 1, "check"), 2, "is for CUDA 12.8, and this program needs 13.0");
  expect_one_error(run_on("major=7", 1, "check"), 2,
                   "no code for the GPU here, fake, compute capability 7.0");
  expect_one_error(run_on("devices=1", 2, "check --set device=cuda"), 2, "ranks 0 and 1 would share the GPU");
  EXPECT_EQ(run_on("driver=12080", 1, "check --set device=cpu").exit_code, 0);
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
}

}  // namespace
}  // namespace jigsaw::e2e
