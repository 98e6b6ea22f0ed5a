#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text.h"
#include "report/figures.h"
#include "report/score_file.h"

namespace jigsaw::inline report {

namespace {

ShownVariables shown_with_whole_grid(const Json& by_variable) {
  std::vector<std::string> names;
  for (const auto& [variable, regions] : by_variable.items()) {
    if (regions.contains(kWholeGrid)) names.push_back(variable);
  }
  return shown_of(names, kMostScored);
}

/// Those that have the variable's unit.
void add_scores(const RunRecord& run, const LeadAxis& leads, const std::string& suffix, Figures& figures) {
  const Json& scores = run.scores.at("scores");
  const ShownVariables shown = shown_with_whole_grid(scores);
  std::vector<std::string> plots;
  bool of_members = false;
  for (const std::string& variable : shown.names) {
    const Json &regions = scores.at(variable), &all = regions.at(kWholeGrid);
    const std::string units = regions.value("units", std::string());
    of_members = of_members || all.contains("crps");
    Plot plot = small_plot(variable, leads.label(), quantity(all.contains("crps") ? "score" : "RMSE", units));
    plot.from_zero = true;
    for (const char* measure : {"rmse", "persistence_rmse", "climatology_rmse", "spread", "crps"}) {
      if (!all.contains(measure)) continue;
      const std::size_t colour = plot.series.size();
      Series series = series_of(words_of(measure), leads, all.at(measure), colour, colour > 0);
      if (std::ranges::any_of(series.y, [](double y) { return std::isfinite(y); }))
        plot.series.push_back(std::move(series));
    }
    plots.push_back(svg_of(plot));
  }
  if (!plots.empty())
    figures.push_back(
        {"fig-scores" + suffix, row_of(plots),
         concat(of_members ? "RMSE of the ensemble mean, spread and CRPS" : "RMSE",
                " by lead over the period that evaluate scored.", shown.remark(run.scores_path))});
}

/// Drift: forecast and truth over each other.
void add_means(const RunRecord& run, const LeadAxis& leads, const std::string& suffix, Figures& figures) {
  const Json& scores = run.scores.at("scores");
  const ShownVariables shown = shown_with_whole_grid(scores);
  std::vector<std::string> plots;
  for (const std::string& variable : shown.names) {
    const Json &regions = scores.at(variable), &all = regions.at(kWholeGrid);
    if (!all.contains("forecast_mean") || !all.contains("truth_mean") || leads.size() < 2) continue;
    Plot plot =
        small_plot(variable, leads.label(), quantity("spatial mean", regions.value("units", std::string())));
    plot.series.push_back(series_of("forecast", leads, all.at("forecast_mean"), 0, false));
    plot.series.push_back(series_of("truth", leads, all.at("truth_mean"), 1, true));
    plots.push_back(svg_of(plot));
  }
  if (!plots.empty())
    figures.push_back({"fig-means" + suffix, row_of(plots),
                       concat("Spatial means of forecasts and of their truth by lead over the period that "
                              "evaluate scored: where the lines part, the model drifts.",
                              shown.remark(run.scores_path))});
}

/// A score without unit.
struct Ratio {
  const char *measure, *title;
  double mark;  ///< a line there
  const char* meaning;
};
constexpr Ratio kAcc = {"acc", "Anomaly correlation", 0.6,
                        "It is 1 where forecasts are perfect and 0 where they are as good as the "
                        "climatology; below 0.6, the line, "
                        "they are taken to be of little use."};
constexpr std::array kEnsembleRatios = {
    Ratio{"spread_skill", "Spread over error", 1,
          "The spread over the error is 1 where the spread says how large errors are, and below where "
          "members are too alike."},
    Ratio{"crps_skill", "Skill of the CRPS", 0,
          "The skill of the CRPS is 1 where the forecast is perfect, and 0 where it is as good as "
          "persistence."}};

/// A line for each variable that has it; nothing where none has.
std::string plot_of_ratio(const Ratio& ratio, const Json& scores, const ShownVariables& shown,
                          const LeadAxis& leads) {
  Plot plot = small_plot(ratio.title, leads.label(), words_of(ratio.measure));
  plot.marks = true;
  plot.mark = ratio.mark;
  for (const std::string& variable : shown.names) {
    const Json& all = scores.at(variable).at(kWholeGrid);
    if (!all.contains(ratio.measure)) continue;
    Series series = series_of(variable, leads, all.at(ratio.measure), plot.series.size(), false);
    if (std::ranges::any_of(series.y, [](double y) { return std::isfinite(y); }))
      plot.series.push_back(std::move(series));
  }
  if (plot.series.empty()) return "";
  if (plot.series.size() == 1) plot.title += concat(": ", plot.series[0].label);
  return svg_of(plot);
}

void add_acc(const RunRecord& run, const LeadAxis& leads, const std::string& suffix, Figures& figures) {
  const Json& scores = run.scores.at("scores");
  const ShownVariables shown = shown_with_whole_grid(scores);
  const std::string plot = plot_of_ratio(kAcc, scores, shown, leads);
  if (!plot.empty())
    figures.push_back(
        {"fig-acc" + suffix, plot,
         concat("Anomaly correlation coefficient by lead over the period that evaluate scored. ",
                kAcc.meaning, shown.remark(run.scores_path))});
}

void add_ratios(const RunRecord& run, const LeadAxis& leads, const std::string& suffix, Figures& figures) {
  const Json& scores = run.scores.at("scores");
  const ShownVariables shown = shown_with_whole_grid(scores);
  std::vector<std::string> plots, meanings;
  for (const Ratio& ratio : kEnsembleRatios) {
    const std::string plot = plot_of_ratio(ratio, scores, shown, leads);
    if (plot.empty()) continue;
    plots.push_back(plot);
    meanings.push_back(ratio.meaning);
  }
  if (!plots.empty())
    figures.push_back({"fig-spread-skill" + suffix, row_of(plots),
                       concat("Ratios of the ensemble by lead over the period that evaluate scored. ",
                              join(meanings, " "), shown.remark(run.scores_path))});
}

/// How the truth ranks among the members at the first and the last lead that say so; nothing where none does.
std::optional<Plot> plot_of_ranks(const std::string& variable, const LeadAxis& leads,
                                  const Json& histograms) {
  Plot plot = small_plot(variable, "rank", "share of the truth");
  plot.bars = plot.marks = true;
  for (std::size_t lead = 0; lead < histograms.size(); ++lead) {
    Series series{leads.text(leads.leads().at(lead)), {}, numbers_of(histograms.at(lead)), 0, false};
    if (!std::ranges::any_of(series.y, [](double share) { return std::isfinite(share); })) continue;
    for (std::size_t rank = 0; rank < series.y.size(); ++rank) series.x.push_back(static_cast<double>(rank));
    plot.mark = 1 / static_cast<double>(series.y.size());
    series.colour = plot.series.empty() ? 0 : 1;
    if (plot.series.size() == 2) plot.series.pop_back();
    plot.series.push_back(std::move(series));
  }
  if (plot.series.empty()) return std::nullopt;
  if (plot.series.size() == 1) plot.title += concat(", ", plot.series[0].label);
  return plot;
}

void add_rank_histograms(const RunRecord& run, const LeadAxis& leads, const std::string& suffix,
                         Figures& figures) {
  const Json histograms = run.scores.value("rank_histograms", Json::object());
  const ShownVariables shown = shown_with_whole_grid(histograms);
  std::vector<std::string> plots, missing;
  for (const std::string& variable : shown.names) {
    if (const auto plot = plot_of_ranks(variable, leads, histograms.at(variable).at(kWholeGrid))) {
      plots.push_back(svg_of(*plot));
    } else {
      missing.push_back(variable);
    }
  }
  if (shown.names.empty()) return;
  figures.push_back(
      {"fig-ranks" + suffix, row_of(plots),
       concat(
           "Rank histograms: shares of the truth that lie above none, one, … all of the members, at the "
           "first and the last lead that evaluate scored. Flat, along the line, is right; ∪: members are "
           "too alike; ∩: too far apart; a slope: a bias, members too low where it rises, too high where "
           "it falls.",
           missing.empty() ? "" : concat(" There are none of what has no truth: ", join(missing, ", "), "."),
           shown.remark(run.scores_path))});
}

}  // namespace

Plot small_plot(const std::string& title, const std::string& x_label, const std::string& y_label) {
  Plot plot{title, x_label, y_label, {}};
  plot.width = 320;
  plot.height = 240;
  return plot;
}

Series series_of(const std::string& label, const LeadAxis& leads, const Json& list, std::size_t colour,
                 bool dashed) {
  std::vector<double> values = numbers_of(list);
  values.resize(leads.size(), std::nan(""));
  return {label, leads.places(), std::move(values), colour, dashed};
}

Figures score_figures(const RunRecord& run, const std::string& suffix) {
  Figures figures;
  if (!run.scores.is_object()) return figures;
  naming_malformed(run.scores_path, [&] {
    const ScoreKind kind = kind_of_scores(run.scores);
    if (kind != ScoreKind::kFields) {
      figures = kind == ScoreKind::kSequences ? sequence_score_figures(run, suffix)
                                              : image_score_figures(run, suffix);
      return;
    }
    const LeadAxis leads(lead_count_of_scores(run.scores), numbers_of(run.scores.at("lead_hours")));
    add_scores(run, leads, suffix, figures);
    add_acc(run, leads, suffix, figures);
    add_means(run, leads, suffix, figures);
    add_ratios(run, leads, suffix, figures);
    add_rank_histograms(run, leads, suffix, figures);
    for (Figure& figure : threshold_figures(run, leads, suffix)) figures.push_back(std::move(figure));
  });
  for (Figure& figure : figures) figure.caption += what_scored(run.scores);
  return figures;
}

}  // namespace jigsaw::inline report
