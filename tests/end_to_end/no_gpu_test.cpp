// jigsaw-train with CUDA's own libraries on a machine without a GPU, or with none that it may see.
#include <gtest/gtest.h>

#include <cstdlib>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

class NoGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    for (const char* variable : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE"})
      unsetenv(variable);
    Json config = small_config(folder_);
    config["train"] = {{"steps", 3}, {"batch_size", 2}};
    config["log_every"] = 1;
    folder_.write("config.json", config.dump());
  }
  Outcome train(const std::string& program, const std::string& device) const {
    return Running(1,
                   "--config " + (folder_ / "config.json") + " --set device=" + device +
                       " --set output=" + (folder_ / device),
                   program)
        .collect();
  }

  TemporaryFolder folder_;
};

TEST_F(NoGpu, TheProcessorTrainsAndOneLineSaysSo) {
  const Outcome with = train(JIGSAW_TRAIN_CUDA, "auto"), without = train(JIGSAW_TRAIN, "cpu");
  EXPECT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(without.exit_code, 0) << without.err;
  const std::string line = "no GPU here: the processor computes";
  const std::string said = with.out + with.err;  // a warning where the machine has NVIDIA's driver
  const std::size_t at = said.find(line);
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find(line, at + 1), std::string::npos) << said;
  const std::vector<double> losses = series(metrics(folder_ / "auto", "train"), "loss");
  EXPECT_EQ(losses.size(), 3U);
  EXPECT_EQ(losses, series(metrics(folder_ / "cpu", "train"), "loss"));
}

TEST_F(NoGpu, AskedForOneTheRunEnds) {
  const Outcome outcome = train(JIGSAW_TRAIN_CUDA, "cuda");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("there is no GPU that this program can use"), std::string::npos)
      << outcome.err;
}

TEST_F(NoGpu, AGpuCheckSaysWhatIsMissing) {
  for (const auto& [program, says] :
       {std::pair(JIGSAW_TRAIN_CUDA, "there is no GPU that this program can use"),
        std::pair(JIGSAW_TRAIN, "this build has no CUDA kernels")}) {
    const Outcome outcome = Running(1, "gpu-check", program).collect();
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace jigsaw::e2e
