#include "sweep/successive_halving.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "support/temporary_folder.h"
#include "sweep/run_status.h"
#include "sweep/status_table.h"

namespace jigsaw {
namespace {

using testing::put_text;
using testing::TemporaryFolder;

TEST(SuccessiveHalving, RoundsGrowInStepsAndShrinkInRuns) {
  const auto rounds = halving_rounds({.first_steps = 100, .factor = 3}, 27, 2000);
  std::vector<std::pair<std::int64_t, std::int64_t>> seen;
  for (const HalvingRound& round : rounds) seen.emplace_back(round.runs, round.steps);
  EXPECT_EQ(seen,
            (std::vector<std::pair<std::int64_t, std::int64_t>>{{27, 100}, {9, 300}, {3, 900}, {1, 2000}}));
  EXPECT_EQ(halving_rounds({.first_steps = 100, .factor = 3}, 4, 5000).back().steps, 5000);
  EXPECT_EQ(halving_rounds({.first_steps = 100, .factor = 3}, 4, 50).size(), 1U);
  EXPECT_EQ(halving_task(rounds, 27)->round, 1U);
  EXPECT_EQ(halving_task(rounds, 39)->round, 3U);
  EXPECT_FALSE(halving_task(rounds, 40));
}

TEST(SuccessiveHalving, TheBestGoOnAndWhatFailedComesLast) {
  const TemporaryFolder folder;
  SearchSpace space;
  const RunList list = RunList::update(folder.path(), {{{"a", 0}}, {{"a", 1}}, {{"a", 2}}, {{"a", 3}}});
  const std::vector<HalvingRound> rounds = {{4, 10}, {2, 20}, {1, 40}};
  EXPECT_EQ(halving_participants(space, list, rounds, 0).size(), 4U);
  EXPECT_THROW(halving_participants(space, list, rounds, 1), NotYet);
  for (int run = 0; run < 4; ++run) {
    const std::filesystem::path at = list.folder_of(list.runs()[static_cast<std::size_t>(run)]);
    std::filesystem::create_directories(at);
    // The worst by far at a later step: only the end of the round counts.
    if (run != 1)
      put_text(at / "metrics.jsonl", concat(R"({"kind":"valid","step":10,"loss":)", 5 - run, "}\n",
                                            R"({"kind":"valid","step":20,"loss":)", 100 * run, "}\n"));
    write_exit_code(at, run == 1 ? 5 : 0);
  }
  std::vector<std::string> names;
  for (const SweepRun& run : halving_participants(space, list, rounds, 1)) names.push_back(run.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a=3", "a=2"}));
  EXPECT_EQ(halving_participants(space, list, rounds, 2)[0].name, "a=2");
}

/// What diverged, and ended with code 0 all the same, waits for nothing.
TEST(SuccessiveHalving, AScoreThatIsNotFiniteComesLast) {
  const TemporaryFolder folder;
  SearchSpace space;
  const RunList list = RunList::update(folder.path(), {{{"a", 0}}, {{"a", 1}}, {{"a", 2}}});
  const std::vector<HalvingRound> rounds = {{3, 10}, {2, 20}, {1, 40}};
  for (int run = 0; run < 3; ++run) {
    const std::filesystem::path at = list.folder_of(list.runs()[static_cast<std::size_t>(run)]);
    std::filesystem::create_directories(at);
    const std::string loss = run == 0 ? "null" : concat(run);
    put_text(at / "metrics.jsonl",
             concat(R"({"kind":"valid","step":10,"loss":)", loss, "}\n",
                    R"({"kind":"valid","step":20,"loss":)", run == 1 ? "null" : "1", "}\n"));
    write_exit_code(at, 0);
  }
  std::vector<std::string> names;
  for (const SweepRun& run : halving_participants(space, list, rounds, 1)) names.push_back(run.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a=1", "a=2"}));
  EXPECT_EQ(halving_participants(space, list, rounds, 2)[0].name, "a=2");
  space.metric = "t2m.rmse";
  EXPECT_THROW(halving_participants(space, list, rounds, 1), NotYet);
}

/// As validation.patience does it.
TEST(SuccessiveHalving, ARunThatEndedBeforeItsRoundIsJudgedByItsLastValidation) {
  const TemporaryFolder folder;
  SearchSpace space;
  const RunList list = RunList::update(folder.path(), {{{"a", 0}}, {{"a", 1}}});
  const std::vector<HalvingRound> rounds = {{2, 10}, {1, 20}};
  const auto put = [&](std::size_t run, int step, int loss, int exit_code) {
    const std::filesystem::path at = list.folder_of(list.runs()[run]);
    std::filesystem::create_directories(at);
    put_text(at / "metrics.jsonl", concat(R"({"kind":"train","step":)", step, R"(,"loss":9})", "\n",
                                          R"({"kind":"valid","step":)", step, R"(,"loss":)", loss, "}\n"));
    write_exit_code(at, exit_code);
  };
  put(0, 10, 5, 0);
  put(1, 8, 4, 75);
  EXPECT_THROW(halving_participants(space, list, rounds, 1), NotYet);
  put(1, 8, 4, 0);
  // One that finished the round before, and has not begun this one, is waited for.
  EXPECT_THROW(halving_participants(space, list, rounds, 1), NotYet);
  put_text(list.folder_of(list.runs()[1]) / "summary.json",
           R"({"steps": 8, "ended_by": "validation.patience"})");
  EXPECT_EQ(halving_participants(space, list, rounds, 1)[0].name, "a=1");
}

/// A run that stopped at an early round with a better number is not the best; one on the way in the last
/// round is compared by the round before until another came to its end.
TEST(SuccessiveHalving, TheBestIsOneOfTheLastRound) {
  const TemporaryFolder folder;
  SearchSpace space;
  space.method = SearchMethod::kHalving;
  const RunList list = RunList::update(folder.path(), {{{"a", 0}}, {{"a", 1}}, {{"a", 2}}, {{"a", 3}}});
  const std::vector<HalvingRound> rounds = {{4, 10}, {2, 20}, {1, 40}};
  std::vector<std::string> lines(4);
  const auto put = [&](std::size_t run, int step, double loss, int exit_code) {
    const std::filesystem::path at = list.folder_of(list.runs()[run]);
    std::filesystem::create_directories(at);
    lines[run] += concat(R"({"kind":"train","step":)", step, R"(,"loss":9})", "\n",
                         R"({"kind":"valid","step":)", step, R"(,"loss":)", loss, "}\n");
    put_text(at / "metrics.jsonl", lines[run]);
    write_exit_code(at, exit_code);
  };
  const auto best = [&] {
    const std::vector<SweepRow> rows = sweep_rows(space, list, rounds);
    const SweepRow* row = best_row(space, rows);
    return row == nullptr ? "" : concat(row->run.name, " ", *row->score);
  };
  EXPECT_EQ(best(), "");
  for (std::size_t run = 0; run < 4; ++run) put(run, 10, 0.1 * static_cast<double>(run + 1), 0);
  EXPECT_EQ(best(), "a=0 0.1");
  put(0, 20, 0.7, 0);
  put(1, 20, 0.6, 0);
  EXPECT_EQ(best(), "a=1 0.6");
  put(1, 30, 0.3, 75);
  EXPECT_EQ(best(), "a=1 0.6");
  put(1, 40, 0.9, 0);
  EXPECT_EQ(best(), "a=1 0.9") << "it alone trained so long";
  const std::vector<SweepRow> rows = sweep_rows(space, list, rounds);
  EXPECT_EQ(summary_json(space, rows).at("best"), "a=1");
  EXPECT_NE(summary_text(space, rows).find("best loss 0.9 of the last round: a=1\n"), std::string::npos);
}

}  // namespace
}  // namespace jigsaw
