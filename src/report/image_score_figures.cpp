#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/text.h"
#include "report/figures.h"

namespace jigsaw::inline report {

namespace {

/// What a plot shows of one target.
struct ImagePlot {
  const char* title;
  std::vector<const char*> measures;
};
const std::vector<ImagePlot>& image_plots() {
  static const std::vector<ImagePlot> all = {{"Dice", {"dice"}},
                                             {"mean Dice", {"foreground_dice", "mean_dice"}},
                                             {"HD95", {"hd95"}},
                                             {"PSNR", {"psnr", "input_psnr"}},
                                             {"SSIM", {"ssim", "input_ssim"}},
                                             {"RMSE", {"rmse"}}};
  return all;
}

std::vector<double> of_images(const Json& entry) {
  return numbers_of(entry.at("images"));
}

/// In the order of the score; images without one are left out.
Series sorted(const std::string& label, std::vector<double> values, std::size_t colour) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  Series series{label, {}, std::move(values), colour, false};
  for (std::size_t i = 0; i < series.y.size(); ++i) series.x.push_back(static_cast<double>(i + 1));
  return series;
}

/// Nothing where the target has no such score.
std::optional<Plot> plot_of(const std::string& target, const ImagePlot& of, const Json& scores) {
  Plot plot = small_plot("", "images, by score", of.title);
  plot.title = title_of(target, concat(": ", of.title), plot);
  const auto add = [&](const std::string& label, const Json& entry) {
    plot.y_label = quantity(of.title, entry.value("units", std::string()));
    Series series = sorted(label, of_images(entry), plot.series.size());
    if (!series.y.empty()) plot.series.push_back(std::move(series));
  };
  for (const char* measure : of.measures) {
    if (!scores.contains(measure)) continue;
    const Json& found = scores.at(measure);
    if (found.contains("images")) {
      add(words_of(measure), found);
      continue;
    }
    std::vector<std::pair<double, std::string>> labels;  // "10" stands behind "2"
    for (const auto& [label, entry] : found.items())
      labels.emplace_back(std::strtod(label.c_str(), nullptr), label);
    std::ranges::sort(labels);
    for (const auto& [number, label] : labels) add(concat("label ", label), found.at(label));
  }
  if (plot.series.empty()) return std::nullopt;
  return plot;
}

/// The measure that says best how well an image went, of which more is better; "" where there is none.
std::string main_measure(const Json& scores) {
  for (const char* measure : {"foreground_dice", "mean_dice", "psnr"})
    if (scores.contains(measure)) return measure;
  return "";
}

/// The images that went worst, with all that is known of each.
std::string worst_table(const std::string& target, const Json& scores, const Json& images) {
  constexpr std::size_t kMost = 10;
  const std::string measure = main_measure(scores);
  if (measure.empty()) return "";
  const std::vector<double> values = of_images(scores.at(measure));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t image) { return values[image]; });
  order.resize(std::min(order.size(), kMost));
  std::vector<std::string> head = {concat("worst images, ", target)};
  std::vector<std::vector<double>> columns;
  const auto add = [&](const std::string& title, const Json& entry) {
    head.push_back(quantity(title, entry.value("units", std::string())));
    columns.push_back(of_images(entry));
  };
  add(words_of(measure), scores.at(measure));
  for (const auto& [other, entry] : scores.items()) {
    if (other == measure) continue;
    if (entry.contains("images")) {
      add(words_of(other), entry);
    } else {
      for (const auto& [label, of_label] : entry.items()) add(concat(words_of(other), " ", label), of_label);
    }
  }
  std::vector<std::vector<std::string>> rows = {head};
  for (const std::size_t image : order) {
    rows.push_back({images.at(image).get<std::string>()});
    for (const std::vector<double>& column : columns)
      rows.back().push_back(std::isfinite(column.at(image)) ? short_number(column[image]) : "-");
  }
  return table_of(rows);
}

}  // namespace

Figures image_score_figures(const RunRecord& run, const std::string& suffix) {
  const Json &targets = run.scores.at("scores"), &images = run.scores.at("images");
  std::vector<std::string> names, plots;
  for (const auto& [target, scores] : targets.items()) names.push_back(target);
  const ShownVariables shown = shown_of(names, kMostScored);
  std::string tables;
  for (const std::string& target : shown.names) {
    for (const ImagePlot& of : image_plots())
      if (const auto plot = plot_of(target, of, targets.at(target))) plots.push_back(svg_of(*plot));
    tables += worst_table(target, targets.at(target), images);
  }
  if (plots.empty()) return {};
  return {
      {"fig-image-scores" + suffix, row_of(plots) + tables,
       concat(
           "Scores of ", counted(std::ssize(images), "image"),
           " that evaluate scored, each line in the order of its own scores: steep ends are images that went "
           "much better or worse than the others. Images without a score are left out.",
           shown.remark(run.scores_path))}};
}

}  // namespace jigsaw::inline report
