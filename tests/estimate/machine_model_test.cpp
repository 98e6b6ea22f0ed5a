#include "estimate/machine_model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "estimate/gpus.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace machine_model_test {

using testing::TemporaryFolder;

const TrainOptions kBf16{.precision = Precision::kBfloat16};

TEST(MachineModel, AxesWithinANodeHaveItsLinks) {
  const MachineModel h100 = machine_model("h100");
  // Rank order: tensor fastest. 2 × 4 ranks of domain1 × tensor share a node of 8; domain0 and data do not.
  const Machine machine = h100.on({4, {4, 2, 2, 4}}, kBf16);
  EXPECT_EQ(machine.flops_per_second, h100.flops_per_second_bf16);
  EXPECT_EQ(machine.links[3].bytes_per_second, h100.node_link->bytes_per_second);
  EXPECT_EQ(machine.links[2].bytes_per_second, h100.node_link->bytes_per_second);
  EXPECT_EQ(machine.links[1].bytes_per_second, h100.links[0].bytes_per_second);
  EXPECT_EQ(machine.links[0].bytes_per_second, h100.links[0].bytes_per_second);
  // Groups of 3 do not fill nodes of 8: some lie across, unless all ranks are on one.
  EXPECT_EQ(h100.on({4, {1, 1, 4, 3}}, {}).links[3].bytes_per_second, h100.links[0].bytes_per_second);
  EXPECT_EQ(h100.on({4, {1, 1, 2, 3}}, {}).links[3].bytes_per_second, h100.node_link->bytes_per_second);
}

TEST(MachineModel, SaysByWhichConstantsBlocksArePlanned) {
  const CostModel gpus = machine_model("h100").costs(kBf16);
  EXPECT_EQ(gpus.ranks_per_node, 8);
  EXPECT_EQ(gpus.element_bytes, 2);
  EXPECT_GT(gpus.link({2, {4, 8}}, axis_bit(1)).bytes_per_second,
            gpus.link({2, {4, 8}}, axis_bit(0)).bytes_per_second);
  EXPECT_EQ(machine_model("cpu-node").costs(kBf16).flops_per_second, CostModel().flops_per_second);
  EXPECT_EQ(machine_model("cpu-node").costs(kBf16).ranks_per_node, 1);
  // The section `machine` tells nothing of nodes: those of GPUs are as usual.
  const MachineOptions options{1e12, 1e11, {{1e9, 1e-5}}};
  EXPECT_EQ(machine_model(options, Device::kCuda).costs({}).ranks_per_node, 8);
  EXPECT_EQ(machine_model(options, Device::kCpu).costs({}).flops_per_second, CostModel().flops_per_second);
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
  const Machine machine = machine_model(measured).on({4, {2, 1, 2, 1}}, {});
  EXPECT_EQ(machine.links[0].bytes_per_second, 7e8);
  EXPECT_EQ(machine.links[2].latency_seconds, 1e-6);
  EXPECT_EQ(machine.flops_per_second, 1e10);
  EXPECT_EQ(machine_model(measured).device, Device::kCpu);
  write_text_atomically(measured,
                        R"({"mesh": [1, 2, 1, 1], "threads": 1, "device": "cuda", "ranks_per_node": 4,
      "machine": {"flops_per_second": 1e10, "memory_bytes_per_second": 1e9,
                  "links": [{"bytes_per_second": 7e8, "latency_seconds": 1e-6}]}})");
  EXPECT_EQ(machine_model(measured).costs({}).ranks_per_node, 4);
  EXPECT_EQ(machine_model(measured).device, Device::kCuda);
  // On one rank.
  write_text_atomically(measured,
                        R"({"mesh": [1, 1, 1, 1], "threads": 1,
      "machine": {"flops_per_second": 1e10, "memory_bytes_per_second": 1e9,
                  "links": [{"bytes_per_second": 1, "latency_seconds": 0}, {"bytes_per_second": 1, "latency_seconds": 0},
                            {"bytes_per_second": 1, "latency_seconds": 0}, {"bytes_per_second": 1, "latency_seconds": 0}]}})");
  EXPECT_NE(testing::error_of<ConfigError>([&] { machine_model(measured); }).find("without links"),
            std::string::npos);
  write_text_atomically(own, R"({"flops_per_second": 1e12})");
  EXPECT_THROW(machine_model(own), ConfigError);
  EXPECT_THROW(machine_model("h1000"), ConfigError);
}

