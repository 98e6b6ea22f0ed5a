#include <array>
#include <utility>

#include "base/text.h"
#include "report/figures.h"

namespace jigsaw::inline report {

namespace {

ShownVariables shown_with(const Json& variables, const char* measure) {
  std::vector<std::string> names;
  for (const auto& [name, scores] : variables.items())
    if (scores.contains(measure)) names.push_back(name);
  return shown_of(names, kMostScored);
}

/// One plot, for it has no unit.
void add_vrmse(const RunRecord& run, const LeadAxis& leads, const std::string& suffix, Figures& figures) {
  const Json& variables = run.scores.at("variables");
  const ShownVariables shown = shown_with(variables, "vrmse");
  Plot plot{"VRMSE", leads.label(), "VRMSE", {}};
  plot.from_zero = plot.marks = true;
  plot.mark = 1;
  for (const std::string& name : shown.names)
    plot.series.push_back(series_of(name, leads, variables.at(name).at("vrmse"), plot.series.size(), false));
  if (plot.series.empty()) return;
  if (plot.series.size() == 1) plot.title += concat(": ", plot.series[0].label);
  figures.push_back(
      {"fig-vrmse" + suffix, row_of({svg_of(plot)}),
       concat("Root mean square error over the standard deviation in space of the truth, by lead over "
              "the sequences that evaluate scored: 0 is perfect, and 1 as good as the mean of each "
              "state.",
              shown.remark(run.scores_path))});
}

void add_rmse(const RunRecord& run, const LeadAxis& leads, const std::string& suffix, Figures& figures) {
  const Json& variables = run.scores.at("variables");
  const ShownVariables shown = shown_with(variables, "rmse");
  std::vector<std::string> plots;
  for (const std::string& name : shown.names) {
    const Json& scores = variables.at(name);
    Plot plot = small_plot(name, leads.label(), quantity("RMSE", scores.value("units", std::string())));
    plot.from_zero = true;
    for (const char* measure : {"rmse", "persistence_rmse"}) {
      const std::size_t colour = plot.series.size();
      if (scores.contains(measure))
        plot.series.push_back(series_of(words_of(measure), leads, scores.at(measure), colour, colour > 0));
    }
    plots.push_back(svg_of(plot));
  }
  if (!plots.empty())
    figures.push_back(
        {"fig-scores" + suffix, row_of(plots),
         concat("RMSE by lead over the sequences that evaluate scored.", shown.remark(run.scores_path))});
}

/// Of small scales errors are large first.
void add_bands(const RunRecord& run, const LeadAxis& leads, const std::string& suffix, Figures& figures) {
  constexpr std::array kBands = {"low wave numbers", "middle", "high"};
  constexpr const char* kMeasure = "spectral_nmse";
  const Json& variables = run.scores.at("variables");
  const ShownVariables shown = shown_with(variables, kMeasure);
  std::vector<std::string> plots;
  for (const std::string& name : shown.names) {
    Plot plot = small_plot(name, leads.label(), "error / truth");
    plot.log_y = plot.marks = true;
    plot.mark = 1;
    const Json& by_lead = variables.at(name).at(kMeasure);
    for (std::size_t band = 0; band < kBands.size(); ++band) {
      Json values = Json::array();
      for (const Json& of_lead : by_lead) values.push_back(of_lead.at(band));
      plot.series.push_back(series_of(kBands[band], leads, values, band, false));
    }
    plots.push_back(svg_of(plot));
  }
  if (!plots.empty())
    figures.push_back(
        {"fig-bands" + suffix, row_of(plots),
         concat("Mean square error within bands of wave numbers over the mean square of the truth there, "
                "by lead: at 1 a band says no more than nothing would.",
                shown.remark(run.scores_path))});
}

}  // namespace

Figures sequence_score_figures(const RunRecord& run, const std::string& suffix) {
  Figures figures;
  const LeadAxis leads(LeadCount::kSteps, numbers_of(run.scores.at("lead_steps")));
  add_vrmse(run, leads, suffix, figures);
  add_rmse(run, leads, suffix, figures);
  add_bands(run, leads, suffix, figures);
  return figures;
}

}  // namespace jigsaw::inline report
