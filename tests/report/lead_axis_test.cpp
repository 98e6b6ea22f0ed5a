// How figures say leads.
#include "report/lead_axis.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace lead_axis_test {

TEST(LeadAxis, IsInWhatLeadsAre) {
  const LeadAxis hours(LeadCount::kHours, {6, 12, 24}), days(LeadCount::kHours, {24, 48, 240}),
      months(LeadCount::kMonths, {720, 2160}), steps(LeadCount::kSteps, {1, 4}), now(LeadCount::kHours, {0});
  EXPECT_EQ(hours.label(), "lead, hours");
  EXPECT_EQ(hours.places(), (std::vector<double>{6, 12, 24}));
  EXPECT_EQ(hours.text(24), "24 h");
  EXPECT_EQ(hours.text(0.25), "15 min");
  EXPECT_EQ(days.label(), "lead, days");
  EXPECT_EQ(days.places(), (std::vector<double>{1, 2, 10}));
  EXPECT_EQ(days.text(24), "1 day");
  EXPECT_EQ(days.text(240), "10 days");
  EXPECT_EQ(months.label(), "lead, months");
  EXPECT_EQ(months.places(), (std::vector<double>{1, 3}));
  EXPECT_EQ(months.text(2160), "3 months");
  EXPECT_EQ(steps.label(), "lead, steps");
  EXPECT_EQ(steps.text(4), "4 steps");
  EXPECT_EQ(now.label(), "lead, hours");
}

TEST(LeadAxis, IsThatOfTheRun) {
  const auto of = [](const char* config) { return lead_count_of(Json::parse(config)); };
  EXPECT_EQ(of("null"), LeadCount::kHours);
  EXPECT_EQ(of(R"({"data": {"time_step": 6, "dims": []}})"), LeadCount::kHours);
  EXPECT_EQ(of(R"({"data": {"time_step": "month"}})"), LeadCount::kMonths);
  EXPECT_EQ(of(R"({"data": {"task": "forecast", "dims": ["time", "height"]}})"), LeadCount::kSteps);
  EXPECT_EQ(of(R"({"data": {"task": "map", "dims": ["sample", "height"]}})"), LeadCount::kHours);
  EXPECT_EQ(lead_count_of_scores({{"lead_hours", {720}}, {"lead_months", {1}}}), LeadCount::kMonths);
}

}  // namespace lead_axis_test
}  // namespace jigsaw
