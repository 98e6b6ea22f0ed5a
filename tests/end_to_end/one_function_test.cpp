// Promise 1: any mesh gives the same loss curve, up to rounding; the same mesh gives the same bits. Promise
// 2: every rank holds, reads and computes on its share. Through the executable, on the real file (33 × 49
// points: nothing divides evenly).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

struct MeshCase {
  const char* json;
  int ranks;
};
const std::vector<MeshCase> kMeshes = {{R"({"domain":[2,1]})", 2},
                                       {R"({"domain":[1,2]})", 2},
                                       {R"({"domain":[3,1]})", 3},
                                       {R"({"tensor":2})", 2},
                                       {R"({"domain":[2,1],"tensor":2})", 4},
                                       {R"({"data":2})", 2},
                                       {R"({"data":2,"tensor":2})", 4},
                                       {R"({"domain":[2,2],"tensor":2})", 8}};

class OneFunction : public ::testing::Test {
 protected:
  /// Trains on a mesh; returns the run directory.
  std::string train(const std::string& name, int ranks, const std::string& mesh,
                    const std::string& more = "") {
    const std::string output = folder_ / name;
    const Outcome outcome = run(ranks, "--config " + (folder_ / "config.json") + " --set output=" + output +
                                           " --set 'mesh=" + mesh + "' " + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return output;
  }
  void write_config() { folder_.write("config.json", small_config(folder_).dump()); }

  TemporaryFolder folder_;
};

double relative(double a, double b) {
  return std::abs(a - b) / std::abs(b);
}

TEST_F(OneFunction, HundredStepsInFloat64OnEveryMesh) {
  write_config();
  const std::string fp64 = "--set train.precision=fp64";
  const auto one = metrics(train("one", 1, "{}", fp64), "train");
  ASSERT_EQ(one.size(), 100U);
  const auto losses = series(one, "loss"), norms = series(one, "grad_norm");
  EXPECT_LT(std::accumulate(losses.end() - 20, losses.end(), 0.0),
            std::accumulate(losses.begin(), losses.begin() + 20, 0.0));
  for (const MeshCase& mesh : kMeshes) {
    ASSERT_GT(mesh.ranks, 1);
    const auto many = metrics(train("m", mesh.ranks, mesh.json, fp64 + " --resume never"), "train");
    ASSERT_EQ(many.size(), 100U) << mesh.json;
    const auto other_losses = series(many, "loss"), other_norms = series(many, "grad_norm");
    double worst = 0, worst_norm = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      worst = std::max(worst, relative(other_losses[i], losses[i]));
      worst_norm = std::max(worst_norm, relative(other_norms[i], norms[i]));
    }
    std::printf(
        "fp64 %-28s %d ranks: worst relative difference in 100 steps: loss %.1e, gradient norm %.1e\n",
        mesh.json, mesh.ranks, worst, worst_norm);
    EXPECT_LE(worst, 1e-9) << mesh.json;
    EXPECT_LE(worst_norm, 1e-9) << mesh.json;
  }
}

TEST_F(OneFunction, HundredStepsInFloat32OnEveryMesh) {
  write_config();
  const auto one = metrics(train("one", 1, "{}"), "train");
  const auto losses = series(one, "loss"), norms = series(one, "grad_norm");
  for (const MeshCase& mesh : kMeshes) {
    const auto many = metrics(train("m", mesh.ranks, mesh.json, "--resume never"), "train");
    ASSERT_EQ(many.size(), 100U) << mesh.json;
    const auto other_losses = series(many, "loss"), other_norms = series(many, "grad_norm");
    std::printf("fp32 %-28s %d ranks: loss of step 1 %.1e, of step 100 %.1e; norm of step 1 %.1e\n",
                mesh.json, mesh.ranks, relative(other_losses[0], losses[0]),
                relative(other_losses[99], losses[99]), relative(other_norms[0], norms[0]));
    EXPECT_LE(relative(other_losses[0], losses[0]), 1e-5) << mesh.json;
    EXPECT_LE(relative(other_norms[0], norms[0]), 1e-5) << mesh.json;
    EXPECT_LE(relative(other_losses[99], losses[99]), 1e-2) << mesh.json;
  }
}

