#include "estimate/machine_model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace machine_model_test {

using testing::TemporaryFolder;

TEST(MachineModel, AxesWithinANodeHaveItsLinks) {
  const MachineModel h100 = machine_model("h100-nvlink");
  // Rank order: tensor fastest. 2 × 4 ranks of domain1 × tensor share a node of 8; domain0 and data do not.
  const Machine machine = h100.on({4, {4, 2, 2, 4}}, Precision::kBfloat16);
  EXPECT_EQ(machine.flops_per_second, h100.flops_per_second_bf16);
  EXPECT_EQ(machine.links[3].bytes_per_second, h100.node_link->bytes_per_second);
  EXPECT_EQ(machine.links[2].bytes_per_second, h100.node_link->bytes_per_second);
  EXPECT_EQ(machine.links[1].bytes_per_second, h100.links[0].bytes_per_second);
  EXPECT_EQ(machine.links[0].bytes_per_second, h100.links[0].bytes_per_second);
  // Groups of 3 do not fill nodes of 8: some lie across, unless all ranks are on one.
  EXPECT_EQ(h100.on({4, {1, 1, 4, 3}}, Precision::kFloat32).links[3].bytes_per_second,
            h100.links[0].bytes_per_second);
  EXPECT_EQ(h100.on({4, {1, 1, 2, 3}}, Precision::kFloat32).links[3].bytes_per_second,
            h100.node_link->bytes_per_second);
}

TEST(MachineModel, SaysByWhichConstantsBlocksArePlanned) {
  const CostModel gpus = machine_model("h100-nvlink").costs(Precision::kBfloat16);
  EXPECT_EQ(gpus.ranks_per_node, 8);
  EXPECT_EQ(gpus.element_bytes, 2);
  EXPECT_GT(gpus.link({2, {4, 8}}, axis_bit(1)).bytes_per_second,
            gpus.link({2, {4, 8}}, axis_bit(0)).bytes_per_second);
  EXPECT_EQ(machine_model("cpu-node").costs(Precision::kBfloat16).flops_per_second,
            CostModel().flops_per_second);
  EXPECT_EQ(machine_model("cpu-node").costs(Precision::kBfloat16).ranks_per_node, 1);
  // The section `machine` tells nothing of nodes: those of GPUs are as usual.
  const MachineOptions options{1e12, 1e11, {{1e9, 1e-5}}};
  EXPECT_EQ(machine_model(options, Device::kCuda).costs(Precision::kFloat32).ranks_per_node, 8);
  EXPECT_EQ(machine_model(options, Device::kCpu).costs(Precision::kFloat32).flops_per_second,
            CostModel().flops_per_second);
}

TEST(MachineModel, ComesFromFilesToo) {
  const TemporaryFolder folder;
  const std::string own = folder.path() + "/own.json", measured = folder.path() + "/machine.json";
  write_text_atomically(own,
                        R"({"flops_per_second": 1e12, "memory_bytes_per_second": 1e11, "memory_bytes": 5,
                            "links": [{"bytes_per_second": 1e9, "latency_seconds": 0}]})");
  EXPECT_EQ(machine_model(own).memory_bytes, 5);
  // As a run on domain 2 × 1 leaves it: what was not measured is taken from what was.
  write_text_atomically(
      measured,
      R"({"mesh": [1, 2, 1, 1], "threads": 1, "machine": {"flops_per_second": 1e10, "memory_bytes_per_second": 1e9,
          "links": [{"bytes_per_second": 1, "latency_seconds": 0}, {"bytes_per_second": 7e8, "latency_seconds": 1e-6},
                    {"bytes_per_second": 1, "latency_seconds": 0}, {"bytes_per_second": 1, "latency_seconds": 0}]}})");
  const Machine machine = machine_model(measured).on({4, {2, 1, 2, 1}}, Precision::kFloat32);
  EXPECT_EQ(machine.links[0].bytes_per_second, 7e8);
  EXPECT_EQ(machine.links[2].latency_seconds, 1e-6);
  EXPECT_EQ(machine.flops_per_second, 1e10);
  EXPECT_EQ(machine_model(measured).device, Device::kCpu);
  write_text_atomically(measured,
                        R"({"mesh": [1, 2, 1, 1], "threads": 1, "device": "cuda", "ranks_per_node": 4,
      "machine": {"flops_per_second": 1e10, "memory_bytes_per_second": 1e9,
                  "links": [{"bytes_per_second": 7e8, "latency_seconds": 1e-6}]}})");
  EXPECT_EQ(machine_model(measured).costs(Precision::kFloat32).ranks_per_node, 4);
  EXPECT_EQ(machine_model(measured).device, Device::kCuda);
  write_text_atomically(own, R"({"flops_per_second": 1e12})");
  EXPECT_THROW(machine_model(own), ConfigError);
  EXPECT_THROW(machine_model("h100"), ConfigError);
}

}  // namespace machine_model_test
}  // namespace jigsaw
