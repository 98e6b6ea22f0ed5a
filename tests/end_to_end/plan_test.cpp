// jigsaw-train plan: what it predicts is what a run then says; the fastest mesh first; what would fit when
// nothing does.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() {
    config_ = small_config(folder_);
    config_["train"]["steps"] = 1;
    config_["output"] = folder_ / "run";
    // Given, for no two measurements decide alike in how many messages travels what is streamed.
    config_["machine"] = {{"flops_per_second", 2e10},
                          {"memory_bytes_per_second", 1e10},
                          {"links", {{{"bytes_per_second", 1e9}, {"latency_seconds", 1e-5}}}}};
    folder_.write("config.json", config_.dump());
    // Denoising a volume of 11 x 9 x 10 voxels.
    Json images = config_;
    images["data"] = {{"task", "denoise"},
                      {"files", {source_dir() + "/tests/io/fixtures/images/volume.h5"}},
                      {"dims", {"depth", "height", "width"}},
                      {"variables", {"scan/density"}},
                      {"crop", {8, 8, 8}},
                      {"noise_sigma", 0.25},
                      {"train", {{"depth", {0, 7}}}}};
    images["model"] = {{"type", "unet"}, {"widths", {4, 8}}, {"norm_groups", 4}};
    folder_.write("images.json", images.dump());
  }

  Json plan(const std::string& arguments, const std::string& config = "config.json") const {
    const Outcome outcome = run(1, "plan --json --config " + (folder_ / config) + " " + arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  void expect_refused(const std::string& arguments, const std::string& says) const {
    const Outcome outcome = run(1, "plan --config " + (folder_ / "config.json") + " " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }

  TemporaryFolder folder_;
  Json config_;
};

TEST_F(PlanTest, SaysWhatARunThenSays) {
  struct Case {
    int ranks;
    std::string set;
    std::string config = "config.json";
  };
  const std::vector<Case> cases = {
      {1, ""},
      {1, "--set 'train.recompute=\"block\"' --set train.accumulate=2"},
      {2, "--set 'mesh={\"domain\":[2,1]}'"},
      {2, "--set 'mesh={\"tensor\":2}' --set train.rollout=2"},
      {2, "--set 'mesh={\"data\":2}' --set 'zero=\"optimizer\"'"},
      {4, "--set 'mesh={\"domain\":[2,1],\"tensor\":2}'"},
      {4, "--set 'mesh={\"data\":2,\"domain\":[1,2]}' --set 'zero=\"parameters\"'"},
      {4, "--set 'mesh={\"domain\":[2,2]}' --set 'train.precision=\"bf16\"' --set optimizer.ema_decay=0.9"},
      {4,
       "--set 'mesh={\"domain\":[2,1],\"tensor\":2}' "
       "--set 'model={\"type\":\"unet\",\"base_width\":8,\"levels\":2,\"norm_groups\":4}'"},
      {3,
       "--set 'mesh={\"domain\":[1,3]}' --set "
       "'model={\"type\":\"vit\",\"patch\":[5,7],\"embed_dim\":16,\"depth\":2,\"heads\":4}'"},
      {4,
       "--set 'mesh={\"data\":2,\"domain\":[2,1]}' --set 'zero=\"optimizer\"' --set "
       "'model={\"type\":\"swin\",\"patch\":[4,3],\"window\":[5,4],\"embed_dim\":16,\"depth\":2,\"heads\":4}"
       "'"},
      {2, "--set 'mesh={\"domain\":[2,1,1]}'", "images.json"},
      {4, "--set 'mesh={\"data\":2,\"domain\":[1,1,2]}' --set 'zero=\"parameters\"'", "images.json"}};
  for (const Case& each : cases) {
    const std::string number = std::to_string(each.ranks);
    const Json planned = plan("--ranks " + number + " " + each.set, each.config).at("configured").at("ranks");
    const Outcome outcome =
        run(each.ranks, "--resume never --config " + (folder_ / each.config) + " " + each.set);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json ranks = Json::parse(read(folder_ / "run/summary.json")).at("ranks");
    ASSERT_EQ(planned.size(), ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      EXPECT_EQ(planned[r].at("coordinates"), ranks[r].at("coordinates"));
      for (const char* key : {"parameter_bytes", "optimizer_bytes", "peak_activation_bytes", "sent_bytes"})
        EXPECT_EQ(planned[r].at(key), ranks[r].at(key)) << key << " of rank " << r << " of " << each.set;
    }
    EXPECT_GT(planned[0].at("peak_activation_bytes").get<double>(), 0);
  }
}

TEST_F(PlanTest, NeedsNoFilesWhereTheShapeIsGiven) {
  const std::string absent = "--ranks 4 --set 'data.files=[\"nowhere.nc\"]' ";
  EXPECT_EQ(plan(absent + "--set data.shape=[33,49]").at("meshes"),
            plan(absent + "--set data.shape=[33,49]").at("meshes"));
  expect_refused(absent, "data.shape");
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(PlanTest, ListsTheFastestThatFitFirst) {
  const Json free = plan("--ranks 8 --memory 100GB");
  const Json& meshes = free.at("meshes");
  ASSERT_GE(meshes.size(), 5U);
  for (std::size_t i = 0; i + 1 < meshes.size(); ++i)
    EXPECT_LE(meshes[i].at("step_seconds").get<double>(), meshes[i + 1].at("step_seconds").get<double>());
  for (const Json& other : free.at("others")) EXPECT_TRUE(other.contains("step_seconds_at_least"));
  EXPECT_EQ(free.at("smallest_ranks"), 1);
  // Less than the fastest needs is met by another choice.
  const auto needed = meshes[0].at("memory_bytes").get<std::int64_t>();
  const Json tight = plan("--ranks 8 --memory " + std::to_string(needed - 1));
  EXPECT_LT(tight.at("meshes")[0].at("memory_bytes").get<std::int64_t>(), needed);
  EXPECT_TRUE(tight.at("meshes")[0].at("fits").get<bool>());
}

TEST_F(PlanTest, SaysWhyAMeshIsFaster) {
  const Outcome outcome =
      run(1, "plan --explain --ranks 4 --machine h100 --config " + (folder_ / "config.json"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* words : {"of h100 with", "encoder", "all blocks, nothing hidden", "all_reduce"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
}

/// Nodes and networks of clusters differ more than their GPUs do.
TEST_F(PlanTest, TakesNodesAndNetworkFromTheCommandLine) {
  const Json found = plan("--ranks 8 --machine a100-40 --ranks-per-node 4 --network 25");
  const Json& machine = found.at("machine");
  EXPECT_EQ(machine.at("ranks_per_node"), 4);
  EXPECT_EQ(machine.at("links")[0].at("bytes_per_second"), 25e9);
  // Nine tenths of what NCCL leaves of 42.3 GB, for ranks of the node and those of the other one.
  EXPECT_EQ(found.at("memory_limit_bytes"),
            static_cast<std::int64_t>(0.9 * (42.3e9 - 3 * 0.94e9 - 828'375'040)));
  expect_refused("--ranks 8 --network 0", "--network");
  expect_refused("--ranks 8 --ranks-per-node 0", "--ranks-per-node");
}

/// Where nothing was said of links within nodes they are as all links were: the network is between nodes.
TEST_F(PlanTest, ANetworkLeavesTheLinksWithinNodesAsTheyWere) {
  const std::string slow = " --network 0.001", on_one = "--ranks 4 --ranks-per-node 4";
  const Json given = plan(on_one), within = plan(on_one + slow);
  EXPECT_EQ(within.at("machine").at("node_link"), config_.at("machine").at("links")[0]);
  EXPECT_EQ(within.at("machine").at("links"),
            Json::array({Json{{"bytes_per_second", 1e6}, {"latency_seconds", 1e-5}}}));
  EXPECT_EQ(within.at("meshes"), given.at("meshes"));
  const Json across = plan("--ranks 4 --ranks-per-node 2" + slow);
  EXPECT_GT(across.at("meshes")[0].at("step_seconds").get<double>(),
            given.at("meshes")[0].at("step_seconds").get<double>());
  // Of one that is known it stays; of links by axis the fastest is that within a node.
  EXPECT_EQ(plan("--ranks 4 --machine h100" + slow).at("machine").at("node_link"),
            plan("--ranks 4 --machine h100").at("machine").at("node_link"));
  Json by_axis = config_.at("machine");
  for (const double rate : {3e9, 2e9, 5e8})
    by_axis["links"].push_back(Json{{"bytes_per_second", rate}, {"latency_seconds", 1e-6}});
  folder_.write("by_axis.json", by_axis.dump());
  EXPECT_EQ(plan("--ranks 4 --machine " + (folder_ / "by_axis.json") + slow).at("machine").at("node_link"),
            by_axis.at("links")[1]);
}

TEST_F(PlanTest, SaysWhatWouldFit) {
  expect_refused("--ranks 100003", "ranks would fit");
  expect_refused("--ranks 2 --memory 1kB", "--memory");
  expect_refused("--ranks 2 --memory 10KB", "the least found is");
  expect_refused("--ranks 2 --memory 10B", "no number of ranks up to 65536 would fit");
  expect_refused("--ranks 2 --machine h300", "h200");
  expect_refused("", "--ranks");
}

TEST_F(PlanTest, SaysOnHowManyRanksItWouldFit) {
  // What parameters and gradients alone fill has no room for the optimizer on one rank.
  const Json alone = plan("--ranks 1").at("configured");
  const auto bytes =
      alone.at("parameter_bytes").get<std::int64_t>() + alone.at("gradient_bytes").get<std::int64_t>();
  const std::string memory = " --memory " + std::to_string(bytes);
  const Outcome refused = run(1, "plan --config " + (folder_ / "config.json") + " --ranks 1" + memory);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  std::smatch said;
  ASSERT_TRUE(std::regex_search(refused.err, said, std::regex("; ([0-9]+) ranks would fit"))) << refused.err;
  EXPECT_GT(std::stoi(said[1]), 1);
}

/// What is planned and what runs agree on it, and a run that goes on finds it again.
TEST_F(PlanTest, AutoIsTheMeshThatPlanCallsConfigured) {
  const Json mesh = plan("--ranks 4").at("configured").at("mesh");
  const std::string arguments = "--config " + (folder_ / "config.json") + " --set checkpoint.every=1";
  const Outcome first = run(4, arguments + " --set train.steps=1");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("mesh \"auto\": "), std::string::npos) << first.out;
  EXPECT_NE(first.out.find(" is the fastest of "), std::string::npos) << first.out;
  int ranks = 1;
  for (const Json& extent : mesh.at("domain")) ranks *= extent.get<int>();
  EXPECT_EQ(ranks * mesh.at("data").get<int>() * mesh.at("tensor").get<int>(), 4) << mesh;
  EXPECT_EQ(Json::parse(read(folder_ / "run/config.json")).at("mesh"), mesh);
  const Outcome second = run(4, arguments + " --set train.steps=2");
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.out.find("resumed from"), std::string::npos) << second.out;
  EXPECT_EQ(second.out.find("on another mesh"), std::string::npos) << second.out;
}

TEST_F(PlanTest, MeasuresTheRanksThatWereStarted) {
  const std::string file = folder_ / "measured.json";
  const Outcome outcome = run(2, "plan --config " + (folder_ / "config.json") + " --calibrate " + file);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("measured on 2 ranks, kept in "), std::string::npos) << outcome.out;
  const Json measured = Json::parse(read(file));
  for (const char* key : {"flops_per_second", "flops_per_second_bf16", "flops_per_second_fp64",
                          "memory_bytes_per_second", "memory_bytes", "read_bytes_per_second"}) {
    EXPECT_GT(measured.at(key).get<double>(), 0) << key;
  }
  EXPECT_EQ(measured.at("ranks_per_node"), 2);
  EXPECT_GT(measured.at("links")[0].at("bytes_per_second").get<double>(), 0);
  // And it is a machine for plans.
  EXPECT_EQ(plan("--ranks 4 --machine " + file).at("ranks"), 4);
  const std::string config = folder_ / "config.json", before = read(config);
  const Outcome onto = run(1, "plan --config " + config + " --ranks 2 --calibrate " + config);
  EXPECT_EQ(onto.exit_code, 2) << onto.err;
  ASSERT_EQ(onto.errors().size(), 1U) << onto.err;
  EXPECT_NE(onto.errors()[0].find("is there already and holds no constants of a machine"), std::string::npos)
      << onto.err;
  EXPECT_EQ(read(config), before);
}

}  // namespace
}  // namespace jigsaw::e2e
