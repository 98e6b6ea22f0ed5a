// What of a period is scored, and how many leads a table shows, counted by hand.
#include "evaluate/window_coverage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "evaluate/score_table.h"

namespace jigsaw {
namespace window_coverage_test {

/// Days 0, 1, … but for some.
std::vector<Time> days(int first, int last, const std::vector<int>& without = {}) {
  std::vector<Time> times;
  for (int day = first; day <= last; ++day)
    if (std::ranges::find(without, day) == without.end()) times.push_back(day * kDay + 12 * kHour);
  return times;
}

NeededVariable needs(const std::string& name, const std::vector<Time>& offsets, std::vector<Time> there) {
  return {name, offsets,
          [there = std::move(there)](Time time) { return std::ranges::binary_search(there, time); }};
}

TEST(ExpectedTimes, GoOnBeforeBehindAndAcrossGaps) {
  const Period all{0, 10 * kDay - 1};
  EXPECT_EQ(expected_times(days(0, 9), all, kDay), days(0, 9));
  EXPECT_EQ(expected_times(days(2, 6, {4}), all, kDay), days(0, 9));
  EXPECT_EQ(expected_times(days(-5, 20, {4, 5, 6}), all, kDay), days(0, 9));
  // Times of the day that change are no gap of their own.
  std::vector<Time> changed = days(0, 4);
  for (int day = 5; day < 10; ++day) changed.push_back(day * kDay);
  EXPECT_EQ(expected_times(changed, all, kDay), changed);
  EXPECT_TRUE(expected_times(days(20, 30), all, kDay).empty());
}

TEST(WindowCoverage, SaysWhichVariableWindowsAreLeftOutFor) {
  // Of 20 days 18 begin a window of two leads; tas ends with day 11, and days 4 and 5 of tos are missing.
  const std::vector<Time> tas = days(0, 11), tos = days(0, 19, {4, 5});
  const std::vector<NeededVariable> needed = {needs("tas", {0, kDay, 2 * kDay}, tas),
                                              needs("tos", {0, kDay, 2 * kDay}, tos)};
  const std::vector<Time> windows = [&] {
    std::vector<Time> found = days(0, 9, {2, 3, 4, 5});
    return found;
  }();
  const WindowCoverage coverage =
      window_coverage(windows, days(0, 19), {{0, 20 * kDay - 1}}, 2 * kDay, needed);
  EXPECT_EQ(coverage.scored, 6);
  EXPECT_EQ(coverage.of_period, 18);
  ASSERT_EQ(coverage.left_out.size(), 2U);
  EXPECT_EQ(coverage.left_out[0].variables, std::vector<std::string>{"tas"});
  EXPECT_EQ(coverage.left_out[0].windows, 8);  // those of days 10 to 17
  EXPECT_EQ(coverage.left_out[1].variables, std::vector<std::string>{"tos"});
  EXPECT_EQ(coverage.left_out[1].windows, 4);  // those of days 2 to 5
  EXPECT_EQ(coverage.sentence("--period"),
            "of the 18 windows in --period, 12 are left out, for the files lack states that they need: 8 for "
            "tas, 4 for tos");
  EXPECT_EQ(coverage.to_json().at("left_out").at(1), (Json{{"variables", {"tos"}}, {"windows", 4}}));
}

TEST(WindowCoverage, CountsWhatLiesBeyondTheFiles) {
  const std::vector<Time> both = days(0, 9);
  const std::vector<NeededVariable> needed = {needs("a", {0, kDay}, both), needs("b", {0, kDay}, both)};
  const WindowCoverage coverage = window_coverage(days(0, 8), both, {{0, 15 * kDay - 1}}, kDay, needed);
  EXPECT_EQ(coverage.of_period, 14);
  ASSERT_EQ(coverage.left_out.size(), 1U) << "what two variables lack alike is one reason";
  EXPECT_EQ(coverage.left_out[0].variables, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(coverage.left_out[0].windows, 5);
  const WindowCoverage whole = window_coverage(days(0, 8), both, {{0, 10 * kDay - 1}}, kDay, needed);
  EXPECT_EQ(whole.of_period, 9);
  EXPECT_EQ(whole.sentence("data.valid"), "");
}

TEST(ScoreTable, ShowsAtMost24Leads) {
  EXPECT_EQ(shown_leads(24).size(), 24U);
  const std::vector<int> of_many = shown_leads(729);
  EXPECT_LE(of_many.size(), 24U);
  EXPECT_GE(of_many.size(), 10U);
  EXPECT_EQ(of_many.front(), 0);
  EXPECT_EQ(of_many[1], 49) << "lead 50";
  EXPECT_EQ(of_many.back(), 728);
  for (const int leads : {25, 26, 44, 45, 100, 1000, 99'999}) {
    const std::vector<int> shown = shown_leads(leads);
    EXPECT_LE(shown.size(), 24U) << leads;
    EXPECT_GE(shown.size(), 9U) << leads;
    EXPECT_TRUE(std::ranges::adjacent_find(shown, std::greater_equal()) == shown.end()) << leads;
  }
}

}  // namespace window_coverage_test
}  // namespace jigsaw
