#include "train/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

std::string shown(bool terminal, Log& log,
                  const std::vector<std::pair<std::int64_t, double>>& step_and_time) {
  ::testing::internal::CaptureStdout();
  Progress progress(log, terminal);
  for (const auto& [step, now] : step_and_time) progress.update({step, 9, 0.5, 1e-3, 2}, now);
  progress.end_line();
  return ::testing::internal::GetCapturedStdout();
}

TEST(Progress, Format) {
  EXPECT_EQ(format_progress({120, 600, 0.0123456, 1e-3, 45.31}, 48.2),
            "step 120/600  loss 0.012346  rate 1.00e-03  45.3 samples/s  0:48 left");
  EXPECT_EQ(format_progress({7, 10000, std::nan(""), 0, 12345}, std::nullopt),
            "step     7/10000  loss nan  rate 0.00e+00  1.23e+04 samples/s");
}

TEST(Progress, PlainLinesComeEveryFewSecondsAndAtBothEnds) {
  Log log(true);
  EXPECT_EQ(shown(false, log, {{1, 100}, {2, 101}, {3, 104.9}, {4, 106}, {5, 107}, {9, 108}}),
            "step 1/9  loss 0.5  rate 1.00e-03  2 samples/s\n"
            "step 4/9  loss 0.5  rate 1.00e-03  2 samples/s  0:10 left\n"
            "step 9/9  loss 0.5  rate 1.00e-03  2 samples/s  0:00 left\n");
}

TEST(Progress, ATerminalShowsOneLineRewrittenAndTheLogAPlainOne) {
  const testing::TemporaryFolder folder;
  Log log(true);
  log.open(folder.path() + "/log.txt");
  EXPECT_EQ(shown(true, log, {{1, 100}, {2, 100.05}, {3, 101}}),
            "\rstep 1/9  loss 0.5  rate 1.00e-03  2 samples/s\033[K"
            "\rstep 3/9  loss 0.5  rate 1.00e-03  2 samples/s  0:03 left\033[K\n");
  const std::string text = testing::text_of(folder.path() + "/log.txt");
  EXPECT_TRUE(text.ends_with("Z step 1/9  loss 0.5  rate 1.00e-03  2 samples/s\n")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
}

TEST(Progress, OtherRanksAreSilent) {
  Log silent(false);
  EXPECT_EQ(shown(true, silent, {{1, 0}, {9, 9}}), "");
}

}  // namespace
}  // namespace jigsaw