TEST(MachineModel, RatesThatAreNotGivenFollowFromThatOfFloat32) {
  MachineModel model;
  model.flops_per_second = 1e12;
  model.links = {{1e9, 0}};
  const auto rate = [&](Precision precision, bool tf32) {
    TrainOptions train;
    train.precision = precision;
    train.tf32 = tf32;
    return model.on({1, {1}}, train).flops_per_second;
  };
  EXPECT_EQ(rate(Precision::kFloat32, false), 1e12);
  EXPECT_EQ(rate(Precision::kFloat32, true), 1e12);
  EXPECT_EQ(rate(Precision::kBfloat16, false), 1e12);
  EXPECT_EQ(rate(Precision::kFloat64, false), 5e11);
  model.flops_per_second_tf32 = 2e12;
  model.flops_per_second_bf16 = 3e12;
  model.flops_per_second_fp64 = 4e12;
  EXPECT_EQ(rate(Precision::kFloat32, false), 1e12);
  EXPECT_EQ(rate(Precision::kFloat32, true), 2e12);
  for (const bool tf32 : {false, true}) {
    EXPECT_EQ(rate(Precision::kBfloat16, tf32), 3e12);
    EXPECT_EQ(rate(Precision::kFloat64, tf32), 4e12);
  }
}

/// Peaks are those of data sheets.
TEST(MachineModel, ProductsOfFloat32AreSlowUnlessTheyMayBeRounded) {
  const MachineModel h100 = machine_model("h100");
  const TrainOptions plain{}, rounded{.tf32 = true};
  const MeshShape mesh{1, {1}};
  EXPECT_LT(h100.on(mesh, plain).flops_per_second, 67e12);
  EXPECT_GT(h100.on(mesh, rounded).flops_per_second, 67e12);
  EXPECT_LT(h100.on(mesh, rounded).flops_per_second, 495e12);
  EXPECT_LT(h100.costs(plain).flops_per_second, 67e12);
  EXPECT_GT(h100.costs(rounded).flops_per_second, 67e12);
  EXPECT_EQ(h100.costs(kBf16).flops_per_second, 4.5e14);
  EXPECT_EQ(machine_model("cpu-node").on(mesh, rounded).flops_per_second,
            machine_model("cpu-node").on(mesh, plain).flops_per_second);
}

