// What evaluate says of ensembles, in the page: spread beside error, and how the truth ranks among the
// members.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "io/netcdf_writer.h"
#include "report/page.h"
#include "report/written_run.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::count_of;
using testing::faults_of;
using testing::put_text;
using testing::WrittenRun;

/// Of three leads of two members; one variable is missing everywhere.
TEST(ReportScores, OfEnsemblesShowSpreadAndRanks) {
  const WrittenRun run;
  const Json t2m = {{"rmse", {1.0, 1.5}},   {"persistence_rmse", {2.0, 3.0}}, {"crps", {0.5, 0.75}},
                    {"spread", {0.9, 1.2}}, {"spread_skill", {1.1, 0.97}},    {"crps_skill", {0.75, 0.5}}};
  Json scores = {
      {"lead_hours", {6, 12, 18}},
      {"members", 2},
      {"scores", {{"t2m", {{"units", "K"}, {"all", t2m}}}}},
      {"rank_histograms",
       {{"t2m",
         {{"all", {{0.5, 0.25, 0.25}, {0.6, 0.2, 0.2}, {0.125, 0.375, 0.5}}}, {"tropics", {{1, 0, 0}}}}},
        {"sst", {{"all", {{nullptr, nullptr, nullptr}}}}}}}};
  put_text(run.path + "/scores.json", scores.dump());
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  for (const char* measure : {"RMSE", "RMSE of persistence", "spread", "CRPS"})
    EXPECT_EQ(count_of(page, concat("data-label=\"", measure, "\" data-points=\"3\"")), 1) << measure;
  const std::string ratios = page.substr(page.find("<figure id=\"fig-spread-skill\">"));
  EXPECT_NE(ratios.find(">Spread over error: t2m</text>"), std::string::npos);
  EXPECT_NE(ratios.find(">Skill of the CRPS: t2m</text>"), std::string::npos);
  for (const char* name : {"spread_skill", "crps_skill", "persistence_rmse"})
    EXPECT_EQ(page.find(name), std::string::npos) << name << " is no word";
  EXPECT_NE(page.find("The spread over the error is 1 where the spread says"), std::string::npos);
  const std::string ranks = page.substr(page.find("<figure id=\"fig-ranks\">"));
  EXPECT_EQ(count_of(page, ", rank "), 6);
  for (const char* bar :
       {"6 h, rank 0: 0.5<", "6 h, rank 2: 0.25<", "18 h, rank 0: 0.125<", "18 h, rank 2: 0.5<"})
    EXPECT_NE(ranks.find(bar), std::string::npos) << bar;
  // Twice the share is twice as high, and side by side.
  const auto number_of = [&](const char* bar, const std::string& attribute) {
    const std::size_t at = ranks.rfind("<rect", ranks.find(bar));
    return std::strtod(ranks.c_str() + ranks.find(attribute + "=\"", at) + attribute.size() + 2, nullptr);
  };
  EXPECT_NEAR(number_of("6 h, rank 0: 0.5<", "height"), 2 * number_of("6 h, rank 1: 0.25<", "height"), 0.02);
  EXPECT_NEAR(number_of("6 h, rank 0: 0.5<", "x") + number_of("6 h, rank 0: 0.5<", "width"),
              number_of("18 h, rank 0: 0.125<", "x"), 0.02);
  // The line of a flat histogram: from the bottom a third, of bars of a quarter.
  const std::size_t line = ranks.rfind("<line", ranks.find("stroke=\"#222\""));
  const double level = std::strtod(ranks.c_str() + ranks.find("y1=\"", line) + 4, nullptr);
  const double bottom = number_of("6 h, rank 1: 0.25<", "y") + number_of("6 h, rank 1: 0.25<", "height");
  EXPECT_NEAR(bottom - level, number_of("6 h, rank 1: 0.25<", "height") * 4 / 3, 0.05);
  EXPECT_NE(ranks.find("There are none of what has no truth: sst."), std::string::npos);
  EXPECT_NE(ranks.find(">6 h</text>"), std::string::npos) << "colours are named";

  const WrittenRun other;
  const std::string second = other.folder.path() + "/second";
  std::filesystem::rename(other.path, second);
  scores["rank_histograms"]["t2m"]["all"] = {{0.5, 0.25, 0.25}};
  put_text(second + "/scores.json", scores.dump());
  const std::string both = report_page({{run.path, second}, "", "", ""});
  EXPECT_EQ(faults_of(both), std::vector<std::string>());
  for (const char* figure : {"fig-ranks-first", "fig-ranks-second", "fig-spread-skill-second"})
    EXPECT_NE(both.find(concat("<figure id=\"", figure, "\">")), std::string::npos) << figure;
  EXPECT_NE(both.find(">t2m, 6 h</text>"), std::string::npos) << "the one lead stands in the title";

  scores.erase("rank_histograms");
  for (const char* measure : {"spread_skill", "crps_skill"}) scores["scores"]["t2m"]["all"].erase(measure);
  put_text(run.path + "/scores.json", scores.dump());
  const std::string without = report_page({{run.path}, "", "", ""});
  EXPECT_NE(without.find("fig-scores"), std::string::npos);
  EXPECT_EQ(without.find("fig-ranks"), std::string::npos);
  EXPECT_EQ(without.find("fig-spread-skill"), std::string::npos);
}

