// Conditions between keys, and what may change when a run goes on.
#include "task/configuration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "comm/thread/run_ranks.h"
#include "kernels/cuda_context.h"
#include "task/device.h"

namespace jigsaw {
namespace configuration_test {

Json smallest() {
  return {{"data",
           {{"files", Json::array({"a.nc"})},
            {"variables", Json::array({"t2m"})},
            {"train", {"2020-01-01", "2020-01-02"}}}},
          {"model", {{"type", "weathermixer"}, {"patch", {3, 7}}, {"embed_dim", 8}, {"depth", 1}}}};
}

/// The message of the ConfigError, or "".
std::string error_with(const std::vector<std::string>& changes) {
  Json json = smallest();
  for (const std::string& change : changes) apply_override(json, change);
  try {
    parse<Configuration>(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Configuration, LeadsThatMayRunAloneNeedAWeight) {
  EXPECT_EQ(
      error_with({"train.rollout={\"min\": 1, \"max\": 2}", "train.rollout_weights=[0, 1]"}),
      "train.rollout_weights must hold a number above 0 among the first 1, for a step may run no more leads");
  EXPECT_EQ(error_with({"train.rollout={\"min\": 1, \"max\": 2}", "train.rollout_weights=[0.5, 0]"}), "");
  EXPECT_EQ(error_with({"train.rollout=2", "train.rollout_weights=[0, 1]"}), "");
  EXPECT_NE(error_with({"train.rollout=2", "train.rollout_weights=[0, 0]"}), "");
}

TEST(Configuration, TheSchemaRefusesARolloutOfNoLead) {
  const std::string must = "train.rollout must be between 1 and 10000, not ";
  EXPECT_EQ(error_with({"train.rollout=0"}), must + "0");
  EXPECT_EQ(error_with({"train.rollout=10001"}), must + "10001");
  const Json schema_of_all = schema<Configuration>(),
             &rollout = schema_of_all["properties"]["train"]["properties"]["rollout"]["anyOf"][0];
  EXPECT_EQ(rollout["minimum"], 1);
  EXPECT_EQ(rollout["maximum"], 10000);
}

TEST(Configuration, TheBestCheckpointNeedsCheckpoints) {
  EXPECT_EQ(error_with({"checkpoint.best=loss"}), "");
  EXPECT_NE(error_with({"checkpoint.best=loss", "checkpoint.every=0"}).find("checkpoint.best"),
            std::string::npos);
}

/// Which wrote the default of then, "lowest", beside no metric, too.
TEST(Configuration, WhatEarlierVersionsWroteOfTheBestIsRead) {
  Json before = to_json(parse<Configuration>(smallest()));
  EXPECT_EQ(before["checkpoint"]["best_is"], "auto");
  before["checkpoint"]["best_is"] = "lowest";
  before["checkpoint"].erase("minutes");
  const Json now = with_new_keys(before);
  EXPECT_EQ(now.at("checkpoint").at("best_is"), "lowest");
  EXPECT_EQ(now.at("checkpoint").at("minutes"), 0.0) << "it was read, and has all keys";
  EXPECT_NE(error_with({"checkpoint.best=loss", "checkpoint.best_is=least"}).find("\"auto\""),
            std::string::npos);
}

TEST(Configuration, ThresholdsAreOfTargetsAndAscend) {
  EXPECT_EQ(error_with({"validation.thresholds={\"t2m\":[-1,0.5]}", "validation.fss_scales=[1,5]"}), "");
  EXPECT_EQ(error_with({"validation.thresholds={\"t2n\":[1]}"}),
            "validation.thresholds names t2n, which is no target (did you mean \"t2m\"?); known: t2m");
  for (const char* list : {"[]", "[1,1]", "[2,1]"})
    EXPECT_EQ(error_with({std::string("validation.thresholds={\"t2m\":") + list + "}"}),
              "validation.thresholds must give t2m one or more numbers, each above the one before");
  for (const char* list : {"[1,4]", "[5,1]", "[3,3]"})
    EXPECT_EQ(
        error_with({"validation.thresholds={\"t2m\":[1]}", std::string("validation.fss_scales=") + list}),
        "validation.fss_scales must be odd numbers of points, each above the one before, such as "
        "[1, 5, 21]");
}

TEST(Configuration, TypesOfOptimizerAndScheduleHaveKeysOfTheirOwn) {
  EXPECT_EQ(error_with({"optimizer.type=sgd", "optimizer.momentum=0.5"}), "");
  EXPECT_NE(error_with({"optimizer.momentum=0.5"}).find("unknown key optimizer.momentum"), std::string::npos);
  EXPECT_NE(error_with({"optimizer.type=sgd", "optimizer.eps=1e-8"}), "");
  EXPECT_NE(error_with({"schedule.type=constant", "schedule.final_learning_rate=1e-5"}), "");
  EXPECT_NE(error_with({"optimizer.learning_rate=0", "schedule.final_learning_rate=1e-5"}), "");
}

TEST(Configuration, LossesAreSuggestedByTheirOtherNames) {
  EXPECT_NE(error_with({"loss.type=mae"}).find("not \"mae\" (did you mean \"l1\"?)"), std::string::npos);
  EXPECT_NE(error_with({"loss.type=rmse"}).find("(did you mean \"mse\"?)"), std::string::npos);
  EXPECT_NE(error_with({R"(loss={"type": "sum", "terms": [{"type": "mae"}]})"}).find("mean \"l1\"?)"),
            std::string::npos);
}

TEST(Configuration, WhatMayChangeIsDeclared) {
  const Keys<Configuration> keys = keys_of<Configuration>();
  for (const char* path : {"name",
                           "mesh",
                           "mesh.data",
                           "zero",
                           "device",
                           "reduction",
                           "watchdog_seconds",
                           "data.files",
                           "data.valid",
                           "train.steps",
                           "train.epochs",
                           "train.recompute",
                           "optimizer.learning_rate",
                           "optimizer.clip_norm",
                           "schedule.type",
                           "schedule.warmup_steps",
                           "schedule.final_learning_rate",
                           "validation.every",
                           "checkpoint.best",
                           "log_every",
                           "output"}) {
    EXPECT_TRUE(may_change(keys, path)) << path;
  }
  for (const char* path :
       {"seed", "data", "data.train", "data.variables", "model.depth", "loss.type", "optimizer",
        "optimizer.type", "optimizer.weight_decay", "optimizer.groups[0].learning_rate", "train.batch_size",
        "train.precision", "train.rollout", "init.skip"}) {
    EXPECT_FALSE(may_change(keys, path)) << path;
  }
}

/// Of cuts that leave equal pieces the one that cuts the first axis most: its halos stand together in memory.
TEST(Configuration, AMeshThatIsLeftOpenCutsTheDomainSoThatTheLargestPieceIsSmallest) {
  const auto domain = [](int ranks, const Shape& space, const std::vector<std::int64_t>& units = {}) {
    const MeshOptions mesh = resolved_mesh(std::nullopt, ranks, space, units);
    EXPECT_EQ(mesh.data, 1);
    EXPECT_EQ(mesh.tensor, 1);
    return mesh.domain;
  };
  using Sizes = std::vector<int>;
  EXPECT_EQ(domain(1, {33, 49}), (Sizes{1, 1}));
  EXPECT_EQ(domain(4, {64, 64}), (Sizes{4, 1}));
  EXPECT_EQ(domain(6, {2, 64}), (Sizes{2, 3}));           // 1 x 22 points, as of [1, 6]
  EXPECT_EQ(domain(2, {33, 48}), (Sizes{1, 2}));          // 33 x 24 points rather than 17 x 48
  EXPECT_EQ(domain(4, {12, 30}, {6, 5}), (Sizes{2, 2}));  // patches are not cut
  EXPECT_EQ(domain(8, {16, 16, 16}), (Sizes{8, 1, 1}));
}

/// The numbers of ranks along the axes are multiplied.
TEST(Configuration, AMeshOfMoreRanksThanCanBeCountedIsRefused) {
  EXPECT_EQ(error_with({R"(mesh={"data":1024,"domain":[512,2]})"}), "");
  for (const char* mesh :
       {R"(mesh={"data":65536,"domain":[65536,1]})", R"(mesh={"tensor":2000000})",
        R"(mesh={"data":2147483647,"domain":[2147483647,2147483647],"tensor":2147483647})"}) {
    EXPECT_NE(error_with({mesh}).find("make more than 1048576 ranks"), std::string::npos) << mesh;
  }
}

TEST(Device, IsChosenApartFromPrecision) {
  TrainOptions single, twice;
  twice.precision = Precision::kFloat64;
  EXPECT_EQ(make_context(DeviceChoice::kAuto, single, 2, 0).backend(), Backend::kCpu);
  EXPECT_EQ(make_context(DeviceChoice::kCpu, twice, 2, 0).backend(), Backend::kReference);
  EXPECT_NE(error_with({"device=cuda", "train.precision=fp64"}).find("device must be"), std::string::npos);
  if (cuda_device_count() > 0) {
    EXPECT_EQ(make_context(DeviceChoice::kCuda, single, 2, 1).backend(), Backend::kCuda);
  } else {
    EXPECT_THROW(make_context(DeviceChoice::kCuda, single, 2, 0), ConfigError);
  }
}

/// What the user gets on machines as they are.
TEST(Device, EverySituationHasItsSentence) {
  TrainOptions single, twice, tf32;
  twice.precision = Precision::kFloat64;
  tf32.tf32 = true;
  const CudaMachine no_cuda{}, no_driver{true, 0, 13000, 0}, no_gpu{true, 13000, 13000, 0},
      old_driver{true, 12080, 13000, 0}, four{true, 13010, 13000, 4};
  const auto error = [&](DeviceChoice device, const CudaMachine& machine) -> std::string {
    try {
      choose_device(device, single, machine);
    } catch (const ConfigError& thrown) {
      return thrown.what();
    }
    return "";
  };
  for (const CudaMachine& machine : {no_cuda, no_driver, no_gpu, old_driver, four}) {
    EXPECT_FALSE(choose_device(DeviceChoice::kCpu, single, machine).cuda);
    EXPECT_FALSE(choose_device(DeviceChoice::kAuto, twice, machine).cuda);
  }
  EXPECT_TRUE(choose_device(DeviceChoice::kAuto, single, four).cuda);
  EXPECT_TRUE(choose_device(DeviceChoice::kCuda, single, four).cuda);
  EXPECT_EQ(choose_device(DeviceChoice::kAuto, single, no_cuda).remark, "");
  EXPECT_EQ(choose_device(DeviceChoice::kAuto, tf32, no_cuda).remark,
            "the processor computes; train.tf32 has no effect");
  EXPECT_EQ(choose_device(DeviceChoice::kAuto, tf32, no_gpu).remark,
            "no GPU here: the processor computes; train.tf32 has no effect");
  EXPECT_EQ(choose_device(DeviceChoice::kAuto, tf32, four).remark, "");
  for (const CudaMachine& machine : {no_driver, no_gpu}) {
    EXPECT_FALSE(choose_device(DeviceChoice::kAuto, single, machine).cuda);
    EXPECT_EQ(choose_device(DeviceChoice::kAuto, single, machine).remark,
              "no GPU here: the processor computes");
    EXPECT_NE(error(DeviceChoice::kCuda, machine).find("no GPU that this program can use"),
              std::string::npos);
  }
  EXPECT_NE(error(DeviceChoice::kCuda, no_cuda).find("-DJIGSAW_CUDA=ON"), std::string::npos);
  for (const DeviceChoice device : {DeviceChoice::kAuto, DeviceChoice::kCuda}) {
    EXPECT_NE(error(device, old_driver).find("is for CUDA 12.8, and this program needs 13.0"),
              std::string::npos);
  }
}

/// A program without CUDA where there are GPUs: whoever waits for it is to know that it is the wrong one.
TEST(Device, GpusThatThisBuildCannotUseAreNamed) {
  TrainOptions single, twice;
  twice.precision = Precision::kFloat64;
  const CudaMachine no_cuda{};
  for (const auto& [signs, says] :
       {std::pair(GpuSigns{"", std::nullopt, true}, "NVIDIA's driver is loaded"),
        {GpuSigns{R"(SLURM_JOB_GPUS is "0,1")", std::nullopt, false}, R"(SLURM_JOB_GPUS is "0,1")"},
        {GpuSigns{"", "7", false}, R"(CUDA_VISIBLE_DEVICES is "7")"}}) {
    const ChosenDevice chosen = choose_device(DeviceChoice::kAuto, single, no_cuda, signs);
    EXPECT_FALSE(chosen.cuda);
    EXPECT_TRUE(chosen.warns);
    EXPECT_EQ(chosen.remark,
              concat("this build has no CUDA kernels: the processor computes, though ", says,
                     "; build with -DJIGSAW_CUDA=ON (docs/building.md), or set \"device\" to \"cpu\""));
    EXPECT_EQ(choose_device(DeviceChoice::kCpu, single, no_cuda, signs).remark, "");
    EXPECT_EQ(choose_device(DeviceChoice::kAuto, twice, no_cuda, signs).remark, "");
  }
  for (const GpuSigns& hidden : {GpuSigns{"", "", false}, GpuSigns{"", "", true}, GpuSigns{"", "-1", true}})
    EXPECT_FALSE(choose_device(DeviceChoice::kAuto, single, no_cuda, hidden).warns);
}

/// A machine, or a job, that is to have GPUs, of which CUDA sees none.
TEST(Device, GpusThatAreToBeThereAreMissed) {
  const TrainOptions single;
  const CudaMachine no_gpu{true, 13000, 13000, 0};
  const std::string may_be = " (a container wants --gpus or --nv, CUDA_VISIBLE_DEVICES may name what is not ";
  const auto chosen = [&](const GpuSigns& signs) {
    return choose_device(DeviceChoice::kAuto, single, no_gpu, signs);
  };
  EXPECT_FALSE(chosen({}).warns);
  EXPECT_FALSE(chosen({"", "", false}).warns);
  for (const auto& [signs, says] :
       {std::pair(GpuSigns{"", "7", false}, R"(CUDA_VISIBLE_DEVICES is "7")"),
        {GpuSigns{"", "", true}, R"(NVIDIA's driver is loaded and CUDA_VISIBLE_DEVICES is "")"},
        {GpuSigns{"", std::nullopt, true}, "NVIDIA's driver is loaded"}}) {
    EXPECT_TRUE(chosen(signs).warns);
    EXPECT_FALSE(chosen(signs).cuda);
    EXPECT_EQ(
        chosen(signs).remark.rfind(concat("no GPU here: the processor computes, though ", says, may_be), 0),
        0U)
        << chosen(signs).remark;
  }
  const GpuSigns allotted{R"(SLURM_JOB_GPUS is "0,1")", "0,1", true};
  for (const DeviceChoice device : {DeviceChoice::kAuto, DeviceChoice::kCuda}) {
    try {
      choose_device(device, single, no_gpu, allotted);
      ADD_FAILURE() << "the processor would compute";
    } catch (const ConfigError& error) {
      const std::string said = error.what();
      EXPECT_NE(
          said.find(R"(though SLURM_JOB_GPUS is "0,1" and NVIDIA's driver is loaded and CUDA_VISIBLE_)"),
          std::string::npos)
          << said;
      EXPECT_NE(said.find("to \"cpu\" to run without"), std::string::npos) << said;
    }
  }
  EXPECT_FALSE(choose_device(DeviceChoice::kCpu, single, no_gpu, allotted).cuda);
  EXPECT_TRUE(choose_device(DeviceChoice::kAuto, single, {true, 13000, 13000, 2}, allotted).cuda);
}

TEST(Device, SignsOfGpusAreRead) {
  const char* const variables[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE",
                                   "CUDA_VISIBLE_DEVICES"};
  std::vector<std::optional<std::string>> before;
  for (const char* variable : variables) {
    const char* const value = std::getenv(variable);
    before.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
    unsetenv(variable);
  }
  EXPECT_EQ(gpu_signs("/nowhere").allotted, "");
  EXPECT_FALSE(gpu_signs("/nowhere").visible);
  EXPECT_FALSE(gpu_signs("/nowhere").driver);
  setenv("SLURM_GPUS_ON_NODE", "0", 1);
  setenv("SLURM_JOB_GPUS", "", 1);
  EXPECT_EQ(gpu_signs("/nowhere").allotted, "");
  setenv("SLURM_GPUS_ON_NODE", "1", 1);
  EXPECT_EQ(gpu_signs("/nowhere").allotted, R"(SLURM_GPUS_ON_NODE is "1")");
  setenv("SLURM_JOB_GPUS", "0", 1);  // the first GPU
  EXPECT_EQ(gpu_signs("/nowhere").allotted, R"(SLURM_JOB_GPUS is "0")");
  setenv("SLURM_GPUS_ON_NODE", "0", 1);  // a step without, of a job with GPUs
  EXPECT_EQ(gpu_signs("/nowhere").allotted, "");
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(gpu_signs("/nowhere").visible, "");
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i] ? setenv(variables[i], before[i]->c_str(), 1) : unsetenv(variables[i]);
  }
}

TEST(Device, LibrariesMustFit) {
  const CudnnLibrary no_cudnn{}, cudnn{true, 9, 91900};
  const NcclLibrary no_nccl{}, nccl{true, 22809};
  EXPECT_EQ(unfit_library(no_cudnn, no_nccl), "");
  EXPECT_EQ(unfit_library(cudnn, nccl), "");
  const auto begins = [](const std::string& said, const std::string& with) {
    return said.rfind(with, 0) == 0;
  };
  EXPECT_TRUE(
      begins(unfit_library({true, 9, 8907}, nccl), "cuDNN 9 is needed, and the library here is 8.9.7:"));
  EXPECT_TRUE(
      begins(unfit_library({true, 9, 100102}, nccl), "cuDNN 9 is needed, and the library here is 10.1.2:"));
  for (const auto& [version, text] : {std::pair(91701, "9.17.1:"), {91002, "9.10.2:"}, {90000, "9.0.0:"}}) {
    EXPECT_TRUE(begins(unfit_library({true, 9, version}, nccl),
                       concat("cuDNN 9.18.0 or newer is needed, and the library here is ", text)));
  }
  EXPECT_EQ(unfit_library({true, 9, 91900, 13, 13}, nccl), "");
  EXPECT_TRUE(begins(unfit_library({true, 9, 91900, 13, 12}, nccl),
                     "cuDNN for CUDA 13 is needed, and the library here, 9.19.0, is for CUDA 12:"));
  for (const auto& [version, text] : {std::pair(22601, "2.26.1:"), {21703, "2.17.3:"}, {2804, "2.8.4:"}}) {
    EXPECT_TRUE(begins(unfit_library(cudnn, {true, version}),
                       concat("NCCL 2.26.2 or newer is needed, and the library here is ", text)));
  }
}

/// As three ranks that are threads see it.
TEST(Device, RanksComputeAlikeAndApart) {
  const auto failures = [](const std::vector<RankDevice>& devices, Carrier carrier = Carrier::kHost) {
    std::vector<std::string> said(devices.size());
    run_ranks(
        static_cast<int>(devices.size()), {}, [](int) { return Context::make_host(Backend::kReference, 1); },
        [&](Communicator& world) {
          const auto rank = static_cast<std::size_t>(world.rank());
          try {
            require_like_devices(world, devices[rank], carrier);
          } catch (const ConfigError& error) {
            said[rank] = error.what();
          }
        });
    for (const std::string& each : said) EXPECT_EQ(each, said[0]);
    return said[0];
  };
  const RankDevice processor{"the processor", ""};
  EXPECT_EQ(failures({processor, processor, processor}), "");
  EXPECT_EQ(failures({{"gpu", "1 of a"}, {"gpu", "2 of a"}, {"gpu", "1 of b"}}), "");
  const RankDevice first{"gpu", "1 of a", false, "2 GPUs on a"},
      second{"gpu", "2 of a", false, "2 GPUs on a"}, other{"gpu", "1 of b", false, "1 GPU on b"};
  EXPECT_EQ(failures({first, other, second, first})
                .rfind("3 ranks see 2 GPUs on a, of which ranks 0 and 3 would share the GPU 1 of a: ", 0),
            0U);
  // All ranks have to know that they may.
  EXPECT_EQ(failures({{"gpu", "1 of a", true}, {"gpu", "1 of a", true}}), "");
  EXPECT_NE(
      failures({{"gpu", "1 of a", true}, {"gpu", "1 of a", false}}).find("NCCL_MULTI_RANK_GPU_ENABLE=1"),
      std::string::npos);
  EXPECT_NE(failures({{"gpu", "1 of a"}, {"other gpu", "2 of a"}}).find("rank 0 on gpu, rank 1 on other gpu"),
            std::string::npos);
  EXPECT_NE(failures({{"gpu", "1 of a"}, processor}).find("unlike devices"), std::string::npos);
  // Slices of one GPU.
  const RankDevice slice{"gpu", "1 of a", false, "1 GPU on a", "GPU-1"},
      other_slice{"gpu", "1 of a", false, "1 GPU on a", "GPU-2"};
  EXPECT_EQ(failures({slice, other_slice}), "");
  RankDevice in_another_container = slice;
  in_another_container.place = "1 of b";
  EXPECT_NE(failures({slice, in_another_container}).find("ranks 0 and 1 would share"), std::string::npos);
  EXPECT_NE(failures({slice, slice}).find("ranks 0 and 1 would share the GPU 1 of a"), std::string::npos);
  EXPECT_EQ(
      failures({slice, other_slice}, Carrier::kNccl)
          .rfind("ranks 0 and 1 compute on slices of one GPU (MIG), 1 of a, of which NCCL connects one", 0),
      0U);
}

/// Whatever ranks see of the GPUs of their machines.
TEST(Device, EachRankTakesAGpuThatNoOtherHas) {
  using Lists = std::vector<std::vector<std::string>>;
  const auto on_one = [](const Lists& seen) {
    return chosen_gpus(std::vector<std::string>(seen.size(), "a"), seen);
  };
  using Chosen = std::vector<int>;
  EXPECT_EQ(on_one({{"0", "1", "2"}, {"0", "1", "2"}, {"0", "1", "2"}}), (Chosen{0, 1, 2}));
  EXPECT_EQ(on_one({{"0"}, {"1"}, {"2"}}), (Chosen{0, 0, 0}));
  EXPECT_EQ(on_one({{"0", "1"}, {"0", "1"}, {"2", "3"}, {"2", "3"}}), (Chosen{0, 1, 0, 1}));
  EXPECT_EQ(on_one({{"0", "1", "2"}, {"1", "2", "0"}, {"2", "0", "1"}}), (Chosen{0, 0, 0}));
  EXPECT_EQ(on_one({{"0", "1"}, {"0", "1"}, {"0", "1"}, {"0", "1"}}), (Chosen{0, 1, 0, 1}));  // to be shared
  EXPECT_EQ(on_one({{}, {"0"}, {}}), (Chosen{0, 0, 0}));
  EXPECT_EQ(on_one({{"0", "1"}, {"0"}}), (Chosen{1, 0}));
  EXPECT_EQ(chosen_gpus({"a", "b", "a", "b"}, {{"0", "1"}, {"2", "3"}, {"0", "1"}, {"2", "3"}}),
            (Chosen{0, 0, 1, 1}));
  EXPECT_EQ(chosen_gpus({"a", "b"}, {{"0", "1"}, {"0", "1"}}), (Chosen{0, 1}));  // containers of one machine
  run_ranks(
      3, {}, [](int) { return Context::make_host(Backend::kReference, 1); },
      [&](Communicator& world) {
        EXPECT_EQ(choose_gpu(world, {"0", "1", "2"}), world.rank());
        EXPECT_EQ(choose_gpu(world, {}), 0);
      });
}

TEST(Device, GpusAreSharedWhereNcclCanAndIsTold) {
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  EXPECT_TRUE(may_share_gpus({.built = true, .version = 23001}));
  EXPECT_FALSE(may_share_gpus({.built = true, .version = 22907}));
  EXPECT_FALSE(may_share_gpus({}));
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "0", 1);
  EXPECT_FALSE(may_share_gpus({.built = true, .version = 23001}));
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
  EXPECT_FALSE(may_share_gpus({.built = true, .version = 23001}));
}

TEST(Configuration, SectionsInAMapAreDocumented) {
  const std::string all = reference<Configuration>();
  EXPECT_NE(all.find("## `data.transforms`\n"), std::string::npos);
  EXPECT_NE(explain<Configuration>("data.transforms").find("epsilon"), std::string::npos);
}

}  // namespace configuration_test
}  // namespace jigsaw
