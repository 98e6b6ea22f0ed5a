#include "train/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace progress_test {

Terminal rewriting(int columns = 0) {
  Terminal terminal;
  terminal.rewrites = true;
  terminal.columns = columns;
  return terminal;
}

ProgressState state_at(std::int64_t step, std::int64_t steps = 9) {
  ProgressState state{step, steps, "mse", 0.5, 1e-3, 2};
  if (step > 1) state.seconds_left = 3;
  return state;
}

std::string shown(Log& log, const std::vector<std::pair<std::int64_t, double>>& step_and_time) {
  ::testing::internal::CaptureStdout();
  Progress progress(log);
  for (const auto& [step, now] : step_and_time) progress.update(state_at(step), now);
  progress.end_line();
  return ::testing::internal::GetCapturedStdout();
}

TEST(Progress, SaysWhereTheRunStands) {
  ProgressState state{120, 600, "mse", 0.0123456, 1e-3, 45.31, 0.614, std::int64_t{5} << 28, 48.2};
  EXPECT_EQ(
      format_progress(state),
      "step 120/600  loss 0.012346 (mse)  learning rate 1.00e-03  45.3 samples/s  61 % of peak  1.2 GiB  "
      "0:48 left");
  EXPECT_EQ(format_progress({7, 10000, "sum", std::nan(""), 0, 12345}),
            "step     7/10000  loss nan (sum)  learning rate 0.00e+00  1.23e+04 samples/s");
}

/// A line that is longer than the terminal would be broken, and no longer rewritten in place.
TEST(Progress, FitsTheTerminal) {
  const ProgressState state{120, 600, "mse", 0.0123456, 1e-3, 45.31, 0.614, std::int64_t{5} << 28, 48.2};
  EXPECT_EQ(format_progress(state, 81),
            "step 120/600  loss 0.012346  learning rate 1.00e-03  45.3 samples/s  0:48 left");
  for (int columns = 45; columns < 140; ++columns)
    EXPECT_LT(columns_of(format_progress(state, columns)), columns) << columns;
  EXPECT_NE(format_progress(state, 45).find("0:48 left"), std::string::npos);
}

TEST(Progress, PlainLinesComeEveryFewSecondsAndAtBothEnds) {
  Log log(true);
  const std::string line = "/9  loss 0.5 (mse)  learning rate 1.00e-03  2 samples/s";
  EXPECT_EQ(shown(log, {{1, 100}, {2, 101}, {3, 104.9}, {4, 106}, {5, 107}, {9, 108}}),
            concat("step 1", line, "\nstep 4", line, "  0:03 left\nstep 9", line, "  0:03 left\n"));
}

TEST(Progress, ATerminalShowsOneLineRewrittenAndTheLogAPlainOne) {
  const testing::TemporaryFolder folder;
  Log log(true, rewriting());
  log.open(folder.path() + "/log.txt");
  const std::string line = "/9  loss 0.5 (mse)  learning rate 1.00e-03  2 samples/s";
  EXPECT_EQ(shown(log, {{1, 100}, {2, 100.05}, {3, 101}}),
            concat("\rstep 1", line, "\033[K\rstep 3", line, "  0:03 left\033[K\n"));
  const std::string text = testing::text_of(folder.path() + "/log.txt");
  EXPECT_TRUE(text.ends_with("Z step 1" + line + "\n")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
}

TEST(Progress, OtherRanksAndQuietOnesAreSilent) {
  Log silent(false, rewriting());
  EXPECT_EQ(shown(silent, {{1, 0}, {9, 9}}), "");
  Terminal quiet = rewriting();
  quiet.quiet = true;
  Log log(true, quiet);
  EXPECT_EQ(shown(log, {{1, 0}, {9, 9}}), "");
}

}  // namespace progress_test
}  // namespace jigsaw
