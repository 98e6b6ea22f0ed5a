// What a job of several machines may have wrong, of facts that ranks could tell.
#include "train/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace jigsaw {
namespace preflight_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const OutputNeed kNeed = {"runs/a", 100e9, 1e9, 4};

/// Two ranks on each of two nodes, all alike: within a node 10 GB/s, between nodes 1 GB/s.
std::vector<RankFacts> four_ranks() {
  std::vector<RankFacts> facts(4);
  for (int r = 0; r < 4; ++r) {
    RankFacts& fact = facts[static_cast<std::size_t>(r)];
    fact.host = r < 2 ? "n1" : "n2";
    fact.build = "jigsaw-train 1";
    fact.clock = 1000 + 0.01 * r;
    fact.flops_per_second = 50e9 + 1e9 * r;
    fact.links = {{r ^ 1, 10e9, 1e-6}, {r ^ 2, 1e9, 5e-6}};
  }
  return facts;
}

std::string refusal(const std::vector<RankFacts>& facts) {
  try {
    judge(facts, kNeed);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Preflight, TellsMediansAndNothingElseOfRanksThatAreAlike) {
  const PreflightReport report = judge(four_ranks(), kNeed);
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_THAT(report.lines, ElementsAre("4 ranks on 2 nodes, 52 GFLOP/s each (median)",
                                        "messages within a node: 10 GB/s, 1 µs (median)",
                                        "messages between nodes: 1 GB/s, 5 µs (median)",
                                        HasSubstr("output: runs/a is written and seen by all ranks")));
}

TEST(Preflight, NamesSlowRanksAndSlowLinksOfTheirKind) {
  std::vector<RankFacts> facts = four_ranks();
  facts[2].flops_per_second = 20e9;
  facts[1].links[1].bytes_per_second = facts[3].links[1].bytes_per_second = 0.4e9;
  EXPECT_THAT(
      judge(facts, kNeed).warnings,
      ElementsAre("rank 2 on n2 is slow: 20 GFLOP/s where the median is 51; all others wait for it",
                  "slow messages between rank 1 on n1 and rank 3 on n2: 0.4 GB/s where the median between "
                  "nodes is 1"));
}

TEST(Preflight, NamesLinksOfSlowLatency) {
  std::vector<RankFacts> facts = four_ranks();
  facts[1].links[1].latency_seconds = facts[3].links[1].latency_seconds = 20e-6;
  facts[0].links[0].latency_seconds = facts[1].links[0].latency_seconds = 3e-6;  // of far sockets
  EXPECT_THAT(judge(facts, kNeed).warnings,
              ElementsAre("slow messages between rank 1 on n1 and rank 3 on n2: 20 µs where the median "
                          "between nodes is 5"));
  facts[1].links[1].bytes_per_second = facts[3].links[1].bytes_per_second = 0.4e9;
  // One side alone was held up by something else.
  facts[2].links[1].latency_seconds = 90e-6;
  EXPECT_THAT(judge(facts, kNeed).warnings,
              ElementsAre("slow messages between rank 1 on n1 and rank 3 on n2: 0.4 GB/s where the median "
                          "between nodes is 1; 20 µs where the median between nodes is 5"));
}

TEST(Preflight, WarnsOfClocksOfUnevenNodesAndOfAFullDisk) {
  std::vector<RankFacts> facts = four_ranks();
  facts[3].host = "n3";
  facts[3].clock += 90;
  EXPECT_THAT(
      judge(facts, {"runs/a", 3.5e9, 1e9, 4}).warnings,
      ElementsAre("n1 holds 2 ranks and n2 1: their memory and speed per rank differ",
                  HasSubstr("the clock of n3 is 90 s ahead"), HasSubstr("output: 4 checkpoints of ")));
}

TEST(Preflight, CountsTheCheckpointsThatStandAtOnce) {
  const CheckpointOptions last{.every = 10, .keep = 3}, best{.every = 10, .keep = 3, .best = "rmse_ratio"},
      each{.every = 10, .keep = 1, .keep_every = 20}, never{.every = 0};
  EXPECT_EQ(checkpoints_to_come(last, 1000, 0), 4) << "three, and the one that is being written";
  EXPECT_EQ(checkpoints_to_come(last, 15, 0), 2) << "no more than are made";
  EXPECT_EQ(checkpoints_to_come(last, 1000, 3), 1);
  EXPECT_EQ(checkpoints_to_come(last, 1000, 9), 0);
  EXPECT_EQ(checkpoints_to_come(last, 0, 0), 0);
  EXPECT_EQ(checkpoints_to_come(best, 1000, 0), 5);
  EXPECT_EQ(checkpoints_to_come(each, 100, 0), 7) << "five of them stay";
  EXPECT_EQ(checkpoints_to_come(each, 100, 40), 5);
  EXPECT_EQ(checkpoints_to_come(never, 100, 0), 0);
}

TEST(Preflight, RefusesUnlikeBuildsAndAnOutputThatIsNotShared) {
  std::vector<RankFacts> facts = four_ranks();
  facts[2].build = "jigsaw-train 2";
  EXPECT_EQ(refusal(facts),
            "the ranks run unlike builds: rank 0 on n1 has jigsaw-train 1; rank 2 on n2 has jigsaw-train 2");
  facts = four_ranks();
  facts[3].sees_output = false;
  EXPECT_EQ(
      refusal(facts),
      "output runs/a: rank 3 on n2 does not see what rank 0 on n1 writes there; it must be a folder that "
      "all nodes share");
  facts = four_ranks();
  facts[1].output_error = FileError("read-only file system");
  EXPECT_EQ(refusal(facts), "output runs/a: rank 1 on n1 cannot write there: read-only file system");
  facts[1].output_error = DiskError("read-only file system");
  EXPECT_THROW(judge(facts, {.output = "runs/a"}), DiskError);
}

}  // namespace preflight_test
}  // namespace jigsaw
