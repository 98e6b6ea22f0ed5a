// What is said of a run that goes on by another schedule.
#include "train/changed_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"

namespace jigsaw {
namespace changed_schedule_test {

Configuration with(const std::vector<std::string>& changes) {
  Json json = {{"data",
                {{"files", Json::array({"a.nc"})},
                 {"variables", Json::array({"t2m"})},
                 {"train", {"2020-01-01", "2020-01-02"}}}},
               {"model", {{"type", "weathermixer"}, {"patch", {3, 7}}, {"embed_dim", 8}, {"depth", 1}}},
               {"optimizer", {{"learning_rate", 0.5}}}};
  for (const std::string& change : changes) apply_override(json, change);
  return parse<Configuration>(json);
}

/// Of a run whose checkpoint of `step` was one of so many steps, and that has more now.
std::string remark(const std::vector<std::string>& before, const std::vector<std::string>& now, int step,
                   int steps, int more) {
  const Json extra = {{"configuration", to_json(with(before))}, {"schedule", {{"steps", steps}}}};
  return changed_schedule(extra, with(now), step, more);
}

/// Rates of cosine as in its formula, (1 + cos(pi (s - 1)/S))/2.
TEST(ChangedSchedule, SaysWhereTheRateJumps) {
  const double last = 0.25 * (1 + std::cos(std::acos(-1.0) * 11 / 12));
  EXPECT_EQ(
      remark({}, {}, 12, 12, 24),
      concat(
          "the schedule is another one from here on, of 24 steps in place of 12: the learning rate of step "
          "12 was ",
          last, ", and that of step 13 is 0.25"));
  EXPECT_EQ(remark({}, {}, 12, 24, 24), "");
  EXPECT_EQ(remark({}, {}, 24, 24, 24), "") << "nothing is left to do";
  EXPECT_EQ(remark({}, {}, 1000, 100000, 100001), "") << "it hardly differs";
  EXPECT_NE(remark({}, {"optimizer.learning_rate=0.1"}, 2, 24, 24), "");
  EXPECT_NE(remark({}, {"schedule.type=constant"}, 12, 24, 24).find("from here on: the learning rate"),
            std::string::npos);
}

TEST(ChangedSchedule, SchedulesThatKnowNoEndGoOn) {
  const std::vector<std::string> constant = {"schedule.type=constant"},
                                 steps = {R"(schedule={"type":"steps","at":[6,18]})"},
                                 cooled = {R"(schedule={"type":"constant","cooldown_steps":4})"};
  EXPECT_EQ(remark(constant, constant, 12, 12, 24), "");
  EXPECT_EQ(remark(steps, steps, 12, 12, 24), "");
  EXPECT_EQ(remark(cooled, cooled, 8, 12, 24).empty(), false);
  EXPECT_EQ(remark(cooled, cooled, 7, 12, 24), "");
}

TEST(ChangedSchedule, OfWhatCannotBeReadNothingIsSaid) {
  for (const char* extra : {"{}", "[]", "null", R"({"configuration": {}, "schedule": {"steps": 3}})"})
    EXPECT_EQ(changed_schedule(Json::parse(extra), with({}), 2, 9), "") << extra;
}

}  // namespace changed_schedule_test
}  // namespace jigsaw
