// The names of numbers of validations, and which values of them are better.
#include "task/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "task/configuration.h"

namespace jigsaw {
namespace metric_test {

TEST(BestOf, FollowsFromTheMeasure) {
  for (const char* high : {"mask.accuracy", "mask.mean_dice", "mask.foreground_dice", "mask.dice.1",
                           "leads.2.a.b.dice.10", "scan.psnr", "t2m.acc", "t2m.crps_skill"})
    EXPECT_EQ(best_of(high), BestIs::kHighest) << high;
  for (const char* low : {"loss", "t2m.rmse", "t2m.crps", "leads.24.t2m.rmse", "dice.rmse", "z.500.rmse"})
    EXPECT_EQ(best_of(low), BestIs::kLowest) << low;
  EXPECT_EQ(best_of("leads.0.5.t2m.bias"), BestIs::kNearestZero);
  EXPECT_EQ(best_of("mask.dice.1", BestIs::kLowest), BestIs::kLowest);
  EXPECT_EQ(best_of("mask.dice.1", BestIs::kAuto), BestIs::kHighest);
}

TEST(Better, ComparesAsIsSaid) {
  EXPECT_TRUE(better(1, 2, BestIs::kLowest) && better(2, 1, BestIs::kHighest));
  EXPECT_TRUE(better(-1, 2, BestIs::kNearestZero) && better(1, -2, BestIs::kNearestZero));
  for (const BestIs best : {BestIs::kLowest, BestIs::kHighest, BestIs::kNearestZero}) {
    EXPECT_FALSE(better(1, 1, best));
    EXPECT_FALSE(better(std::nan(""), 1, best));
  }
}

TEST(ChoiceRemark, IsOfWhatTakesTheWorstForTheBest) {
  EXPECT_EQ(choice_remark("best_is", "t2m.rmse", BestIs::kLowest), "");
  EXPECT_EQ(choice_remark("best_is", "mask.dice.1", BestIs::kAuto), "");
  EXPECT_EQ(
      choice_remark("checkpoint.best_is", "mask.dice.1", BestIs::kLowest),
      "checkpoint.best_is is \"lowest\", and of mask.dice.1 \"highest\" is better: the worst is taken for "
      "the best; leave it out");
  EXPECT_NE(choice_remark("best_is", "t2m.bias", BestIs::kLowest).find("\"nearest_zero\""),
            std::string::npos);
}

TEST(NumberIn, FindsWhatMetricsHold) {
  const Json line = Json::parse(R"({"loss": 2.5, "step": 3,
    "metrics": {"t2m": {"rmse": 0.5, "bias": null}, "a.b": {"dice": [0.9, null, 0.7], "accuracy": 0.8}},
    "leads": {"12": {"t2m": {"rmse": 0.6}}, "0": {"5.t2m": {"rmse": 3}}, "0.5": {"t2m": {"rmse": 0.7}}}})");
  EXPECT_EQ(number_in(line, "loss"), 2.5);
  EXPECT_EQ(number_in(line, "t2m.rmse"), 0.5);
  EXPECT_EQ(number_in(line, "a.b.accuracy"), 0.8);
  EXPECT_EQ(number_in(line, "a.b.dice.2"), 0.7);
  EXPECT_EQ(number_in(line, "leads.12.t2m.rmse"), 0.6);
  EXPECT_EQ(number_in(line, "leads.0.5.t2m.rmse").has_value(), true);
  EXPECT_TRUE(std::isnan(number_in(line, "t2m.bias").value()));
  EXPECT_TRUE(std::isnan(number_in(line, "a.b.dice.1").value()));
  for (const char* none :
       {"step", "t2m", "t2m.rms", "a.b.dice", "a.b.dice.3", "a.b.dice.x", "leads.6.t2m.rmse", "leads.12", ""})
    EXPECT_EQ(number_in(line, none), std::nullopt) << none;
  for (const char* damaged : {"{}", "[]", R"({"metrics": 3, "leads": [1]})"})
    EXPECT_EQ(number_in(Json::parse(damaged), "leads.12.t2m.rmse"), std::nullopt) << damaged;
}

Configuration forecast(const std::vector<std::string>& changes) {
  Json json = {{"data",
                {{"files", Json::array({"a.nc"})},
                 {"variables", Json::array({"t2m"})},
                 {"train", {"2020-01-01", "2020-01-02"}}}},
               {"model", {{"type", "weathermixer"}, {"patch", {3, 7}}, {"embed_dim", 8}, {"depth", 1}}}};
  for (const std::string& change : changes) apply_override(json, change);
  return parse<Configuration>(json);
}

std::string refusal(const std::string& name, const std::vector<std::string>& changes = {}) {
  try {
    require_number("checkpoint.best", name, forecast(changes), {"t2m", "u10"});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(RequireNumber, KnowsTheLeadsOfValidations) {
  for (const char* name : {"loss", "t2m.rmse", "u10.bias"}) EXPECT_EQ(refusal(name), "") << name;
  EXPECT_EQ(refusal("t2m.rsme"),
            "checkpoint.best: validation gives no \"t2m.rsme\" (did you mean \"t2m.rmse\"?); it gives loss, "
            "t2m.rmse, u10.rmse, t2m.bias, u10.bias");
  EXPECT_NE(refusal("leads.12.t2m.rmse").find("have one lead"), std::string::npos);
  const std::vector<std::string> three = {"validation.rollout=3"}, by_training = {"train.rollout=3"},
                                 short_ones = {"validation.rollout=2", "data.lead_hours=0.5"};
  EXPECT_EQ(refusal("leads.12.t2m.rmse", three), "");
  EXPECT_EQ(refusal("leads.18.u10.bias", by_training), "");
  EXPECT_EQ(refusal("leads.1.t2m.rmse", short_ones), "");
  EXPECT_NE(refusal("leads.24.t2m.rmse", three).find("leads.12 to leads.18"), std::string::npos);
  EXPECT_NE(refusal("leads.6.t2m.rmse", three).find("\"t2m.rmse\" in place of \"leads.6.t2m.rmse\""),
            std::string::npos);
  EXPECT_EQ(lead_name(forecast(short_ones).data, 0), "0.5");
  EXPECT_NE(refusal("leads.12.loss", three), "");
}

}  // namespace metric_test
}  // namespace jigsaw
