#pragma once
#include <functional>
#include <string>
#include <vector>

#include "evaluate/score_report.h"

namespace jigsaw::inline evaluate {

/// A table for people: a row for each region and lead.
/// @param title    a line above it.
/// @param columns  what stands above the numbers.
/// @param numbers  of a region and lead, one for each column; "-" stands for NaN.
std::vector<std::string> score_table(
    const ScoreReport& report, const std::string& title, const std::vector<std::string>& columns,
    const std::function<std::vector<double>(std::size_t region, int lead)>& numbers);

}  // namespace jigsaw::inline evaluate
