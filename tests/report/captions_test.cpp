// What the page says of its figures: of what scores are, how errors are weighted, what colours and axes leave
// out, and units.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <regex>

#include "base/text.h"
#include "report/examples.h"
#include "report/figures.h"
#include "report/page.h"
#include "report/score_file.h"
#include "report/svg.h"
#include "report/written_run.h"

namespace jigsaw {
namespace captions_test {

using testing::count_of;
using testing::faults_of;
using testing::put_text;
using testing::WrittenRun;

/// As far as the file holds it.
TEST(ReportPage, SaysWhatScoresAreOf) {
  const WrittenRun run;
  Json scores = Json::parse(R"({"lead_hours":[6],"scores":{"t2m":{"units":"K","all":{"rmse":[1]}}},
                                "spectra":{"t2m":{"forecast":[[9,3,1]],"truth":[[9,3,2]]}}})");
  EXPECT_EQ(what_scored(scores), "");
  scores["source"] = "jigsaw-train, weights of step 233 of runs/first";
  scores["forecasts"] = 42;
  scores["periods"] = {"2021-02-17 to 2021-02-28"};
  const std::string all =
      "Scored: 42 forecasts of 2021-02-17 to 2021-02-28, weights of step 233 of runs/first.";
  EXPECT_EQ(what_scored(scores), " " + all);
  put_text(run.path + "/scores.json", scores.dump());
  EXPECT_EQ(count_of(report_page({{run.path}, "", "", ""}), all), 2) << "below scores and spectra";
  scores["members"] = 4;
  scores["coverage"] = {{"first_start", "2021-02-17T00:00"},
                        {"last_start", "2021-02-20T18:00"},
                        {"windows", 60},
                        {"scored", 40}};
  EXPECT_EQ(what_scored(scores),
            " Scored: 40 forecasts of 4 members of 2021-02-17 to 2021-02-28 (of 60 windows; starts from "
            "2021-02-17T00:00 to 2021-02-20T18:00), weights of step 233 of runs/first.");
  EXPECT_EQ(what_scored({{"source", "jigsaw-train, predictions in out"}}), " Scored: predictions in out.");
  EXPECT_EQ(what_scored({{"source", 3}, {"periods", 3}, {"coverage", 3}, {"forecasts", "x"}}), "");
}

TEST(ReportPage, QuantitiesAreWordsWithTheirUnits) {
  EXPECT_EQ(quantity("RMSE", "K"), "RMSE (K)");
  EXPECT_EQ(quantity("RMSE", ""), "RMSE");
  EXPECT_EQ(quantity("RMSE", "1"), "RMSE");
  EXPECT_EQ(with_unit("3", "K"), "3 K");
  EXPECT_EQ(squared("K"), "K²");
  EXPECT_EQ(squared("m s-1"), "(m s-1)²");
  EXPECT_EQ(squared(""), "");
  EXPECT_EQ(words_of("persistence_rmse"), "RMSE of persistence");
  EXPECT_EQ(words_of("another"), "another");
  const WrittenRun run;
  EXPECT_NE(report_page({{run.path}, "", "", ""}).find(">variance (K²)</text>"), std::string::npos);
}

/// Errors in the north weigh as rows there do in validations.
TEST(ReportPage, TheErrorOfMapsIsWeightedByArea) {
  const WrittenRun run;
  Examples examples = WrittenRun::examples();
  ExamplePlane& plane = examples.planes[0];
  plane.truth.assign(plane.truth.size(), 280);
  plane.predicted = plane.truth;
  for (int i = 0; i < 36; ++i)
    plane.predicted[static_cast<std::size_t>(36 + i)] += 100;  // at 80 degrees north
  write_examples(examples, run.path);
  const double degree = std::acos(-1.0) / 180,
               share = (std::sin(85 * degree) - std::sin(75 * degree)) / 2;  // of the globe
  EXPECT_NE(report_page({{run.path}, "", "", ""})
                .find(concat("RMSE of what is shown ", short_number(100 * std::sqrt(share)), " K")),
            std::string::npos);
  examples.grid.geographic = examples.grid.periodic = false;
  write_examples(examples, run.path);
  EXPECT_NE(report_page({{run.path}, "", "", ""})
                .find(concat("RMSE of what is shown ", short_number(100 / std::sqrt(19.0)), " K")),
            std::string::npos);
}

/// Of so few points none.
TEST(ReportPage, SaysWhichValuesTheColoursLeaveOut) {
  const WrittenRun run;
  const std::string remark = "Colours span the values but the lowest and the highest 0.1 %";
  EXPECT_NE(report_page({{run.path}, "", "", ""}).find(remark), std::string::npos);
  EXPECT_EQ(remark_on_range({ColourMap::kGrey, 0, 1}, false), "");
  EXPECT_EQ(remark_on_range({ColourMap::kGrey, 0, 1}, true),
            " Colours span the values of the first map; what lies beyond has the colours of the ends.");
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i));
  EXPECT_EQ(colouring_of(values, ColourMap::kGrey).low, 1);
  EXPECT_NE(remark_on_range(colouring_of(values, ColourMap::kGrey), false), "");
  values.pop_back();
  EXPECT_EQ(colouring_of(values, ColourMap::kGrey).low, 0);
}

/// One that diverges does not hide the other, and the captions say so; where one alone has a variable it is
/// named.
TEST(ReportPage, ARunThatDivergesDoesNotHideTheOthers) {
  const WrittenRun first, second;
  const std::string bad = second.folder.path() + "/bad";
  std::filesystem::rename(second.path, bad);
  std::string lines;
  for (int step = 1; step <= 3; ++step) {
    lines += Json{{"kind", "train"},
                  {"step", step},
                  {"loss", step == 1 ? 1.0 : 1e31},
                  {"learning_rate", 1e-3},
                  {"grad_norm", step == 1 ? Json(2.0) : Json(nullptr)}}
                 .dump() +
             "\n";
  }
  const Json scores = {{"rmse", 4e15}, {"persistence_rmse", 1.0}};
  lines +=
      Json{{"kind", "valid"}, {"step", 3}, {"loss", 1e31}, {"metrics", {{"t2m", scores}, {"u10", scores}}}}
          .dump() +
      "\n";
  put_text(bad + "/metrics.jsonl", lines);
  const std::string page = report_page({{first.path, bad}, "", "", ""});
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  const auto figure = [&](const std::string& id) {
    const std::size_t begin = page.find(concat("<figure id=\"", id, "\">"));
    return begin == std::string::npos ? "" : page.substr(begin, page.find("</figure>", begin) - begin);
  };
  EXPECT_NE(figure("fig-loss").find("Beyond the axis, cut at its end: bad: training, bad: validation."),
            std::string::npos);
  const std::regex large("e\\+[0-9]+</text>");  // marks of an axis
  EXPECT_FALSE(std::regex_search(figure("fig-loss"), large));
  EXPECT_NE(figure("fig-skill-t2m").find("Beyond the axis, cut at its end: bad."), std::string::npos);
  EXPECT_FALSE(std::regex_search(figure("fig-skill-t2m"), large));
  EXPECT_EQ(figure("fig-norm").find("Beyond"), std::string::npos) << "what is no number is beyond nothing";
  EXPECT_NE(figure("fig-skill-t_500").find(">first</text>"), std::string::npos) << "the run is named";
  EXPECT_NE(figure("fig-skill-u10").find(">bad</text>"), std::string::npos);
}

}  // namespace captions_test
}  // namespace jigsaw
