#include "sweep/run_status.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "support/temporary_folder.h"
#include "sweep/over_seeds.h"
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
    return SweepRow{index,
                    {"run" + std::to_string(index), {{"a", index}, {"b", "x,\"y\""}}},
                    {state, 0, 10, metric},
                    state == RunState::kFinished ? metric : std::nullopt};
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
  EXPECT_EQ(summary_json(space, rows).at("over_seeds"), Json::array());
}

/// Of a sweep in a folder, whose runs stand as their files say.
TEST(StatusTable, RunsThatLackTheMetricAreNamed) {
  const TemporaryFolder folder;
  SearchSpace space;
  space.metric = "t2m.rmse";
  const RunList list = RunList::update(folder.path(), {{{"a", 0}}, {{"a", 1}}, {{"a", 2}}});
  for (int run = 0; run < 3; ++run) {
    const std::filesystem::path at = list.folder_of(list.runs()[static_cast<std::size_t>(run)]);
    std::filesystem::create_directories(at);
    const char* metrics = run == 0 ? R"({"u":{"rmse":1}})" : run == 1 ? R"({"t2m":{"rmse":null}})" : "{}";
    put_text(at / "metrics.jsonl", concat(R"({"kind":"valid","step":2,"loss":1,"metrics":)", metrics, "}\n"));
    write_exit_code(at, run == 2 ? 75 : 0);
  }
  const std::vector<std::string> remarks = row_remarks(space, sweep_rows(space, list));
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0], "a=0 has finished, and its last validation has no \"t2m.rmse\"");
  space.metric = "loss";
  EXPECT_TRUE(row_remarks(space, sweep_rows(space, list)).empty());
}

/// Mean and deviation of 1, 2, 4 by hand; what has not finished adds nothing.
TEST(StatusTable, MeansOverSeedsAreOfRunsThatDifferInNothingElse) {
  SearchSpace space;
  std::vector<SweepRow> rows;
  const auto add = [&](double rate, int seed, std::optional<double> score) {
    SweepRow row{
        rows.size(), {"run" + std::to_string(rows.size()), {{"o.rate", rate}, {"seed", seed}}}, {}, score};
    row.status.metric = score;
    rows.push_back(row);
  };
  add(0.1, 1, 1.0);
  add(0.2, 1, 5.0);
  add(0.1, 2, 2.0);
  add(0.1, 3, 4.0);
  add(0.2, 2, std::nullopt);
  const Json groups = summary_json(space, rows).at("over_seeds");
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].at("set"), (Json{{"o.rate", 0.1}}));
  EXPECT_EQ(groups[0].at("runs"), 3);
  EXPECT_NEAR(groups[0].at("mean").get<double>(), 7.0 / 3, 1e-15);
  EXPECT_NEAR(groups[0].at("deviation").get<double>(), std::sqrt(7.0 / 3), 1e-15);
  EXPECT_EQ(groups[1].at("runs"), 1);
  EXPECT_EQ(groups[1].at("mean"), 5.0);
  EXPECT_TRUE(groups[1].at("deviation").is_null());
  const std::string text = summary_text(space, rows), csv = summary_csv(space, rows);
  EXPECT_NE(text.find("rate=0.1       3       2.33333       1.52753\n"), std::string::npos) << text;
  EXPECT_NE(text.find("rate=0.2       1             5             -\n"), std::string::npos) << text;
  EXPECT_NE(csv.find(",loss,o.rate,seed,seeds,mean,deviation\r\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",5.0,0.2,1,1,5.0,\r\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",,0.2,2,1,5.0,\r\n"), std::string::npos) << csv;
  rows.resize(2);
  EXPECT_TRUE(over_seeds(rows).empty());
}

}  // namespace
}  // namespace jigsaw
