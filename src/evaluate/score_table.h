#pragma once
#include <functional>
#include <string>
#include <vector>

#include "evaluate/score_report.h"

namespace jigsaw::inline evaluate {

/// What the rows of a region are.
struct TableRows {
  std::string title;               ///< of all of them, "lead"
  std::vector<std::string> names;  ///< of each
};
/// Those of leads.
TableRows lead_rows(const ScoreReport& report);

/// A table for people: of each region its rows.
/// @param title    a line above it.
/// @param columns  what stands above the numbers.
/// @param numbers  of a region and row, one for each column; "-" stands for NaN.
std::vector<std::string> score_table(
    const ScoreReport& report, const std::string& title, const TableRows& rows,
    const std::vector<std::string>& columns,
    const std::function<std::vector<double>(std::size_t region, int row)>& numbers);

}  // namespace jigsaw::inline evaluate
