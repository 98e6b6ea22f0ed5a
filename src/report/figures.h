#pragma once
#include <string>
#include <vector>

#include "report/lead_axis.h"
#include "report/plot.h"
#include "report/run_record.h"
#include "report/svg.h"

namespace jigsaw::inline report {

/// A picture of the report, or a table.
struct Figure {
  std::string id;       ///< "fig-loss", unique in a page
  std::string body;     ///< HTML
  std::string caption;  ///< plain text
};
using Figures = std::vector<Figure>;

/// Loss, learning rate, skill, scores by lead and level, over each other where there are several runs.
Figures curve_figures(const std::vector<RunRecord>& runs);
/// Maps or slices of prediction, truth and difference, errors by latitude, spectra.
Figures example_figures(const RunRecord& run, const std::string& suffix);
/// What evaluate said: scores and means by lead, and of ensembles how the truth lies among the members.
Figures score_figures(const RunRecord& run, const std::string& suffix);
/// Of thresholds their critical success index, fractions skill score and reliability.
Figures threshold_figures(const RunRecord& run, const LeadAxis& leads, const std::string& suffix);
/// The same of sequences and of images, where the scores are of such.
Figures sequence_score_figures(const RunRecord& run, const std::string& suffix);
Figures image_score_figures(const RunRecord& run, const std::string& suffix);
/// Maps of a file that predict wrote. @throws DataError
Figures forecast_figures(const std::string& path);
/// Maps of errors by lead, or of the bias of a climate, of a file that evaluate wrote. @throws DataError
Figures map_figures(const std::string& path);
/// Throughput, where a step goes, memory and bytes of ranks.
Figures machine_figures(const std::vector<RunRecord>& runs);
/// Which rank holds what of the field and of each parameter.
Figures mesh_figures(const RunRecord& run, const std::string& suffix);

/// A number and its unit, where it has one: "3 K".
std::string with_unit(const std::string& number, const std::string& units);
/// What an axis or a column shows and its unit, where it has one: "RMSE (K)".
std::string quantity(const std::string& name, const std::string& units);
/// The unit of a square: "K²", "(m s-1)²".
std::string squared(const std::string& units);
/// A measure of metrics.jsonl or of evaluate in words, "persistence_rmse" as "RMSE of persistence"; one that
/// is not known stays as it is.
std::string words_of(const std::string& measure);

/// The name of a run's only curve in a plot: what it shows, or of several runs whose it is.
std::string label_of_only(const std::vector<RunRecord>& runs, const RunRecord& run, const std::string& what);

/// An empty plot of which several stand beside each other.
Plot small_plot(const std::string& title, const std::string& x_label, const std::string& y_label);
/// A score by lead; NaN where a lead has none.
Series series_of(const std::string& label, const LeadAxis& leads, const Json& list, std::size_t colour,
                 bool dashed);
/// How many variables figures of scores show.
inline constexpr std::size_t kMostScored = 8;
/// The region that every file of scores of fields has, and the first of it.
inline constexpr const char* kWholeGrid = "all";

/// Pictures beside each other, as HTML.
std::string row_of(const std::vector<std::string>& pictures);

/// Which variables a figure shows, whose names may end in a level ("t_500").
struct ShownVariables {
  std::vector<std::string> names;
  bool levels = false;   ///< some are on further levels
  std::size_t more = 0;  ///< variables that are not shown on any

  /// What is not shown, and where it stands: " …", or "".
  std::string remark(const std::string& where) const;
};
/// All where these are at most so many, else each variable on its level that is nearest to 500, and of these
/// the first.
ShownVariables shown_of(const std::vector<std::string>& names, std::size_t most);

/// An HTML table of escaped texts; the first row is its head.
std::string table_of(const std::vector<std::vector<std::string>>& rows);

}  // namespace jigsaw::inline report