/// evaluate's NetCDF says the same; a score without unit is not that of the variable.
TEST(ReportScores, OfEnsemblesInNetcdfShowTheSame) {
  const WrittenRun run;
  const std::string path = run.folder.path() + "/scores.nc";
  {
    testing::NetcdfWriter file(path);
    const int region = file.dimension("region", 2), lead = file.dimension("lead_time", 2),
              rank = file.dimension("rank", 3);
    const int regions = file.variable("region", NC_INT, {region}),
              leads = file.variable("lead_time", NC_INT, {lead}),
              rmse = file.variable("t2m_rmse", NC_DOUBLE, {region, lead}),
              ratio = file.variable("t2m_spread_skill", NC_DOUBLE, {region, lead}),
              ranks = file.variable("t2m_rank_histogram", NC_DOUBLE, {region, lead, rank});
    file.text(rmse, "units", "K");
    file.text(ratio, "units", "1");
    file.end();
    file.put(regions, std::vector<double>{0, 1});
    file.put(leads, std::vector<double>{6, 12});
    file.put(rmse, {1, 2, 3, 4});
    file.put(ratio, {0.5, 0.75, 3, 4});
    file.put(ranks, {0.5, 0.25, 0.25, 0.125, 0.375, 0.5, 1, 0, 0, 1, 0, 0});
  }
  const std::string page = report_page({{run.path}, "", path, ""});
  EXPECT_NE(page.find("data-label=\"t2m\" data-points=\"2\" data-last=\"0.75\""), std::string::npos);
  EXPECT_NE(page.find(">RMSE (K)</text>"), std::string::npos);
  EXPECT_NE(page.find("12 h, rank 2: 0.5<"), std::string::npos);
  EXPECT_EQ(page.find("rank 0: 1<"), std::string::npos) << "of another region";
}

/// By lead for each threshold, in the order of these; of one lead by threshold. NetCDF says the same.
TEST(ReportScores, OfThresholdsShowTheirCriticalSuccessIndex) {
  const WrittenRun run;
  const auto csi = [](const Json& list) { return Json{{"all", {{"csi", list}}}}; };
  Json scores = {
      {"lead_hours", {6, 12}},
      {"scores", {{"tp", {{"units", "mm"}, {"all", {{"rmse", {1.0, 1.5}}}}}}}},
      {"thresholds",
       {{"tp", {{"10", csi({0.25, nullptr})}, {"0.5", csi({0.75, 0.625})}, {"2", csi({0.5, 0.375})}}}}}};
  put_text(run.path + "/scores.json", scores.dump());
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  const std::string figure = page.substr(page.find("<figure id=\"fig-thresholds\">"));
  EXPECT_NE(figure.find(">tp (mm)</text>"), std::string::npos);
  const std::size_t first = figure.find("0.5\" data-points=\"2\" data-last=\"0.625\""),
                    second = figure.find("2\" data-points=\"2\" data-last=\"0.375\"");
  EXPECT_NE(second, std::string::npos);
  EXPECT_LT(first, second);
  for (const char* name : {">≥ 0.5</text>", ">≥ 2</text>", ">≥ 10</text>"})
    EXPECT_NE(figure.find(name), std::string::npos) << name;
  scores["thresholds"]["tp"] = {{"0.5", csi({0.75, 0.625})}};
  put_text(run.path + "/scores.json", scores.dump());
  EXPECT_NE(report_page({{run.path}, "", "", ""}).find(">≥ 0.5</text>"), std::string::npos)
      << "one alone is named";
  scores["lead_hours"] = Json::array({0});
  scores["thresholds"]["tp"] = {{"10", csi(Json::array({0.25}))}, {"0.5", csi(Json::array({0.75}))}};
  put_text(run.path + "/scores.json", scores.dump());
  const std::string one = report_page({{run.path}, "", "", ""});
  EXPECT_NE(one.find("data-label=\"CSI\" data-points=\"2\" data-last=\"0.25\""), std::string::npos);

  const std::string path = run.folder.path() + "/scores.nc";
  {
    testing::NetcdfWriter file(path);
    const int region = file.dimension("region", 2), lead = file.dimension("lead_time", 2),
              threshold = file.dimension("tp_threshold", 2);
    const int regions = file.variable("region", NC_INT, {region}),
              leads = file.variable("lead_time", NC_INT, {lead}),
              thresholds = file.variable("tp_threshold", NC_DOUBLE, {threshold}),
              index = file.variable("tp_csi", NC_DOUBLE, {threshold, region, lead});
    file.end();
    file.put(regions, std::vector<double>{0, 1});
    file.put(leads, std::vector<double>{6, 12});
    file.put(thresholds, std::vector<double>{1, 5});
    file.put(index, {0.5, 0.375, 1, 1, 0.25, 0.125, 1, 1});
  }
  const std::string table = report_page({{run.path}, "", path, ""});
  for (const char* last :
       {"1\" data-points=\"2\" data-last=\"0.375\"", "5\" data-points=\"2\" data-last=\"0.125\""})
    EXPECT_NE(table.find(last), std::string::npos) << last;
}

}  // namespace
}  // namespace jigsaw
