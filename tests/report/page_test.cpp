// The page of a run: each figure is there, its numbers are those of the files, nothing is loaded from
// anywhere, and what is not there yet is no error.
#include "report/page.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "io/netcdf_writer.h"
#include "report/examples.h"
#include "report/run_record.h"
#include "report/svg.h"
#include "report/written_run.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::count_of;
using testing::faults_of;
using testing::put_text;
using testing::text_of;
using testing::WrittenRun;

TEST(ReportPage, ShowsEachFigureWithTheNumbersOfTheFiles) {
  const WrittenRun run;
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  for (const char* figure :
       {"fig-loss", "fig-learning-rate", "fig-norm", "fig-skill", "fig-lead-t2m", "fig-levels", "fig-table",
        "fig-map-t2m", "fig-latitude", "fig-spectra", "fig-throughput", "fig-peak", "fig-step", "fig-run",
        "fig-memory", "fig-sent", "fig-read", "fig-mesh-field", "fig-mesh-weights"})
    EXPECT_NE(page.find(concat("<figure id=\"", figure, "\">")), std::string::npos) << figure;
  // The torn fourth step does not count.
  EXPECT_NE(page.find("data-label=\"training\" data-points=\"3\" data-last=\"0.3333\""), std::string::npos);
  EXPECT_NE(page.find("data-label=\"t2m\" data-points=\"2\" data-last=\"0.75\""),
            std::string::npos);  // 1 - 1 / 4
  EXPECT_NE(page.find("<td>t_850</td><td>first</td><td>RMSE</td><td>3</td>"), std::string::npos);
  EXPECT_NE(page.find("RMSE of what is shown 3 K"), std::string::npos);
  EXPECT_NE(page.find("rank 0: parameters 1.0 MiB"), std::string::npos);
  EXPECT_NE(page.find("rank 1: exchange 1.0 KiB"), std::string::npos);
  EXPECT_NE(page.find("waiting for data 100 ms"), std::string::npos);
  EXPECT_NE(page.find("rank 1: from [0, 10, 0, 0], 1 × 9 × 36 × 1"), std::string::npos);
  EXPECT_NE(page.find("rank 1: 12 elements of the box from [2, 0], 2 × 6"), std::string::npos);
  EXPECT_EQ(count_of(page, "class=\"coast\""), 3);  // forecast, truth, difference
  EXPECT_NE(page.find("jigsaw-train &lt;x&gt;"), std::string::npos);
  EXPECT_NE(page.find("<td class=\"time\">2026-01-02T03:04:05Z</td>"), std::string::npos);
  EXPECT_NE(page.find(">RMSE (K)</text>"), std::string::npos) << "by lead, as the maps say";
  EXPECT_EQ(count_of(page, "<div class=\"wide\"><table>"), 2);
}

Json config_of(const std::string& run) {
  return Json::parse(text_of(run + "/config.json"));
}

/// Of several runs the table says in which keys they differ, and which went best.
TEST(ReportPage, RunsBesideEachOtherSayInWhatTheyDiffer) {
  const WrittenRun first, second;
  Json config = config_of(first.path);
  config["optimizer"] = {{"learning_rate", 0.001}, {"weight_decay", 0.1}};
  put_text(first.path + "/config.json", config.dump());
  config["optimizer"]["learning_rate"] = 0.01;
  config["output"] = "elsewhere";
  config["train"] = {{"epochs", 2}};
  put_text(second.path + "/config.json", config.dump());
  const Json better = {{"kind", "valid"}, {"step", 2}, {"loss", 0.125}, {"metrics", Json::object()}};
  put_text(second.path + "/metrics.jsonl", better.dump() + "\n" + text_of(second.path + "/metrics.jsonl"));
  const std::string page = report_page({{first.path, second.path}, "", "", ""});
  EXPECT_NE(page.find("<th>state</th><th>optimizer.learning_rate</th><th>train.epochs</th><th>model</th>"),
            std::string::npos)
      << "neither the output nor the decay, which is one";
  EXPECT_NE(page.find("<td>over</td><td>0.001</td><td>-</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>over</td><td>0.01</td><td>2</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>0.25</td><td>0.25 at step 2</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>0.25</td><td>0.125 at step 2, the lowest</td>"), std::string::npos);
  config["loss"] = {{"type", "l1"}};
  put_text(second.path + "/config.json", config.dump());
  EXPECT_EQ(report_page({{first.path, second.path}, "", "", ""}).find(", the lowest</td>"), std::string::npos)
      << "of different losses none is";
  // Nor where validations are over as many leads as training, and these differ.
  Json rollouts = config_of(first.path);
  rollouts["validation"] = {{"rollout", nullptr}};
  for (const int leads : {1, 2}) {
    rollouts["train"] = {{"rollout", 1}};
    put_text(first.path + "/config.json", rollouts.dump());
    rollouts["train"]["rollout"] = leads;
    put_text(second.path + "/config.json", rollouts.dump());
    const std::string both = report_page({{first.path, second.path}, "", "", ""});
    EXPECT_EQ(both.find(", the lowest</td>") != std::string::npos, leads == 1) << leads;
  }
}

