#pragma once
#include <string>
#include <vector>

#include "report/run_record.h"

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
/// Maps of a file that predict wrote. @throws DataError
Figures forecast_figures(const std::string& path);
/// Throughput, where a step goes, memory and bytes of ranks.
Figures machine_figures(const std::vector<RunRecord>& runs);
/// Which rank holds what of the field and of each parameter.
Figures mesh_figures(const RunRecord& run, const std::string& suffix);

/// An HTML table of escaped texts; the first row is its head.
std::string table_of(const std::vector<std::vector<std::string>>& rows);

}  // namespace jigsaw::inline report
