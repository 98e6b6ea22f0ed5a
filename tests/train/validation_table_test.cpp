#include "train/validation_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"

namespace jigsaw {
namespace validation_table_test {

using Lines = std::vector<std::string>;

Json score(double rmse, double persistence) {
  return {{"rmse", rmse}, {"bias", 0.0}, {"persistence_rmse", persistence}};
}

ValidationTable forecasts() {
  ValidationTable options;
  options.lead_time = 6 * kHour;
  options.units = {{"t2m", "K"}};
  return options;
}

TEST(ValidationTable, ShowsSkillAndWhereScoresWent) {
  const ValidationResult before{0.5, {{{"t2m", score(2, 4)}, {"z_500", score(1, 2)}}}};
  const ValidationResult now{0.4, {{{"t2m", score(1, 4)}, {"z_500", score(2.5, 2)}}}};
  EXPECT_EQ(table_of(now, &before, forecasts()),
            (Lines{"  variable   lead       RMSE   change persistence   skill",
                   "  t2m [K]     6 h          1  -50.0%↓           4   0.750",
                   "  z_500       6 h        2.5 +150.0%↑           2  -0.250"}));
  EXPECT_EQ(table_of(now, nullptr, forecasts())[1],
            "  t2m [K]     6 h          1                    4   0.750");
}

TEST(ValidationTable, ColoursSayWhetherItIsBetter) {
  ValidationTable options = forecasts();
  options.terminal.colours = true;
  const ValidationResult before{0.5, {{{"t2m", score(2, 4)}}}}, now{0.4, {{{"t2m", score(1, 4)}}}};
  const std::string better = table_of(now, &before, options)[1], worse = table_of(before, &now, options)[1];
  EXPECT_NE(better.find("\033[32m -50.0%↓\033[0m"), std::string::npos) << better;
  EXPECT_NE(worse.find("\033[31m+100.0%↑\033[0m"), std::string::npos) << worse;
}

TEST(ValidationTable, SkillIsBesideTheBetterOfPersistenceAndClimatology) {
  Json scores = score(1, 4);
  scores["climatology_rmse"] = 2.0;
  const Lines lines = table_of({0.5, {{{"t2m", scores}}}}, nullptr, forecasts());
  EXPECT_EQ(lines[0], "  variable   lead       RMSE   change persistence climatology   skill");
  EXPECT_EQ(lines[1], "  t2m [K]     6 h          1                    4           2   0.500");
}

/// In 80 columns, whatever the size of the numbers.
TEST(ValidationTable, OfMembersShowsWhatTheirSpreadSays) {
  Json scores = score(1.2345e-4, 4.5678e-4);
  scores["climatology_rmse"] = 3e-4;
  scores["crps"] = 5.8112e-5;
  scores["spread"] = 2.3512e-5;
  scores["spread_skill"] = 0.2199;
  const Lines lines = table_of({0.5, {{{"tp_925", scores}}}}, nullptr, forecasts());
  EXPECT_EQ(lines[0], "  variable   lead       RMSE   change   skill       CRPS    spread  ratio");
  EXPECT_EQ(lines[1], "  tp_925      6 h  0.0001234            0.589  5.811e-05  2.35e-05  0.220");
}

TEST(ValidationTable, AVariableWithoutPointsSaysSo) {
  const Lines lines = table_of({0.5, {{{"sst", score(NAN, NAN)}}}}, nullptr, forecasts());
  EXPECT_EQ(lines[1], "  sst         6 h  has no valid point in data.valid");
}

/// Points that persistence has are there, and what is wrong is the model.
TEST(ValidationTable, APredictionThatIsNotFiniteIsNotBlamedOnTheData) {
  EXPECT_EQ(table_of({0.5, {{{"t2m", score(NAN, 4)}}}}, nullptr, forecasts())[1],
            "  t2m [K]     6 h  its prediction is not finite");
  const Json alone = {{"rmse", NAN}};
  EXPECT_EQ(table_of({0.5, {{{"y", alone}}}}, nullptr, {})[1],
            "  y         has no valid point in data.valid, or its prediction is not finite");
  ValidationResult many{0.5, {Json::object()}};
  for (int level = 1; level <= 30; ++level)
    many.leads[0][concat("z_", level)] = score(level < 3 ? NAN : 1, 2);
  const Lines lines = table_of(many, nullptr, forecasts());
  EXPECT_NE(std::ranges::find(lines, "  the predictions of 2 rows are not finite"), lines.end())
      << join(lines, "\n");
}

/// 69 channels at four leads: groups, the worst and the best, on a screen of 80 columns.
TEST(ValidationTable, StaysReadableWithSixtyNineChannels) {
  ValidationResult now{0.5, {}};
  for (int lead = 0; lead < 4; ++lead) {
    Json& scores = now.leads.emplace_back(Json::object());
    for (const char* variable : {"z", "t", "u", "v", "q"}) {
      for (int level = 1; level <= 13; ++level)
        scores[concat(variable, "_", 50 * level)] = score(1 + 0.01 * level, 2 + lead);
    }
    for (const char* variable : {"t2m", "u10", "v10", "msl"}) scores[variable] = score(1, 2);
  }
  now.leads[3]["t2m"] = score(9, 2);
  now.leads[0]["q_300"] = score(0.01, 2);
  const Lines lines = table_of(now, &now, forecasts());
  EXPECT_LT(lines.size(), 26U);
  for (const std::string& line : lines) EXPECT_LE(columns_of(line), 80) << line;
  const std::string all = join(lines, "\n");
  EXPECT_NE(all.find("  z            52 "), std::string::npos) << all;  // 13 levels, 4 leads
  EXPECT_NE(all.find("  worst      lead       RMSE   change"), std::string::npos) << all;
  EXPECT_NE(all.find("\n  t2m [K]    24 h          9"), std::string::npos) << all;
  EXPECT_NE(all.find("all 276 rows stand in metrics.jsonl"), std::string::npos) << all;
  EXPECT_TRUE(lines[lines.size() - 2].starts_with("  q_300       6 h       0.01")) << all;
}

TEST(ValidationTable, OfImagesShowsPsnrAndOfLabelsDice) {
  const ValidationResult image{0.1, {{{"volume", {{"rmse", 3.0}, {"psnr", 31.5}, {"input_psnr", 20.25}}}}}};
  const Lines lines = table_of(image, nullptr, {});
  EXPECT_EQ(lines[0], "  variable    PSNR dB   change   input dB");
  EXPECT_EQ(lines[1], "  volume         31.5               20.25");
  const ValidationResult labels{
      0.1, {{{"mask", {{"accuracy", 0.9}, {"mean_dice", 0.75}, {"dice", {0.5, NAN, 1.0}}}}}}};
  EXPECT_EQ(table_of(labels, nullptr, {})[2], "    accuracy 0.9000, Dice of each class 0.5000 - 1.0000");
  EXPECT_EQ(table_of(labels, nullptr, {.of_regions = true})[2],
            "    accuracy 0.9000, Dice of each region 0.5000 - 1.0000");
}

TEST(ValidationTable, NamesOfLevels) {
  EXPECT_EQ(without_level("t_850"), "t");
  EXPECT_EQ(without_level("2m_temperature_0.5"), "2m_temperature");
  EXPECT_EQ(without_level("mean_sea_level"), "mean_sea_level");
  EXPECT_EQ(without_level("_850"), "_850");
}

}  // namespace validation_table_test
}  // namespace jigsaw
