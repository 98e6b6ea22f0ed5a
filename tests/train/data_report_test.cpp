// What is said of periods before a run begins.
#include "train/data_report.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace data_report_test {

Time at(const std::string& text) {
  return parse_time(text).value();
}

std::vector<Time> six_hourly(const std::string& first, const std::string& last) {
  std::vector<Time> times;
  for (Time time = at(first); time <= at(last); time += 6 * kHour) times.push_back(time);
  return times;
}

std::vector<std::string> warnings(const std::vector<Time>& times, const char* first, const char* last) {
  return period_warnings(times, parse_dates(first, last).value().in(Calendar::kStandard, "data.train"),
                         "data.train");
}

using Lines = std::vector<std::string>;

TEST(PeriodWarnings, NoneWhereTheFilesCoverIt) {
  const auto times = six_hourly("2020-01-01", "2020-01-31T18:00");
  EXPECT_EQ(warnings(times, "2020-01-01", "2020-01-31"), Lines());
  EXPECT_EQ(warnings(times, "2020-01-05T03:00", "2020-01-06T09:00"), Lines());
  EXPECT_EQ(warnings({at("2020-01-05")}, "2020-01-05", "2020-01-05T00:00"), Lines());
}

TEST(PeriodWarnings, SayWhatTheFilesHoldOfIt) {
  const auto times = six_hourly("2020-01-03", "2020-01-31T18:00");
  EXPECT_EQ(
      warnings(times, "2020-01-01", "2020-01-31"),
      Lines{"data.train (2020-01-01 to 2020-01-31) is not covered by the files, which hold 2020-01-03T00:00 "
            "to 2020-01-31T18:00 of it"});
  EXPECT_EQ(warnings(times, "2020-01-10", "2020-02-01").size(), 1U);
  EXPECT_EQ(warnings(times, "2021-01-01", "2021-01-02"),
            Lines{"data.train (2021-01-01 to 2021-01-02) is not in the files"});
}

TEST(PeriodWarnings, CountGapsAndNameTheLongest) {
  auto times = six_hourly("2020-01-01", "2020-01-31T18:00");
  std::erase(times, at("2020-01-04T06:00"));
  EXPECT_EQ(
      warnings(times, "2020-01-01", "2020-01-31"),
      Lines{"data.train (2020-01-01 to 2020-01-31) has 1 gap in the files, whose times are 6 h apart: from "
            "2020-01-04T00:00 to 2020-01-04T12:00"});
  std::erase_if(times, [](Time time) { return time > at("2020-01-20") && time < at("2020-01-22"); });
  EXPECT_EQ(
      warnings(times, "2020-01-01", "2020-01-31"),
      Lines{"data.train (2020-01-01 to 2020-01-31) has 2 gaps in the files, whose times are 6 h apart: the "
            "longest from 2020-01-20T00:00 to 2020-01-22T00:00"});
  EXPECT_EQ(warnings(times, "2020-01-05", "2020-01-19"), Lines());
}

}  // namespace data_report_test
}  // namespace jigsaw