TEST(MachineModel, GpusAreKnownByTheNamesOfTheirDrivers) {
  const auto named = [](const char* name) { return gpu_machine(name).name; };
  EXPECT_EQ(named("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(named("NVIDIA H100 PCIe"), "h100-pcie");
  EXPECT_EQ(named("NVIDIA H100 NVL"), "h100-nvl");
  EXPECT_EQ(named("NVIDIA H100 96GB HBM3"), "h100");
  EXPECT_EQ(named("NVIDIA H200"), "h200");
  EXPECT_EQ(named("NVIDIA B200"), "b200");
  EXPECT_EQ(named("NVIDIA GH200 120GB"), "gh200");
  EXPECT_EQ(named("NVIDIA A100-SXM4-40GB"), "a100-40");
  EXPECT_EQ(named("NVIDIA A100-SXM4-80GB"), "a100-80");
  EXPECT_EQ(named("NVIDIA A100-SXM-64GB"), "a100-80");
  EXPECT_EQ(named("NVIDIA A100-PCIE-40GB"), "a100-pcie-40");
  EXPECT_EQ(named("NVIDIA A100 80GB PCIe"), "a100-pcie-80");
  EXPECT_EQ(named("NVIDIA L40S"), "l40s");
  EXPECT_EQ(named("NVIDIA GeForce RTX 4090"), "rtx4090");
  EXPECT_EQ(named("A40"), "a40");
  EXPECT_EQ(named("Tesla T4"), "h100, for \"Tesla T4\" is not known");
  for (const MachineModel& gpu : known_gpus()) {
    EXPECT_EQ(machine_model(gpu.name).device, Device::kCuda) << gpu.name;
    EXPECT_LE(gpu.flops_per_second, gpu.flops_per_second_tf32) << gpu.name;
    EXPECT_LT(gpu.flops_per_second_tf32, gpu.flops_per_second_bf16) << gpu.name;
    EXPECT_GE(gpu.node_link->bytes_per_second, 1e10) << gpu.name;
  }
}

/// Two sevenths of the multiprocessors, and memory of its own.
TEST(MachineModel, ASliceOfAGpuHasItsPart) {
  const MachineModel whole = gpu_machine("NVIDIA H100 80GB HBM3"),
                     slice = gpu_machine("NVIDIA H100 80GB HBM3 MIG 2g.20gb");
  EXPECT_EQ(slice.name, "h100 2g.20gb");
  EXPECT_DOUBLE_EQ(slice.flops_per_second_bf16, whole.flops_per_second_bf16 * 2 / 7);
  EXPECT_DOUBLE_EQ(slice.memory_bytes_per_second, whole.memory_bytes_per_second * 2 / 7);
  EXPECT_DOUBLE_EQ(slice.memory_bytes, 20e9);
}

/// From NVIDIA's data sheets: about half of the dense peaks in TFLOP/s, three quarters in plain float32, and
/// four fifths of the bandwidths.
TEST(MachineModel, RatesAreThoseOfDataSheets) {
  struct Sheet {
    const char* name;
    double bf16, tf32, fp32, memory_rate, link, gibibytes;
  };
  for (const Sheet& sheet :
       {Sheet{"h100", 989, 495, 67, 3.35, 450, 80}, Sheet{"h200", 989, 495, 67, 4.8, 450, 141},
        Sheet{"a100-80", 312, 156, 19.5, 2.04, 300, 80}, Sheet{"a100-pcie-40", 312, 156, 19.5, 1.56, 32, 40},
        Sheet{"l40s", 362, 183, 91.6, 0.86, 32, 48}}) {
    const MachineModel gpu = machine_model(sheet.name);
    const auto expect_part = [&](double of, double from, double least, double most) {
      EXPECT_GE(of / from, least) << sheet.name;
      EXPECT_LE(of / from, most) << sheet.name;
    };
    expect_part(gpu.flops_per_second_bf16, sheet.bf16 * 1e12, 0.4, 0.55);
    expect_part(gpu.flops_per_second_tf32, sheet.tf32 * 1e12, 0.4, 0.55);
    expect_part(gpu.flops_per_second, sheet.fp32 * 1e12, 0.7, 0.8);
    expect_part(gpu.memory_bytes_per_second, sheet.memory_rate * 1e12, 0.75, 0.85);
    expect_part(gpu.node_link->bytes_per_second, sheet.link * 1e9, 0.6, 0.85);
    expect_part(gpu.memory_bytes, sheet.gibibytes * 0x1p30, 0.9, 1);
  }
}

/// NCCL's part goes first (memory_need.h), then a tenth.
TEST(MachineModel, PlansWithTheMemoryThatArraysMayTake) {
  MachineModel model{.device = Device::kCuda, .memory_bytes = 100e9, .ranks_per_node = 8};
  EXPECT_EQ(model.usable_memory(8), static_cast<std::int64_t>(0.9 * (100e9 - 7 * 0.94e9)));
  // Two groups of two communicators on several nodes: pools of 64 MiB each way, 4 channels of rings each way.
  const double far = 2 * 2 * (2 * 64 * 0x1p20 + 2 * 4 * (4 * 0x1p20 + 4'915'200));
  for (const int ranks : {9, 16, 1024})
    EXPECT_EQ(model.usable_memory(ranks), static_cast<std::int64_t>(0.9 * (100e9 - 7 * 0.94e9 - far)));
  EXPECT_EQ(model.usable_memory(3), static_cast<std::int64_t>(0.9 * (100e9 - 2 * 0.94e9)));
  EXPECT_EQ(model.usable_memory(1), 90'000'000'000);
  model.ranks_per_node = 1;
  EXPECT_EQ(model.usable_memory(2), static_cast<std::int64_t>(0.9 * (100e9 - far)));
  model.ranks_per_node = 1000;
  EXPECT_EQ(model.usable_memory(1000), 45'000'000'000);
  model.device = Device::kCpu;
  EXPECT_EQ(model.usable_memory(1000), 90'000'000'000);
  EXPECT_EQ(MachineModel().usable_memory(1), 0);
}

}  // namespace machine_model_test
}  // namespace jigsaw
