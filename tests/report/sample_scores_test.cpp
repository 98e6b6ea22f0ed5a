// What evaluate says of sequences and of images, in the page.
#include <gtest/gtest.h>

#include "base/text.h"
#include "io/netcdf_writer.h"
#include "report/page.h"
#include "report/written_run.h"

namespace jigsaw {
namespace {

using testing::count_of;
using testing::faults_of;
using testing::put_text;
using testing::WrittenRun;

/// The part of a page that shows the figure; "" where it is not there.
std::string figure_of(const std::string& page, const std::string& id) {
  const std::size_t begin = page.find(concat("<figure id=\"", id, "\">"));
  if (begin == std::string::npos) return "";
  return page.substr(begin, page.find("</figure>", begin) - begin);
}

void expect_sequences(const std::string& page) {
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  const std::string vrmse = figure_of(page, "fig-vrmse"), rmse = figure_of(page, "fig-scores"),
                    bands = figure_of(page, "fig-bands");
  EXPECT_NE(vrmse.find("data-label=\"p\" data-points=\"2\" data-last=\"0.75\""), std::string::npos) << vrmse;
  EXPECT_NE(vrmse.find("data-label=\"u\" data-points=\"2\" data-last=\"0.5\""), std::string::npos);
  EXPECT_NE(vrmse.find(">lead, steps</text>"), std::string::npos);
  EXPECT_NE(rmse.find(">RMSE (Pa)</text>"), std::string::npos) << rmse;
  EXPECT_NE(rmse.find("data-label=\"RMSE\" data-points=\"2\" data-last=\"1.5\""), std::string::npos);
  EXPECT_NE(rmse.find("data-label=\"RMSE of persistence\" data-points=\"2\" data-last=\"4\""),
            std::string::npos);
  EXPECT_NE(bands.find("data-label=\"low wave numbers\" data-points=\"2\" data-last=\"0.01\""),
            std::string::npos)
      << bands;
  EXPECT_NE(bands.find("data-label=\"high\" data-points=\"2\" data-last=\"0.9\""), std::string::npos);
}

/// By lead in steps; NetCDF says the same.
TEST(ReportScores, OfSequencesShowVrmseAndBands) {
  const WrittenRun run;
  const Json scores = {
      {"title", "first"},
      {"lead_steps", {2, 4}},
      {"variables",
       {{"p",
         {{"units", "Pa"},
          {"rmse", {1.0, 1.5}},
          {"persistence_rmse", {2.0, 4.0}},
          {"mae", {0.5, 0.5}},
          {"vrmse", {0.25, 0.75}},
          {"spectral_mse", {{1, 2, 3}, {4, 5, 6}}},
          {"spectral_nmse", {{0.001, 0.1, 0.2}, {0.01, 0.4, 0.9}}}}},
        {"u", {{"rmse", {0.5, nullptr}}, {"persistence_rmse", {1, 1}}, {"vrmse", {0.25, 0.5}}}}}}};
  put_text(run.path + "/scores.json", scores.dump());
  expect_sequences(report_page({{run.path}, "", "", ""}));

  const std::string path = run.folder.path() + "/scores.nc";
  {
    testing::NetcdfWriter file(path);
    const int lead = file.dimension("lead_steps", 2), band = file.dimension("band", 3);
    const int leads = file.variable("lead_steps", NC_INT, {lead});
    std::vector<std::pair<int, std::vector<double>>> all;
    const auto add = [&](const char* name, std::vector<double> values, const char* units,
                         bool bands = false) {
      const int variable =
          file.variable(name, NC_DOUBLE, bands ? std::vector<int>{lead, band} : std::vector<int>{lead});
      file.text(variable, "units", units);
      all.emplace_back(variable, std::move(values));
    };
    add("p_rmse", {1, 1.5}, "Pa");
    add("p_persistence_rmse", {2, 4}, "Pa");
    add("p_vrmse", {0.25, 0.75}, "1");
    add("p_spectral_mse", {1, 2, 3, 4, 5, 6}, "(Pa)2", true);
    add("p_spectral_nmse", {0.001, 0.1, 0.2, 0.01, 0.4, 0.9}, "1", true);
    add("u_vrmse", {0.25, 0.5}, "1");
    file.end();
    file.put(leads, {2, 4});
    for (const auto& [variable, values] : all) file.put(variable, values);
  }
  expect_sequences(report_page({{run.path}, "", path, ""}));
}

void expect_images(const std::string& page, const std::string& worst) {
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  const std::string figure = figure_of(page, "fig-image-scores");
  EXPECT_NE(figure.find(">mask: Dice</text>"), std::string::npos) << figure;
  const std::size_t first = figure.find("data-label=\"label 2\" data-points=\"3\" data-last=\"0.9\""),
                    second = figure.find("data-label=\"label 10\" data-points=\"2\" data-last=\"0.875\"");
  EXPECT_NE(second, std::string::npos) << "an image without the score is no point";
  EXPECT_LT(first, second);
  EXPECT_NE(figure.find(">HD95 (mm)</text>"), std::string::npos);
  const std::size_t hd95 = figure.find("<title>mask: HD95</title>");
  EXPECT_NE(figure.substr(hd95, figure.find("</svg>", hd95) - hd95).find(">label 2</text>"),
            std::string::npos)
      << "the one class that has scores is named";
  EXPECT_NE(figure.find("<th>foreground Dice</th>"), std::string::npos);
  const std::size_t table = figure.find("<table>"), low = figure.find(concat("<td>", worst, "</td>"), table);
  EXPECT_NE(low, std::string::npos);
  EXPECT_EQ(low, figure.find("<td>", table)) << "the worst comes first";
  EXPECT_NE(figure.find("<td>0.25</td>", low), std::string::npos);
  EXPECT_EQ(count_of(figure.substr(table), "<tr>"), 4);
}

/// In the order of the score, with the worst by name; NetCDF says the same, but for names.
TEST(ReportScores, OfImagesShowTheirOrderAndTheWorst) {
  const WrittenRun run;
  const auto of = [](const Json& values) { return Json{{"mean", 0}, {"count", 2}, {"images", values}}; };
  Json hd95 = of({3.5, 1.25, nullptr});
  hd95["units"] = "mm";
  const Json scores = {{"images", {"case <7>", "case 8", "case 9"}},
                       {"data_range", Json::object()},
                       {"scores",
                        {{"mask",
                          {{"dice", {{"10", of({0.5, 0.875, nullptr})}, {"2", of({0.1, 0.9, 0.8})}}},
                           {"foreground_dice", of({0.25, 0.75, 0.8})},
                           {"hd95", {{"2", hd95}}},
                           {"accuracy", of({0.9, 0.95, 0.99})}}}}}};
  put_text(run.path + "/scores.json", scores.dump());
  expect_images(report_page({{run.path}, "", "", ""}), "case &lt;7&gt;");

  const std::string path = run.folder.path() + "/scores.nc";
  {
    testing::NetcdfWriter file(path);
    const int image = file.dimension("image", 3);
    std::vector<std::pair<int, std::vector<double>>> all;
    const auto add = [&](const char* name, std::vector<double> values, const char* units) {
      all.emplace_back(file.variable(name, NC_DOUBLE, {image}), std::move(values));
      file.text(all.back().first, "units", units);
    };
    add("mask_dice_2", {0.1, 0.9, 0.8}, "1");
    add("mask_dice_10", {0.5, 0.875, std::nan("")}, "1");
    add("mask_foreground_dice", {0.25, 0.75, 0.8}, "1");
    add("mask_hd95_2", {3.5, 1.25, std::nan("")}, "mm");
    file.end();
    for (const auto& [variable, values] : all) file.put(variable, values);
  }
  expect_images(report_page({{run.path}, "", path, ""}), "image 0");
}

}  // namespace
}  // namespace jigsaw
