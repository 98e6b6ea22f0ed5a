#include "estimate/mesh_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "config/config.h"
#include "estimate/explanation.h"
#include "estimate/mesh_choice.h"
#include "estimate/report.h"

namespace jigsaw {
namespace mesh_search_test {

Configuration small() {
  return parse<Configuration>(Json::parse(R"({
    "data": {"files": ["none.nc"], "shape": [24, 36], "variables": ["t2m", "u10", "v10"], "train": ["2020-01-01", "2020-01-09"]},
    "model": {"type": "weathermixer", "patch": [4, 6], "embed_dim": 48, "depth": 2},
    "train": {"batch_size": 4}})"));
}

struct Asked {
  Configuration configuration = small();
  DataDescription data = describe_data(configuration.data, "");
  MachineModel machine = machine_model("cpu-node");
  MeshQuestion question{configuration, data, machine};
};

TEST(MeshSearch, TheAnswerDoesNotDependOnThreads) {
  Asked asked;
  asked.question.ranks = 8;
  const auto answer = [&](int threads) {
    asked.question.threads = threads;
    PlanReport report;
    report.answer = find_meshes(asked.question);
    report.configured = configured_mesh(asked.question, &report.ranks);
    return to_json(asked.question, report).dump();
  };
  const std::string one = answer(1);
  EXPECT_EQ(answer(3), one);
  EXPECT_EQ(answer(1), one);
}

TEST(MeshChoice, IsTheFastestThatFitsAndLeavesTheRestAsConfigured) {
  Asked asked;
  asked.configuration.train.recompute = Recompute::kBlock;
  asked.question.ranks = 8;
  const auto planned_on = [&](const MeshOptions& mesh) {
    Configuration configuration = asked.configuration;
    configuration.mesh = mesh;
    return *configured_mesh({configuration, asked.data, asked.machine, 8});
  };
  std::vector<PlannedMesh> all;
  for (const MeshBound& bound :
       bound_meshes(work_of(asked.configuration, asked.data), asked.configuration, asked.machine, 8))
    all.push_back(planned_on(bound.mesh));
  ASSERT_GT(all.size(), 8U);
  const auto faster = [](const auto& a, const auto& b) { return a.worst.seconds < b.worst.seconds; };
  const PlannedMesh fastest = *std::min_element(all.begin(), all.end(), faster);
  const std::optional<ChosenMesh> chosen = chosen_mesh(asked.question);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(planned_on(chosen->mesh).worst.seconds, fastest.worst.seconds);
  EXPECT_NE(chosen->reason.find(to_string(chosen->mesh)), std::string::npos) << chosen->reason;
  asked.question.threads = 3;
  asked.question.kept = 1;
  asked.question.as_configured = true;
  EXPECT_EQ(chosen_mesh(asked.question)->reason, chosen->reason);

  asked.question.memory_bytes = fastest.worst.memory_bytes - 1;
  const std::optional<ChosenMesh> smaller = chosen_mesh(asked.question);
  ASSERT_TRUE(smaller);
  EXPECT_LT(planned_on(smaller->mesh).worst.memory_bytes, fastest.worst.memory_bytes);
  asked.question.memory_bytes = 1;
  EXPECT_NE(chosen_mesh(asked.question)->reason.find("none that was planned fits"), std::string::npos);

  asked.question.ranks = 9973;  // a prime, and more than there are patches and channels
  EXPECT_FALSE(chosen_mesh(asked.question));
}

/// Halos: a rank in the middle has two neighbours, rank 0 has one.
TEST(MeshSearch, TellsOfTheRankThatSendsMost) {
  Asked asked{parse<Configuration>(Json::parse(R"({
    "data": {"files": ["none.nc"], "shape": [24, 36], "variables": ["t2m"], "train": ["2020-01-01", "2020-01-09"]},
    "model": {"type": "unet", "base_width": 24, "levels": 2},
    "train": {"batch_size": 3}})"))};
  asked.question.ranks = 3;
  bool halos = false;
  for (const PlannedMesh& found : find_meshes(asked.question).best) {
    Configuration configuration = asked.configuration;
    configuration.mesh = found.mesh;
    std::vector<RankEstimate> ranks;
    configured_mesh({configuration, asked.data, asked.machine, 3}, &ranks);
    ASSERT_EQ(ranks.size(), 3U);
    double most = 0;
    for (const RankEstimate& rank : ranks) most = std::max(most, rank.total_sent_bytes());
    // Of each kind of transfer the most is told, which may be another rank's.
    EXPECT_GE(found.worst.total_sent_bytes(), most) << to_string(found.mesh);
    EXPECT_LE(found.worst.total_sent_bytes(), 1.01 * most) << to_string(found.mesh);
    if (ranks[0].total_sent_bytes() < most) halos = true;
  }
  EXPECT_TRUE(halos);
}

/// On square meshes a cut that goes from one axis to another leaves ranks on the diagonal with what they
/// have.
TEST(MeshSearch, TellsOfRanksBesideTheDiagonal) {
  constexpr int kRanks = 16, kOnDiagonal = 10;
  Asked asked{parse<Configuration>(Json::parse(R"({
    "data": {"files": ["none.nc"], "shape": [128, 256], "variables": ["t2m"], "train": ["2020-01-01", "2020-01-09"]},
    "model": {"type": "vit", "patch": [2, 2], "embed_dim": 1024, "depth": 1, "heads": 16},
    "mesh": {"domain": [1, 4], "tensor": 4},
    "train": {"batch_size": 1, "precision": "bf16"}})"))};
  asked.machine = machine_model("h100");
  asked.question.ranks = kRanks;
  std::vector<RankEstimate> ranks;
  configured_mesh(asked.question, &ranks);
  ASSERT_EQ(std::ssize(ranks), kRanks);
  double most = 0;
  for (const RankEstimate& rank : ranks) most = std::max(most, rank.total_sent_bytes());
  for (const int rank : {0, kOnDiagonal})
    EXPECT_LT(ranks[static_cast<std::size_t>(rank)].total_sent_bytes(), 0.98 * most) << rank;
  EXPECT_GE(configured_mesh(asked.question)->worst.total_sent_bytes(), 0.999 * most);
}

TEST(MeshSearch, NoMeshThatIsLeftOutIsFasterThanItsBound) {
  Asked asked;
  for (const int ranks : {2, 4, 6}) {
    asked.question.ranks = ranks;
    const ModelWork work = work_of(asked.configuration, asked.data);
    const std::vector<MeshBound> meshes = bound_meshes(work, asked.configuration, asked.machine, ranks);
    EXPECT_GT(meshes.size(), 2U);
    for (const MeshBound& bound : meshes) {
      Configuration configuration = asked.configuration;
      configuration.mesh = bound.mesh;
      const MeshQuestion question{configuration, asked.data, asked.machine, ranks};
      const std::optional<PlannedMesh> planned = configured_mesh(question);
      ASSERT_TRUE(planned);
      EXPECT_LE(bound.at_least, planned->worst.seconds) << to_string(bound.mesh);
    }
  }
}

/// Transfers of gradients that take as long as the products hide behind them: the two are no sum.
TEST(MeshSearch, NoBoundIsExceededWhereTransfersHide) {
  Asked asked;
  asked.question.ranks = 2;
  for (const double slower : {1e-2, 1e-1, 1.0, 10.0, 100.0}) {
    MachineModel machine = asked.machine;
    for (MachineOptions::Link* link : {&*machine.node_link, &machine.links[0]}) {
      link->bytes_per_second /= slower;
      link->latency_seconds = 0;
    }
    machine.memory_bytes_per_second *= 1e3;
    machine.flops_per_second /= 10;
    const ModelWork work = work_of(asked.configuration, asked.data);
    for (const MeshBound& bound : bound_meshes(work, asked.configuration, machine, 2)) {
      Configuration configuration = asked.configuration;
      configuration.mesh = bound.mesh;
      const std::optional<PlannedMesh> planned = configured_mesh({configuration, asked.data, machine, 2});
      ASSERT_TRUE(planned);
      EXPECT_LE(bound.at_least, planned->worst.seconds) << to_string(bound.mesh) << " " << slower;
    }
  }
}

TEST(MeshSearch, ChoicesSaveWhatTheyAreFor) {
  Asked asked;
  const auto of = [&](const std::string& mesh, Zero zero, Recompute recompute, std::int64_t accumulate) {
    Configuration configuration = asked.configuration;
    configuration.mesh = parse<MeshOptions>(Json::parse(mesh));
    configuration.zero = zero;
    configuration.train.recompute = recompute;
    configuration.train.accumulate = accumulate;
    MeshQuestion question{configuration, asked.data, asked.machine, 4};
    return configured_mesh(question)->worst;
  };
  const std::string data = R"({"data": 4, "domain": [1, 1]})", domain = R"({"domain": [2, 2]})";
  const RankEstimate plain = of(data, Zero::kNone, Recompute::kNone, 1);
  const RankEstimate cut = of(domain, Zero::kNone, Recompute::kNone, 1);
  EXPECT_NEAR(static_cast<double>(plain.parameter_bytes) / static_cast<double>(cut.parameter_bytes), 4, 0.1);
  const RankEstimate one = of(data, Zero::kOptimizer, Recompute::kNone, 1);
  EXPECT_NEAR(static_cast<double>(one.parameter_bytes) / static_cast<double>(plain.parameter_bytes), 1,
              0.005);
  EXPECT_NEAR(static_cast<double>(plain.optimizer_bytes) / static_cast<double>(one.optimizer_bytes), 4, 0.1);
  const RankEstimate three = of(data, Zero::kParameters, Recompute::kNone, 1);
  EXPECT_NEAR(static_cast<double>(plain.parameter_bytes) / static_cast<double>(three.parameter_bytes), 4,
              0.1);
  EXPECT_LT(of(data, Zero::kNone, Recompute::kBlock, 1).activation_bytes, plain.activation_bytes);
  EXPECT_LT(of(domain, Zero::kNone, Recompute::kNone, 4).activation_bytes, cut.activation_bytes / 2);
  // Summing gradients over `data`: 2 (n − 1)/n of the parameters, and some sums of the loss.
  const double sums = 2.0 * 3 / 4 * static_cast<double>(plain.parameter_bytes);
  EXPECT_NEAR(plain.sent_bytes[static_cast<std::size_t>(Collective::kAllReduce)], sums, 1e-3 * sums);
}

/// A batch in more parts takes less memory, too, and hardly more time.
TEST(MeshSearch, MorePartsMayBeFasterThanRunningBlocksAgain) {
  Asked asked;
  asked.question.ranks = 1;
  const auto on_one = [&](Recompute recompute, std::int64_t accumulate) {
    Configuration configuration = asked.configuration;
    configuration.mesh = MeshOptions();
    configuration.train.recompute = recompute;
    configuration.train.accumulate = accumulate;
    return configured_mesh({configuration, asked.data, asked.machine, 1})->worst;
  };
  const std::int64_t parts = asked.configuration.train.accumulate;
  const RankEstimate again = on_one(Recompute::kBlock, parts), more = on_one(Recompute::kNone, 2 * parts);
  ASSERT_LT(more.compute_seconds, again.compute_seconds);  // reading takes longer than both
  asked.question.memory_bytes = std::max(again.memory_bytes, more.memory_bytes);
  ASSERT_LT(asked.question.memory_bytes, on_one(Recompute::kNone, parts).memory_bytes);
  const PlannedMesh best = find_meshes(asked.question).best.front();
  EXPECT_EQ(best.recompute, Recompute::kNone);
  EXPECT_EQ(best.accumulate, 2 * parts);
}

TEST(MeshSearch, ABatchIsInAtLeastAsManyPartsAsConfigured) {
  Asked asked;
  asked.configuration.train.accumulate = 2;
  asked.question.ranks = 2;
  asked.question.memory_bytes = std::int64_t{1} << 40;
  const MeshAnswer answer = find_meshes(asked.question);
  ASSERT_FALSE(answer.best.empty());
  for (const PlannedMesh& mesh : answer.best) EXPECT_EQ(mesh.accumulate, 2) << to_string(mesh.mesh);
}

/// On the host batches are read ahead; a GPU holds the next one, a copy, and an operation's workspace.
TEST(MeshSearch, TellsWhatAGpuHoldsBesides) {
  Asked asked;
  const auto on = [&](Device device) {
    asked.machine.device = device;
    return estimate_rank({asked.configuration, asked.data, asked.machine, 1}, 0);
  };
  const RankEstimate host = on(Device::kCpu), gpu = on(Device::kCuda);
  // 24 × 36 points and four samples of three variables now and as targets, in float32.
  EXPECT_EQ(gpu.input_bytes, 3 * (3 + 3) * 24 * 36 * 4 * 4);
  EXPECT_GT(host.input_bytes, gpu.input_bytes);
  const std::int64_t batch = gpu.input_bytes / 3, ahead = host.input_bytes - batch,
                     step = host.memory_bytes - ahead;
  EXPECT_LT(step, 512 << 20);
  EXPECT_EQ(gpu.memory_bytes, 2 * step + 2 * batch);
  StepCount large{.input_bytes = 7, .memory_bytes = std::int64_t{3} << 30};
  hold_on_gpu({}, large);
  EXPECT_EQ(large.memory_bytes, (std::int64_t{3} << 30) + (512 << 20) + 14);
  StepCount copied{.parameter_bytes = 100, .memory_bytes = 1000};
  hold_on_gpu({.precision = Precision::kBfloat16}, copied);
  EXPECT_EQ(copied.memory_bytes, 1000 + 1000 + 50);
}

TEST(MeshSearch, AMemoryLimitIsMetOrRefused) {
  Asked asked;
  asked.question.ranks = 4;
  const MeshAnswer free = find_meshes(asked.question);
  const std::int64_t least = free.best.front().worst.memory_bytes;
  asked.question.memory_bytes = least / 2;
  const MeshAnswer tight = find_meshes(asked.question);
  ASSERT_FALSE(tight.best.empty());
  for (const PlannedMesh& mesh : tight.best)
    EXPECT_EQ(mesh.fits, mesh.worst.memory_bytes <= least / 2) << to_string(mesh.mesh);
  asked.question.memory_bytes = 1 << 12;
  EXPECT_FALSE(find_meshes(asked.question).best.front().fits);
  asked.question.memory_bytes = std::int64_t{1} << 40;
  EXPECT_EQ(smallest_ranks(asked.question), 1);
}

TEST(MeshSearch, TheSmallestNumberOfRanksThatFitsIsTold) {
  Asked asked;
  const auto least_on = [&](int ranks) {
    asked.question.ranks = ranks;
    asked.question.memory_bytes = 1;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const PlannedMesh& mesh : find_meshes(asked.question).best)
      least = std::min(least, mesh.worst.memory_bytes);
    return least;
  };
  const std::int64_t of_one = least_on(1), of_two = least_on(2), of_three = least_on(3);
  ASSERT_LT(of_two, of_one);
  ASSERT_LT(of_three, of_two);
  const auto smallest = [&](std::int64_t memory_bytes) {
    asked.question.memory_bytes = memory_bytes;
    return smallest_ranks(asked.question);
  };
  EXPECT_EQ(smallest(of_one), 1);
  EXPECT_EQ(smallest(of_one - 1), 2);
  EXPECT_EQ(smallest(of_two - 1), 3);
  EXPECT_EQ(smallest(of_three - 1), 4);
  EXPECT_EQ(smallest(64), 0);
}

TEST(MeshSearch, RefusesRanksThatNoMeshHas) {
  Asked asked;
  asked.question.ranks = 1009;  // a prime above all limits
  try {
    find_meshes(asked.question);
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("1008"), std::string::npos) << text;
    EXPECT_NE(text.find("domain at most [6, 6]"), std::string::npos) << text;
  }
}

TEST(MeshSearch, ExplainsEveryBlock) {
  Asked asked;
  asked.question.ranks = 4;
  const MeshAnswer answer = find_meshes(asked.question);
  ASSERT_GE(answer.best.size(), 2U);
  const std::string text = explain(asked.question, answer.best.front(), answer.best.back());
  EXPECT_NE(text.find("encoder"), std::string::npos) << text;
  EXPECT_NE(text.find("decoder"), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
}

}  // namespace mesh_search_test
}  // namespace jigsaw
