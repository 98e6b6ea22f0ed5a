// What evaluate says of ensembles, in the page: spread beside error, and how the truth ranks among the
// members.
#include <gtest/gtest.h>

#include <cmath>
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

/// By scale and by share of members, at the first and the last of three leads. NetCDF says the same.
TEST(ReportScores, OfThresholdsShowFractionsAndReliability) {
  const WrittenRun run;
  const Json of_threshold = {
      {"csi", {0.5, 0.5, 0.5}},
      {"fss_11", {0.75, 0.7, 0.625}},
      {"fss_3", {0.5, 0.4, 0.25}},
      {"observed_frequency", {{0.0, 0.25, 1.0}, {0.1, 0.2, 0.9}, {0.125, nullptr, 0.875}}}};
  const Json scores = {{"lead_hours", {6, 12, 18}},
                       {"scores", {{"tp", {{"units", "mm"}, {"all", {{"rmse", {1.0, 1.5, 2.0}}}}}}}},
                       {"thresholds", {{"tp", {{"0.5", {{"all", of_threshold}}}}}}}};
  put_text(run.path + "/scores.json", scores.dump());
  const std::string path = run.folder.path() + "/scores.nc";
  {
    testing::NetcdfWriter file(path);
    const int region = file.dimension("region", 1), lead = file.dimension("lead_time", 3),
              threshold = file.dimension("tp_threshold", 1), scale = file.dimension("fss_scale", 2),
              members = file.dimension("members_reaching", 3);
    const int regions = file.variable("region", NC_INT, {region}),
              leads = file.variable("lead_time", NC_INT, {lead}),
              scales = file.variable("fss_scale", NC_INT, {scale}),
              thresholds = file.variable("tp_threshold", NC_DOUBLE, {threshold}),
              csi = file.variable("tp_csi", NC_DOUBLE, {threshold, region, lead}),
              fss = file.variable("tp_fss", NC_DOUBLE, {threshold, region, lead, scale}),
              observed =
                  file.variable("tp_observed_frequency", NC_DOUBLE, {threshold, region, lead, members});
    file.end();
    file.put(regions, std::vector<double>{0});
    file.put(leads, std::vector<double>{6, 12, 18});
    file.put(scales, std::vector<double>{3, 11});
    file.put(thresholds, std::vector<double>{0.5});
    file.put(csi, {0.5, 0.5, 0.5});
    file.put(fss, {0.5, 0.75, 0.4, 0.7, 0.25, 0.625});
    file.put(observed, {0.0, 0.25, 1.0, 0.1, 0.2, 0.9, 0.125, std::nan(""), 0.875});
  }
  for (const std::string& file : {std::string(), path}) {
    const std::string page = report_page({{run.path}, "", file, ""});
    EXPECT_EQ(faults_of(page), std::vector<std::string>());
    const std::string fractions = page.substr(page.find("<figure id=\"fig-fss\">")),
                      reliability = page.substr(page.find("<figure id=\"fig-reliability\">"));
    EXPECT_NE(fractions.find(">tp ≥ 0.5"), std::string::npos);
    for (const char* line :
         {"6 h\" data-points=\"2\" data-last=\"0.75\"", "18 h\" data-points=\"2\" data-last=\"0.625\""})
      EXPECT_NE(fractions.find(line), std::string::npos) << line;
    for (const char* line :
         {"6 h\" data-points=\"3\" data-last=\"1\"", "18 h\" data-points=\"3\" data-last=\"0.875\"",
          "reliable\" data-points=\"2\" data-last=\"1\""})
      EXPECT_NE(reliability.find(line), std::string::npos) << line;
    EXPECT_EQ(page.find("12 h\" data-points"), std::string::npos);
  }
}

TEST(ReportScores, TheAnomalyCorrelationIsShownWhereThereIsOne) {
  const WrittenRun run;
  Json scores = {{"lead_hours", {6, 12}},
                 {"scores",
                  {{"t2m", {{"all", {{"rmse", {1.0, 1.5}}, {"acc", {0.875, 0.625}}}}}},
                   {"sst", {{"all", {{"rmse", {1.0, 1.5}}, {"acc", {nullptr, nullptr}}}}}}}}};
  put_text(run.path + "/scores.json", scores.dump());
  const std::string page = report_page({{run.path}, "", "", ""});
  const std::string figure = page.substr(page.find("<figure id=\"fig-acc\">"));
  EXPECT_NE(figure.find(">Anomaly correlation: t2m</text>"), std::string::npos);
  EXPECT_NE(figure.find("data-points=\"2\" data-last=\"0.625\""), std::string::npos);
  scores["scores"].erase("t2m");
  put_text(run.path + "/scores.json", scores.dump());
  EXPECT_EQ(report_page({{run.path}, "", "", ""}).find("fig-acc"), std::string::npos);
}

}  // namespace
}  // namespace jigsaw