TEST_F(OneFunction, SameMeshTwiceGivesTheSameBits) {
  write_config();
  const std::string mesh = R"({"domain":[2,1],"tensor":2})";
  const auto first = metrics(train("a", 4, mesh, "--set train.steps=30"), "train");
  const auto second = metrics(train("b", 4, mesh, "--set train.steps=30"), "train");
  EXPECT_EQ(series(first, "loss"), series(second, "loss"));
  EXPECT_EQ(series(first, "grad_norm"), series(second, "grad_norm"));
}

TEST_F(OneFunction, EveryOtherWayToRunTheSameFunction) {
  write_config();
  const std::string fp64 = "--set train.precision=fp64 --set train.steps=10 --set train.rollout=2 ";
  const auto losses = series(metrics(train("one", 1, "{}", fp64), "train"), "loss");
  const std::vector<std::pair<std::string, std::string>> ways = {
      {R"({"data":2})", "--set zero=optimizer"},
      {R"({"data":2})", "--set zero=parameters"},
      {R"({"domain":[2,1]})", "--set train.accumulate=2"},
      {R"({"tensor":2})", "--set train.recompute=block"}};
  for (const auto& [mesh, more] : ways) {
    const auto other = series(metrics(train("m", 2, mesh, fp64 + more + " --resume never"), "train"), "loss");
    ASSERT_EQ(other.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_LE(relative(other[i], losses[i]), 1e-9) << mesh << more;
  }
}

/// Losses of a curriculum are of as many leads as its steps run.
TEST_F(OneFunction, MetricsSayOverHowManyLeads) {
  write_config();
  const std::string more = "--set train.steps=4 --set 'train.rollout={\"leads\":[1,2],\"from\":[1,3]}'";
  EXPECT_EQ(series(metrics(train("two", 2, R"({"domain":[2,1]})", more), "train"), "rollout"),
            (std::vector<double>{1, 1, 2, 2}));
  const auto plain = metrics(train("one", 1, "{}", "--set train.steps=1"), "train");
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_FALSE(plain[0].contains("rollout"));
}

TEST_F(OneFunction, EachRankHoldsAndReadsItsShare) {
  Json config = small_config(folder_);
  config["model"]["embed_dim"] = 64;
  folder_.write("config.json", config.dump());
  const auto ranks_of = [&](int ranks, const std::string& mesh) {
    const std::string output = train("share", ranks, mesh, "--set train.steps=10 --resume never");
    std::ifstream in(output + "/summary.json");
    return Json::parse(in).at("ranks");
  };
  const auto largest = [](const Json& ranks, const char* key) {
    double most = 0, sum = 0;
    for (const Json& rank : ranks) {
      most = std::max(most, rank.at(key).get<double>());
      sum += rank.at(key).get<double>();
    }
    return std::pair(most, sum);
  };
  const Json one = ranks_of(1, "{}");
  std::printf("%6s %20s %20s %20s %20s   (largest rank over one rank's whole)\n", "ranks", "parameters",
              "optimizer", "file bytes read", "peak activation");
  for (const auto& [ranks, mesh] : std::vector<std::pair<int, std::string>>{
           {1, "{}"}, {2, R"({"domain":[2,1]})"}, {4, R"({"domain":[2,2]})"}, {8, R"({"domain":[4,2]})"}}) {
    const Json many = ranks == 1 ? one : ranks_of(ranks, mesh);
    ASSERT_EQ(many.size(), static_cast<std::size_t>(ranks));
    double shares[4];
    const char* keys[] = {"parameter_bytes", "optimizer_bytes", "file_bytes_read", "peak_activation_bytes"};
    for (int i = 0; i < 4; ++i) shares[i] = largest(many, keys[i]).first / largest(one, keys[i]).second;
    std::printf("%6d %20.3f %20.3f %20.3f %20.3f\n", ranks, shares[0], shares[1], shares[2], shares[3]);
    // Zeros make shares equal (parameter_test counts them).
    EXPECT_GE(largest(many, "parameter_bytes").second, largest(one, "parameter_bytes").second);
    EXPECT_LE(largest(many, "parameter_bytes").second, 1.005 * largest(one, "parameter_bytes").second);
    // 11 × 7 patches on 4 × 2 ranks: the largest piece has 12 of 77, 1.25 of an even share.
    EXPECT_LE(shares[0], 1.2 / ranks);
    EXPECT_LE(shares[1], 1.2 / ranks);
    EXPECT_LE(shares[2], 1.3 / ranks);
    // Beside them stand operands gathered for a product.
    EXPECT_LE(shares[3], 1.6 / ranks);
  }
}

}  // namespace
}  // namespace jigsaw::e2e
