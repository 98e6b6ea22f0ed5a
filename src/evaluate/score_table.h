#pragma once
#include <functional>
#include <string>
#include <vector>

#include "evaluate/score_report.h"

namespace jigsaw::inline evaluate {

/// What the rows of a region are: each has a name, and a number by which its numbers are asked for.
struct TableRows {
  struct Row {
    int number;
    std::string name;
  };
  std::string title;  ///< of all of them, "lead"
  std::vector<Row> rows;
};
/// A number in nine columns behind a blank, "-" for NaN; and a word above such numbers.
std::string number_cell(double value);
std::string title_cell(const std::string& title);
/// The leads, from 0 on, that tables show: all of up to 24, else the first, the last and about twenty between
/// them at round numbers.
std::vector<int> shown_leads(int leads);
/// Those leads.
TableRows lead_rows(const ScoreReport& report);

/// A table for people: of each region its rows.
/// @param title    a line above it.
/// @param columns  what stands above the numbers.
/// @param numbers  of a region and a row's number, one for each column; "-" stands for NaN.
std::vector<std::string> score_table(
    const ScoreReport& report, const std::string& title, const TableRows& rows,
    const std::vector<std::string>& columns,
    const std::function<std::vector<double>(std::size_t region, int row)>& numbers);

}  // namespace jigsaw::inline evaluate
