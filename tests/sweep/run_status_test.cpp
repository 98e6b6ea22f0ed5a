#include "sweep/run_status.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "base/file.h"
#include "support/temporary_folder.h"
#include "sweep/status_table.h"

namespace jigsaw {
namespace {

using testing::put_text;
using testing::TemporaryFolder;

constexpr const char* kMetrics = R"({"kind":"train","step":1,"loss":3.0}
{"kind":"valid","step":1,"loss":2.5,"metrics":{"t2m":{"rmse":0.5},"a.b":{"dice":0.9}}}
{"kind":"train","step":2,"loss":1.0}
{"kind":"valid","step":2,"loss":2.0,"metrics":{"t2m":{"rmse":null},"a.b":{"dice":0.8}}}
{"kind":"train","step":3,"lo)";

TEST(RunStatus, FollowsARunFromWaitingToItsEnd) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_status(folder.path(), "loss").state, RunState::kWaiting);
  write_exit_code(folder.path(), std::nullopt);
  EXPECT_EQ(run_status(folder.path(), "loss").state, RunState::kInterrupted);
  {
    const File lock(folder.path() + "/lock", O_RDWR | O_CREAT);
    ASSERT_EQ(::flock(lock.descriptor(), LOCK_EX), 0);
    EXPECT_EQ(run_status(folder.path(), "loss").state, RunState::kRunning);
  }
  const std::pair<int, RunState> ends[] = {
      {75, RunState::kStopped}, {5, RunState::kFailed}, {0, RunState::kFinished}};
  for (const auto& [code, state] : ends) {
    write_exit_code(folder.path(), code);
    EXPECT_EQ(run_status(folder.path(), "loss").state, state) << code;
  }
}

TEST(RunStatus, ReadsTheLastValidation) {
  const TemporaryFolder folder;
  put_text(folder.path() + "/metrics.jsonl", kMetrics);
  EXPECT_EQ(run_status(folder.path(), "loss").metric, 2.0);
  EXPECT_EQ(run_status(folder.path(), "loss").step, 2);
  EXPECT_EQ(run_status(folder.path(), "a.b.dice").metric, 0.8);
  EXPECT_EQ(run_status(folder.path(), "t2m.rmse").metric, std::nullopt);
  EXPECT_EQ(metric_at_step(folder.path(), "t2m.rmse", 1), 0.5);
  EXPECT_EQ(metric_at_step(folder.path(), "loss", 3), std::nullopt);
  put_text(folder.path() + "/metrics.jsonl",
           R"({"kind":"valid","step":4,"loss":1,"metrics":{},"leads":{"24":{"t2m":{"rmse":0.25}}}})"
           "\n");
  EXPECT_EQ(run_status(folder.path(), "leads.24.t2m.rmse").metric, 0.25);
}

/// Of Dice the highest, of biases that nearest 0, unless told otherwise.
TEST(SearchSpace, ValuesAreBetterAsTheMeasureHasIt) {
  SearchSpace space;
  EXPECT_TRUE(space.better(1, 2));
  space.metric = "mask.foreground_dice";
  EXPECT_TRUE(space.better(2, 1));
  space.metric = "t2m.bias";
  EXPECT_TRUE(space.better(-1, 2));
  space.best_is = BestIs::kHighest;
  EXPECT_FALSE(space.better(-1, 2));
}

TEST(StatusTable, NamesTheBestOfTheFinishedRuns) {
  SearchSpace space;
  space.metric = "t2m.rmse";
  const auto row = [](std::size_t index, RunState state, std::optional<double> metric) {
    return SweepRow{
        index, {"run" + std::to_string(index), {{"a", index}, {"b", "x,\"y\""}}}, {state, 0, 10, metric}};
  };
  const std::vector<SweepRow> rows = {row(0, RunState::kFinished, 0.5), row(1, RunState::kRunning, 0.1),
                                      row(2, RunState::kFinished, 0.4),
                                      row(3, RunState::kFinished, std::nullopt)};
  EXPECT_EQ(best_row(space, rows)->index, 2U);
  space.best_is = BestIs::kHighest;
  EXPECT_EQ(best_row(space, rows)->index, 0U);
  EXPECT_EQ(summary_json(space, rows).at("best"), "run0");
  const std::string csv = summary_csv(space, rows);
  EXPECT_NE(csv.find("index,name,state,exit_code,step,t2m.rmse,a,b\r\n"), std::string::npos);
  EXPECT_NE(csv.find("2,run2,finished,0,10,0.4,2,\"x,\"\"y\"\"\"\r\n"), std::string::npos) << csv;
  EXPECT_NE(summary_text(space, rows).find("4 runs: 3 finished, 1 running"), std::string::npos);
}

}  // namespace
}  // namespace jigsaw