TEST(ReportPage, OfManyKeysInWhichRunsDifferSomeAreColumns) {
  const WrittenRun first, second;
  Json config = config_of(first.path);
  for (int i = 0; i < 10; ++i) config["model"][concat("key", i)] = 1;
  put_text(first.path + "/config.json", config.dump());
  for (int i = 0; i < 10; ++i) config["model"][concat("key", i)] = 2;
  put_text(second.path + "/config.json", config.dump());
  const std::string page = report_page({{first.path, second.path}, "", "", ""});
  EXPECT_NE(page.find("<th>model.key7</th><th>model</th>"), std::string::npos);
  EXPECT_NE(page.find("Runs also differ in model.key8, model.key9."), std::string::npos);
}

/// Nothing makes texts invisible, or headings and dates part.
TEST(ReportPage, IsShownOnWhiteAndPrintedInOnePiece) {
  const WrittenRun run;
  const std::string page = report_page({{run.path}, "", "", ""});
  for (const char* part : {"<meta name=\"color-scheme\" content=\"only light\">", "h1,h2{break-after:avoid}",
                           "break-inside:avoid", ".time{white-space:nowrap}"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(count_of(page, "style=\"background:#fff\""), count_of(page, "role=\"img\""));
}

/// A summary of so many ranks, of which the last hold, send and read most.
Json summary_of(int ranks) {
  Json summary = WrittenRun::summary();
  const Json first = summary.at("ranks").at(0);
  summary["ranks"] = Json::array();
  for (int rank = 0; rank < ranks; ++rank) {
    Json& each = summary["ranks"].emplace_back(first);
    each["rank"] = rank;
    each["peak_memory_bytes"] = (64 + rank) << 20;
    each["sent_bytes"] = {{"exchange", (1 + rank) << 10}};
    each["file_bytes_read"] = (1 + (rank + 7) % ranks) << 10;
  }
  return summary;
}

TEST(ReportPage, OfManyRanksTheLargestAreShownAndWhereTheOthersLie) {
  const WrittenRun run;
  const auto page_of = [&](int ranks) {
    put_text(run.path + "/summary.json", summary_of(ranks).dump());
    return report_page({{run.path}, "", "", ""});
  };
  const std::string all = page_of(32);
  EXPECT_EQ(count_of(all, ": exchange "), 32);
  EXPECT_LT(all.find("rank 0: exchange"), all.find("rank 31: exchange")) << "in their order";
  EXPECT_EQ(all.find("Shown are"), std::string::npos);
  const std::string page = page_of(64);
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  for (const char* part : {": parameters ", ": exchange ", ": files "})
    EXPECT_EQ(count_of(page, part), 32) << part;
  EXPECT_LT(page.find("rank 63: parameters"), page.find("rank 32: parameters"));
  EXPECT_EQ(page.find("rank 31: parameters"), std::string::npos);
  EXPECT_NE(page.find("rank 56: files 64.0 KiB"), std::string::npos) << "not those that hold most";
  EXPECT_EQ(page.find("rank 57: files"), std::string::npos);
  EXPECT_NE(page.find("What each rank held. Shown are the 32 of 64 ranks that have most; the rank in the "
                      "middle of all has 95.0 MiB, the last 64.0 MiB. All stand in summary.json."),
            std::string::npos);
}

/// None hides another.
TEST(ReportPage, RunsOnManyRanksShareTheBars) {
  const WrittenRun first, second;
  for (const WrittenRun* run : {&first, &second})
    put_text(run->path + "/summary.json", summary_of(40).dump());
  std::filesystem::rename(second.path, second.folder.path() + "/second");
  const std::string page = report_page({{first.path, second.folder.path() + "/second"}, "", "", ""});
  EXPECT_EQ(count_of(page, ": exchange "), 32);
  for (const char* name : {"first rank 39: exchange", "second rank 39: exchange", "second rank 24: exchange"})
    EXPECT_NE(page.find(name), std::string::npos) << name;
  EXPECT_NE(page.find("Shown are, of runs on more ranks, the 16 that have most."), std::string::npos);
}

/// As validations have it, whose scores say it; else of what is shown, and the caption says so.
TEST(ReportPage, ThePeakOfPsnrIsThatOfValidations) {
  const WrittenRun run;
  Examples examples = WrittenRun::examples();
  ExamplePlane& plane = examples.planes[0];
  plane.units = "";
  plane.truth.assign(plane.truth.size(), 5);
  plane.truth[0] = 50;
  plane.predicted = plane.input = plane.truth;
  for (float& value : plane.predicted) value += 1;
  for (float& value : plane.input) value += 10;
  write_examples(examples, run.path);
  EXPECT_NE(
      report_page({{run.path}, "", "", ""})
          .find("RMSE of what is shown 1; PSNR 33.06 dB, of the input 13.06 dB (peak 45, the range of what "
                "is shown)"),
      std::string::npos);
  const Json scores = {{"t2m", {{"rmse", 2.0}, {"psnr", 20 * std::log10(1000 / 2.0)}}}};
  put_text(run.path + "/metrics.jsonl",
           Json{{"kind", "valid"}, {"step", 3}, {"loss", 1}, {"metrics", scores}}.dump() + "\n");
  EXPECT_NE(report_page({{run.path}, "", "", ""})
                .find("PSNR 60 dB, of the input 40 dB (peak 1000, as in validations)"),
            std::string::npos);
}

TEST(ReportPage, WholeNumbersAreShownInFull) {
  EXPECT_EQ(short_number(12000), "12000");
  EXPECT_EQ(short_number(-123456), "-123456");
  EXPECT_EQ(short_number(12000000), "1.2e+07");
  EXPECT_EQ(short_number(12345.6), "1.235e+04");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(-0.0), "0");
}

TEST(ReportPage, LoadsNothing) {
  const WrittenRun run;
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
  EXPECT_EQ(count_of(page, "http"), count_of(page, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count_of(page, "href=\""), count_of(page, "href=\"data:image/png;base64,"));
}

TEST(ReportPage, TakesTheScoresOfEvaluate) {
  const WrittenRun run;
  const Json scores = {
      {"lead_hours", {6, 12}},
      {"scores",
       {{"t2m",
         {{"units", "K"},
          {"all",
           {{"rmse", {1.0, 1.5}},
            {"persistence_rmse", {2.0, nullptr}},
            {"forecast_mean", {288.0, 288.5}},
            {"truth_mean", {288.0, 287.5}}}}}}}},
      {"spectra",
       {{"t2m",
         {{"forecast", {{9.0, 3.0, 1.0}, {9.0, 2.0, 0.5}}}, {"truth", {{9.0, 3.0, 2.0}, {9.0, 3.0, 2.0}}}}},
        // Missing over land, in every row.
        {"sst", {{"forecast", {{nullptr, nullptr}}}, {"truth", {{nullptr, nullptr}}}}}}}};
  put_text(run.path + "/scores.json", scores.dump());
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_NE(page.find("fig-scores"), std::string::npos);
  EXPECT_NE(page.find("data-label=\"RMSE\" data-points=\"2\" data-last=\"1.5\""), std::string::npos);
  EXPECT_NE(page.find("fig-means"), std::string::npos);
  EXPECT_NE(page.find("data-label=\"forecast\" data-points=\"2\" data-last=\"288.5\""), std::string::npos);
  EXPECT_NE(page.find("data-label=\"truth\" data-points=\"2\" data-last=\"287.5\""), std::string::npos);
  EXPECT_NE(page.find("data-label=\"last lead\" data-points=\"2\" data-last=\"0.5\""), std::string::npos);
  EXPECT_EQ(page.find("<title>sst</title>"), std::string::npos) << "a plot of nothing";
  EXPECT_NE(page.find("There are none of what has missing points in every row: sst."), std::string::npos);
  EXPECT_NE(page.find(">RMSE (K)</text>"), std::string::npos);
  EXPECT_NE(page.find("lead, hours</text>"), std::string::npos);
  Json of_months = scores;
  of_months["lead_hours"] = {720, 1440};
  of_months["lead_months"] = {1, 2};
  put_text(run.path + "/scores.json", of_months.dump());
  EXPECT_NE(report_page({{run.path}, "", "", ""}).find("lead, months</text>"), std::string::npos);
  Json short_of_leads = scores;
  short_of_leads["scores"]["t2m"]["all"]["rmse"] = {1.0};
  put_text(run.path + "/scores.json", short_of_leads.dump());
  EXPECT_NE(
      report_page({{run.path}, "", "", ""}).find("data-label=\"RMSE\" data-points=\"2\" data-last=\"nan\""),
      std::string::npos);
  put_text(run.path + "/scores.json", "{\"scores\":{}}");
  EXPECT_THROW(report_page({{run.path}, "", "", ""}), DataError);
}

/// Of many levels one each, and no variable is left out for it.
TEST(ReportPage, ShowsEveryVariableOfScoresOnManyLevels) {
  const WrittenRun run;
  Json scores = Json::parse(R"({"lead_hours":[6],"scores":{},"spectra":{}})");
  for (const char* variable : {"q", "t", "z"}) {
    for (const char* level : {"100", "1000", "500", "850"}) {
      const std::string name = concat(variable, "_", level);
      scores["scores"][name] = Json::parse(R"({"all":{"rmse":[1]}})");
      scores["spectra"][name] = Json::parse(R"({"forecast":[[9,3,1]],"truth":[[9,3,2]]})");
    }
  }
  scores["scores"]["t2m"] = Json::parse(R"({"all":{"rmse":[1]}})");
  put_text(run.path + "/scores.json", scores.dump());
  const std::string page = report_page({{run.path}, "", "", ""}),
                    plots = page.substr(page.find("<figure id=\"fig-spectra"),
                                        page.find("<h2>Time") - page.find("<figure id=\"fig-spectra"));
  for (const char* variable : {"q_500", "t_500", "z_500"})
    EXPECT_EQ(count_of(plots, concat("<title>", variable, "</title>")), 2) << variable;
  EXPECT_EQ(count_of(plots, "<title>t2m</title>"), 1);
  EXPECT_EQ(count_of(plots, "_850"), 0);
  EXPECT_EQ(count_of(plots, "the one nearest to 500 is shown; " + run.path + "/scores.json has all."), 2);
}

/// A tile is scored in part: its spectra are those of what has a truth. Beside rows without one there are
/// none.
TEST(ReportPage, SpectraOfImagesAreOfWhatIsScored) {
  const WrittenRun run;
  Examples examples = WrittenRun::examples();
  examples.lead_time = 0;
  examples.grid.geographic = examples.grid.periodic = false;
  ExamplePlane& plane = examples.planes[0];
  plane.input = plane.truth;
  for (int i = 0; i < 19 * 36; ++i) {
    if (i % 36 >= 30) plane.truth[static_cast<std::size_t>(i)] = NAN;
  }
  examples.planes.push_back(plane);
  examples.planes[1].name = "holes";
  for (int i = 0; i < 19 * 36; ++i) {
    if (i % 36 == 7) examples.planes[1].truth[static_cast<std::size_t>(i)] = NAN;
  }
  write_examples(examples, run.path);
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_NE(page.find("data-label=\"truth\" data-points=\"15\""), std::string::npos) << "of 30 columns";
  EXPECT_NE(page.find(">wave number along rows</text>"), std::string::npos);
  EXPECT_EQ(page.find("zonal"), std::string::npos);
  EXPECT_NE(page.find("There are none of what has missing points in every row: holes."), std::string::npos);
}

/// Coordinates have the names that the input gives them; those of a projection say where no point lies.
TEST(ReportPage, ShowsForecastsOnAnyGrid) {
  const WrittenRun run;
  for (const auto& [rows, columns] : {std::pair("lat", "lon"), std::pair("y", "x")}) {
    const std::string path = run.folder.path() + "/forecast.nc";
    {
      testing::NetcdfWriter file(path);
      const int time = file.dimension("time", 1), lead = file.dimension("lead_time", 2),
                y = file.dimension(rows, 2), x = file.dimension(columns, 3);
      const int leads = file.variable("lead_time", NC_INT, {lead}),
                of_y = file.variable(rows, NC_DOUBLE, {y}), of_x = file.variable(columns, NC_DOUBLE, {x}),
                t2m = file.variable("t2m", NC_DOUBLE, {time, lead, y, x});
      file.end();
      const double scale = rows == std::string("y") ? 3000 : 10;
      file.put(leads, std::vector<double>{6, 12});
      file.put(of_y, {scale, 2 * scale});
      file.put(of_x, {scale, 2 * scale, 3 * scale});
      file.put(t2m, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    }
    const std::string page = report_page({{run.path}, "", "", path});
    EXPECT_NE(page.find("fig-forecast-t2m"), std::string::npos) << rows;
    EXPECT_NE(page.find("t2m, 12 h"), std::string::npos) << rows;
  }
}

TEST(ReportPage, ForecastsSayTheirLevelStartAndLead) {
  const WrittenRun run;
  const std::string path = run.folder.path() + "/forecast.nc";
  const std::vector<const char*> names = {"a", "b", "c", "d", "e"};
  {
    testing::NetcdfWriter file(path);
    const int time = file.dimension("time", 1), lead = file.dimension("lead_time", 1),
              level = file.dimension("level", 3), y = file.dimension("lat", 2), x = file.dimension("lon", 2);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              leads = file.variable("lead_time", NC_INT, {lead}),
              levels = file.variable("level", NC_DOUBLE, {level}),
              of_y = file.variable("lat", NC_DOUBLE, {y}), of_x = file.variable("lon", NC_DOUBLE, {x});
    file.text(times, "units", "hours since 2021-02-01");
    file.text(levels, "units", "hPa");
    std::vector<int> variables;
    for (const char* name : names)
      variables.push_back(file.variable(name, NC_DOUBLE, {time, lead, level, y, x}));
    file.end();
    file.put(times, std::vector<double>{6});
    file.put(leads, std::vector<double>{12});
    file.put(levels, {500, 850, 1000});
    file.put(of_y, {1, 2});
    file.put(of_x, {1, 2});
    for (const int variable : variables) file.put(variable, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  }
  const std::string page = report_page({{run.path}, "", "", path});
  EXPECT_NE(page.find(">a, level 500 hPa, 12 h</text>"), std::string::npos);
  EXPECT_NE(page.find("a, level 500 hPa: the forecast from 2021-02-01"), std::string::npos);
  EXPECT_NE(page.find("The file has further levels."), std::string::npos);
  EXPECT_EQ(page.find("fig-forecast-e"), std::string::npos);
  EXPECT_NE(page.find(path + " has 1 more variable."), std::string::npos);
  EXPECT_NE(testing::error_of<DataError>([&] {
              report_page({{run.path}, "", "", "x.nii.gz"});
            }).find("x.nii.gz holds images; --forecast takes forecasts"),
            std::string::npos);
}

TEST(ReportPage, ShowsTimeSeriesByTheirDates) {
  const WrittenRun run;
  const std::string path = run.folder.path() + "/series.nc";
  {
    testing::NetcdfWriter file(path);
    const int time = file.dimension("time", 2), y = file.dimension("lat", 2), x = file.dimension("lon", 2);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              start = file.variable("forecast_reference_time", NC_DOUBLE, {}),
              of_y = file.variable("lat", NC_DOUBLE, {y}), of_x = file.variable("lon", NC_DOUBLE, {x}),
              t2m = file.variable("t2m", NC_DOUBLE, {time, y, x});
    for (const int variable : {times, start}) {
      file.text(variable, "units", "hours since 2021-02-28");
      file.text(variable, "calendar", "360_day");
    }
    file.end();
    file.put(times, std::vector<double>{30, 54});
    file.put(start, std::vector<double>{6});
    file.put(of_y, {1, 2});
    file.put(of_x, {1, 2});
    file.put(t2m, {1, 2, 3, 4, 5, 6, 7, 8});
  }
  const std::string page = report_page({{run.path}, "", "", path});
  EXPECT_NE(page.find(">t2m, 2021-02-29T06:00</text>"), std::string::npos);
  EXPECT_NE(page.find(">t2m, 2021-02-30T06:00</text>"), std::string::npos);
  EXPECT_NE(page.find("t2m: the forecast from 2021-02-28T06:00"), std::string::npos);
}

/// On data 2 × domain 2 ranks 0 and 2 hold the same rows of other samples, and store the same weights.
TEST(ReportPage, ShowsEveryRankOfAMeshWithReplicas) {
  const WrittenRun run;
  Json placement = WrittenRun::placement();
  placement["ranks"] = 4;
  placement["field"] = {{{0, 0, 0, 0}, {1, 10, 36, 1}},
                        {{0, 10, 0, 0}, {1, 9, 36, 1}},
                        {{1, 0, 0, 0}, {1, 10, 36, 1}},
                        {{1, 10, 0, 0}, {1, 9, 36, 1}}};
  const Json stored = placement["stored"];
  placement["stored"] = {stored[0], stored[1], stored[0], stored[1]};
  put_text(run.path + "/placement.json", placement.dump());
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_NE(page.find("ranks 0, 2: 12 elements of the box from [0, 0], 2 × 6"), std::string::npos);
  EXPECT_NE(page.find(">1, 3</text>"), std::string::npos);
  // Rectangles of the field: x and y of rank 0 differ from those of rank 2, which none covers.
  const std::size_t begin = page.find("fig-mesh-field");
  std::set<std::string> places;
  for (const char* rank : {"rank 0: from", "rank 1: from", "rank 2: from", "rank 3: from"}) {
    const std::size_t rectangle = page.rfind("<rect", page.find(rank, begin));
    places.insert(page.substr(rectangle, page.find(" width", rectangle) - rectangle));
  }
  EXPECT_EQ(places.size(), 4U);
  const auto left_of = [&](const char* rank) {
    return std::strtod(page.c_str() + page.rfind("<rect x=\"", page.find(rank, begin)) + 9, nullptr);
  };
  EXPECT_GE(left_of("rank 2: from"), left_of("rank 0: from") + 240) << "beside it";
}

/// The same field with its rows in either order is the same picture, whether latitudes or the projection's y
/// say which is north.
TEST(ReportPage, ShowsProjectedForecastsWithNorthAbove) {
  const WrittenRun run;
  const auto picture = [&](bool northwards, bool latitudes) {
    const std::string path = run.folder.path() + "/forecast.nc";
    {
      testing::NetcdfWriter file(path);
      const int time = file.dimension("time", 1), lead = file.dimension("lead_time", 1),
                y = file.dimension("y", 2), x = file.dimension("x", 2);
      const int leads = file.variable("lead_time", NC_INT, {lead}), of_y = file.variable("y", NC_DOUBLE, {y}),
                t2m = file.variable("t2m", NC_DOUBLE, {time, lead, y, x});
      const int latitude = latitudes ? file.variable("place", NC_DOUBLE, {y, x}) : -1;
      if (latitudes) {
        file.text(latitude, "standard_name", "latitude");
      } else {
        file.text(of_y, "standard_name", "projection_y_coordinate");
      }
      file.end();
      file.put(leads, std::vector<double>{6});
      file.put(of_y, northwards ? std::vector<double>{1, 2} : std::vector<double>{2, 1});
      if (latitudes)
        file.put(latitude,
                 northwards ? std::vector<double>{50, 50, 51, 51} : std::vector<double>{51, 51, 50, 50});
      file.put(t2m, northwards ? std::vector<double>{3, 4, 1, 2} : std::vector<double>{1, 2, 3, 4});
    }
    const std::string page = report_page({{run.path}, "", "", path});
    const std::size_t at = page.find("href=\"", page.find("fig-forecast-t2m"));
    return page.substr(at, page.find('"', at + 6) - at);
  };
  EXPECT_EQ(picture(true, true), picture(false, true));
  EXPECT_EQ(picture(true, false), picture(false, false));
  EXPECT_EQ(picture(true, true), picture(true, false));
}

/// Forecasts of projected fields have the colours of other forecasts, and rows for latitudes.
TEST(ReportPage, MapsOfProjectedFieldsAreThoseOfFields) {
  const WrittenRun run;
  Examples examples = WrittenRun::examples();
  EXPECT_EQ(examples.colours(), ColourMap::kSequential);
  examples.grid = {false, false, examples.grid.rows, examples.grid.columns, true};
  write_examples(examples, run.path);
  EXPECT_EQ(read_examples(run.path)->colours(), ColourMap::kSequential);
  EXPECT_TRUE(read_examples(run.path)->grid.upwards);
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_NE(page.find("Error by row, beside its mean"), std::string::npos);
  EXPECT_NE(page.find("RMSE of the first lead by row over"), std::string::npos);
  EXPECT_EQ(page.find("by latitude"), std::string::npos);
  examples.lead_time = 0;
  EXPECT_EQ(examples.colours(), ColourMap::kSequential) << "a field of the same time";
  examples.targets.clear();
  EXPECT_EQ(examples.colours(), ColourMap::kGrey) << "an image";
}

TEST(ReportPage, RefusesWhatIsNoRun) {
  const testing::TemporaryFolder empty;
  EXPECT_THROW(report_page({{empty.path()}, "", "", ""}), ConfigError);
  EXPECT_THROW(report_page({{empty.path() + "/nowhere"}, "", "", ""}), ConfigError);
  const WrittenRun run;
  // What "*" names in the folder of a sweep, beside its runs.
  const std::string list = run.folder.path() + "/sweep.json";
  put_text(list, "{}");
  EXPECT_EQ(testing::error_of<ConfigError>([&] {
              report_page({{run.path, list}, "", "", ""});
            }),
            "command line: " + list + " is no run directory but a file; " + run.folder.path() +
                "/*/ names folders alone");
  put_text(run.path + "/placement.json", "{");
  EXPECT_THROW(report_page({{run.path}, "", "", ""}), DataError);
}

/// JSON, and not what a run writes: one sentence that names the file.
TEST(ReportPage, MalformedFilesAreNamed) {
  const std::pair<const char*, std::vector<const char*>> kMalformed[] = {
      {"summary.json",
       {R"({"steps":3,"ranks":[{"rank":"a"}]})", R"({"steps":3,"ranks":3})",
        R"({"steps":3,"ranks":[{"sent_bytes":3}, 1]})"}},
      {"placement.json",
       {R"({"layers":3})", R"({"ranks":1,"axes":[],"space":[],"field":[],"stored":null})",
        R"({"ranks":1,"axes":[],"space":[4,4],"field":[[]],"stored":null})",
        R"({"ranks":1,"axes":[],"space":[4,4],"field":[[[0],[1]]],"stored":null})",
        R"({"ranks":1,"axes":[],"space":[4],"field":[],"parameters":[],"stored":[[[7,[],[],0,1]]]})"}},
      {"scores.json",
       {R"({"lead_hours":[6],"scores":{"t2m":{"all":{},"units":3}}})",
        R"({"lead_hours":[6],"scores":{},"spectra":{"t2m":{"forecast":[],"truth":[]}}})",
        R"({"lead_hours":[6],"scores":{},"rank_histograms":{"t2m":{"all":3}}})",
        R"({"lead_hours":[6],"scores":{},"rank_histograms":{"t2m":{"all":[[1,0],[1,0]]}}})"}}};
  for (const auto& [name, texts] : kMalformed) {
    for (const char* text : texts) {
      const WrittenRun run;
      put_text(run.path + "/" + name, text);
      const std::string error = testing::error_of<DataError>([&] { report_page({{run.path}, "", "", ""}); });
      EXPECT_TRUE(error.starts_with(run.path + "/" + name + " is malformed: ")) << text << ": " << error;
    }
  }
  const WrittenRun run;
  const std::string path = run.path + "/examples.json", whole = text_of(path);
  Json examples = Json::parse(whole);
  examples["targets"] = {"another", "t2m"};
  put_text(path, examples.dump());
  EXPECT_EQ(testing::error_of<DataError>([&] {
              report_page({{run.path}, "", "", ""});
            }),
            path + " is malformed: a list in it is too short");
  put_text(path, whole);
  // Of metrics.jsonl such lines are passed over.
  put_text(run.path + "/metrics.jsonl",
           text_of(run.path + "/metrics.jsonl") +
               "\n{\"kind\":\"valid\",\"metrics\":{\"x_.\":{\"rmse\":1}},\"leads\":[3]}\n"
               "{\"kind\":\"valid\",\"metrics\":{\"x_.\":{\"rmse\":1}},\"leads\":{\"a\":{}}}\n");
  EXPECT_NE(report_page({{run.path}, "", "", ""}).find("fig-loss"), std::string::npos);
}

/// Pipes whose other end nobody opens: to open one would wait for ever.
TEST(ReportPage, PipesAreRefusedAndNotWaitedFor) {
  for (const char* name : {"metrics.jsonl", "config.json", "summary.json", "placement.json", "scores.json",
                           "examples.json", "examples.nc"}) {
    const WrittenRun run;
    const std::string path = run.path + "/" + name;
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(testing::error_of<DataError>([&] {
                report_page({{run.path}, "", "", ""});
              }),
              "cannot read " + path + ": it is a pipe, not a regular file");
  }
  const WrittenRun run;
  const std::string scores = run.folder.path() + "/scores";
  ASSERT_EQ(::mkfifo(scores.c_str(), 0600), 0);
  EXPECT_EQ(testing::error_of<DataError>([&] {
              report_page({{run.path}, "", scores, ""});
            }),
            "cannot read " + scores + ": it is a pipe, not a regular file");
}

TEST(ReportPage, NamesThatCannotBeAreOneSentence) {
  const std::string name(5000, 'n');
  const WrittenRun run;
  EXPECT_NE(testing::error_of<ConfigError>([&] {
              report_page({{name}, "", "", ""});
            }).find("is no run directory"),
            std::string::npos);
  EXPECT_EQ(testing::error_of<DataError>([&] {
              report_page({{run.path}, "", name, ""});
            }),
            "cannot read " + name + ": File name too long");
}

TEST(Examples, ComeBackAsTheyWereWritten) {
  const testing::TemporaryFolder folder;
  Examples written = WrittenRun::examples();
  written.planes[0].name = "scans/volume";
  written.planes[0].input = written.planes[0].truth;
  write_examples(written, folder.path());
  const std::optional<Examples> read = read_examples(folder.path());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->step, 3);
  EXPECT_EQ(read->grid.rows, written.grid.rows);
  EXPECT_EQ(read->rmse_by_row, written.rmse_by_row);
  for (std::size_t i = 0; i < written.planes[0].truth.size(); ++i) {
    if (i == 5) {
      EXPECT_TRUE(std::isnan(read->planes[0].truth[i]));
    } else {
      EXPECT_EQ(read->planes[0].predicted[i], written.planes[0].predicted[i]) << i;
    }
  }
  EXPECT_EQ(read->planes[0].input.size(), written.planes[0].input.size());
  std::filesystem::remove(folder.path() + "/examples.nc");
  EXPECT_FALSE(read_examples(folder.path()).has_value());
}

}  // namespace
}  // namespace jigsaw
