// Which variables a first configuration takes where they have different times.
#include "init/first_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jigsaw {
namespace first_times_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

VariableSummary variable(const std::string& name, int hours, int count, int first = 0) {
  VariableSummary result;
  result.name = name;
  for (int i = 0; i < count; ++i) result.times.push_back((first + i * hours) * kHour);
  return result;
}

Names names(const std::vector<VariableSummary>& variables) {
  Names result;
  for (const VariableSummary& each : variables) result.push_back(each.name);
  return result;
}

struct Chosen {
  Names predicted, prescribed, left_out, notices;
  std::size_t times = 0;
};

Chosen choose(const std::vector<VariableSummary>& variables) {
  Chosen result;
  const VariablesByTimes chosen = choose_by_times(variables, result.notices);
  result.predicted = names(chosen.predicted);
  result.prescribed = names(chosen.prescribed);
  result.left_out = chosen.left_out;
  result.times = chosen.times.size();
  return result;
}

const VariableSummary kT2m = variable("t2m", 6, 160);

TEST(FirstTimes, OnesThatAreTheSameAreTakenWithoutAWord) {
  const Chosen chosen = choose({kT2m, variable("u10", 6, 160)});
  EXPECT_THAT(chosen.predicted, ElementsAre("t2m", "u10"));
  EXPECT_EQ(chosen.times, 160U);
  EXPECT_THAT(chosen.notices, IsEmpty());
}

TEST(FirstTimes, AFewThatLackCostNoVariable) {
  const Chosen chosen = choose({kT2m, variable("u10", 6, 159), variable("v10", 6, 140, 60)});
  EXPECT_THAT(chosen.predicted, ElementsAre("t2m", "u10", "v10"));
  EXPECT_EQ(chosen.times, 140U);
  EXPECT_THAT(chosen.notices,
              ElementsAre("of the 160 times of t2m those 140 are used that all of data.variables have",
                          "of the 159 times of u10 those 140 are used that all of data.variables have"));
}

TEST(FirstTimes, OneThatHasFewIsLeftOutAndTold) {
  for (const int first : {0, 600}) {
    const Chosen chosen = choose({kT2m, variable("u10", 6, 60, first)});
    EXPECT_THAT(chosen.predicted, ElementsAre("t2m"));
    EXPECT_THAT(chosen.left_out, ElementsAre("u10"));
    EXPECT_EQ(chosen.times, 160U);
    EXPECT_THAT(chosen.notices, ElementsAre("left out: u10, which has 60 of the 160 times of t2m"));
  }
  EXPECT_THAT(choose({variable("a", 6, 60), variable("u10", 6, 160)}).predicted, ElementsAre("u10"));
  // Of two that share none, or as many of each, the one with more times.
  EXPECT_THAT(choose({variable("a", 12, 20), variable("b", 6, 41, 3)}).predicted, ElementsAre("b"));
  EXPECT_THAT(choose({variable("daily", 24, 20), variable("t2m", 12, 40)}).left_out, ElementsAre("daily"));
  EXPECT_THAT(choose({}).predicted, IsEmpty());
}

TEST(FirstTimes, HourlyFieldsGoWithSixHourlyOnes) {
  const Chosen chosen = choose({kT2m, variable("u10", 1, 960)});
  EXPECT_THAT(chosen.predicted, ElementsAre("t2m", "u10"));
  EXPECT_EQ(chosen.times, 160U);
}

TEST(FirstTimes, WhatIsGivenSeldomOverAllIsPrescribed) {
  for (const int months : {4, 240}) {
    const Chosen chosen = choose({variable("sst", 720, months, -240), kT2m});
    EXPECT_THAT(chosen.predicted, ElementsAre("t2m")) << months;
    EXPECT_THAT(chosen.prescribed, ElementsAre("sst"));
    EXPECT_EQ(chosen.times, 160U);
    EXPECT_THAT(chosen.notices, ElementsAre(HasSubstr("and t2m 160: it is taken as known ahead, linear ")));
  }
  // It ends before t2m does, or begins behind.
  EXPECT_THAT(choose({variable("sst", 720, 2, 0), kT2m}).left_out, ElementsAre("sst"));
  EXPECT_THAT(choose({variable("sst", 720, 4, 6), kT2m}).left_out, ElementsAre("sst"));
}

TEST(FirstTimes, UsualNamesOfOneVariableAreJoined) {
  Names notices;
  const std::vector<VariableSummary> joined =
      join_by_names({variable("2t", 6, 80, 480), variable("t2m", 6, 80), variable("u10", 6, 160)}, notices);
  EXPECT_THAT(names(joined), ElementsAre("t2m", "u10"));
  EXPECT_EQ(joined[0].times, kT2m.times);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("2t and t2m are one variable by their usual names")));
  // Not those of the same times, other levels, other units or other quantities.
  VariableSummary celsius = variable("2t", 6, 80, 960), levels = celsius;
  celsius.units = "degC";
  levels.levels = {2};
  for (const VariableSummary& other : {variable("tas", 6, 160), celsius, levels, variable("d2m", 6, 9, 960)})
    EXPECT_EQ(join_by_names({kT2m, other}, notices).size(), 2U) << other.name;
  EXPECT_EQ(notices.size(), 1U);
}

}  // namespace first_times_test
}  // namespace jigsaw
