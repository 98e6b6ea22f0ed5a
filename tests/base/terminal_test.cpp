// What people see: lines that are broken, coloured, rewritten and kept quiet.
#include "base/terminal.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/progress_bar.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

Terminal terminal(bool rewrites, bool colours = false, int columns = 0) {
  Terminal result;
  result.rewrites = rewrites;
  result.colours = colours;
  result.columns = columns;
  return result;
}

TEST(Terminal, BreaksLinesAtBlanks) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("data: one two three", 10, 2), (Lines{"data: one", "  two", "  three"}));
  EXPECT_EQ(wrapped("data: one two three", 19, 2), Lines{"data: one two three"});
  EXPECT_EQ(wrapped("  indented line", 12, 4), (Lines{"  indented", "    line"}));
  EXPECT_EQ(wrapped("averyveryverylongword b", 10, 2), (Lines{"averyveryverylongword", "  b"}));
  EXPECT_EQ(wrapped("anything at all", 0, 2), Lines{"anything at all"});
  EXPECT_EQ(wrapped("2 × 2 × 2 × 2", 13, 2), Lines{"2 × 2 × 2 × 2"});  // × is two bytes and one column
}

TEST(Terminal, PaintsOnlyWhereThereAreColours) {
  EXPECT_EQ(painted(terminal(true), Colour::kRed, "worse"), "worse");
  const std::string red = painted(terminal(true, true), Colour::kRed, "worse");
  EXPECT_EQ(red, "\033[31mworse\033[0m");
  EXPECT_EQ(without_colours(red), "worse");
  EXPECT_EQ(columns_of(red), 5);
}

/// Tests have no terminal.
TEST(Terminal, OfAProcessWithoutOneIsPlain) {
  const Terminal plain = Terminal::of_process(true);
  EXPECT_FALSE(plain.rewrites || plain.colours);
  EXPECT_EQ(plain.columns, 0);
  EXPECT_TRUE(plain.quiet);
}

TEST(Terminal, AStatusGivesWayToWhatFollows) {
  Log log(true, terminal(true, false, 20));
  ::testing::internal::CaptureStdout();
  log.status("half done");
  log.info("a line that is longer than that");
  log.status("all done");
  log.end_status(true);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "\rhalf done\033[K\r\033[Ka line that is\n  longer than that\n\rall done\033[K\n");
}

TEST(Terminal, QuietMeansLogTxtOnly) {
  const testing::TemporaryFolder folder;
  Terminal quiet = terminal(false);
  quiet.quiet = true;
  Log log(true, quiet);
  log.open(folder.path() + "/log.txt");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  log.info(painted(terminal(true, true), Colour::kGreen, "better"));
  log.warn("careful");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "jigsaw-train: warning: careful\n");
  const std::string text = testing::text_of(folder.path() + "/log.txt");
  EXPECT_NE(text.find("Z better\n"), std::string::npos) << text;
}

std::string bar(bool rewrites, const std::vector<std::pair<double, double>>& time_and_part,
                int columns = 80) {
  Terminal shown = terminal(rewrites);
  shown.columns = columns;
  Log log(true, shown);
  double now = 0;
  ::testing::internal::CaptureStdout();
  {
    ProgressBar bar(log, "statistics", [&] { return now; });
    for (const auto& [time, part] : time_and_part) {
      now = time;
      bar.update(part);
    }
  }
  return ::testing::internal::GetCapturedStdout();
}

TEST(ProgressBar, IsRewrittenOnATerminalAndGoneInTheEnd) {
  EXPECT_EQ(bar(true, {{0.05, 0.1}, {1, 0.25}, {1.05, 0.3}, {3, 1}}),
            "\rstatistics  [######------------------]  25 %  0:03 left\033[K"
            "\rstatistics  [########################]  100 %  0:00 left\033[K\r\033[K");
}

TEST(ProgressBar, IsNoWiderThanTheTerminal) {
  EXPECT_EQ(bar(true, {{1, 0.25}}, 40), "\rstatistics  [##------]  25 %  0:03 left\033[K\r\033[K");
  EXPECT_EQ(bar(true, {{1, 0.25}}, 30), "\rstatistics  25 %  0:03 left\033[K\r\033[K");
  EXPECT_EQ(bar(true, {{1, 0.25}}, 0).size(), bar(true, {{1, 0.25}}, 80).size());
}

TEST(ProgressBar, IsALineEveryFiveSecondsElsewhere) {
  EXPECT_EQ(bar(false, {{1, 0.1}, {6, 0.5}, {8, 0.6}, {11, 0.9}}),
            "statistics: 50 %, 0:06 left\nstatistics: 90 %, 0:01 left\n");
  EXPECT_EQ(bar(false, {{1, 0.5}, {2, 1}}), "");
}

}  // namespace
}  // namespace jigsaw
