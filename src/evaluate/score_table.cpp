#include "evaluate/score_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "predict/forecast_file.h"

namespace jigsaw::inline evaluate {

namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

}  // namespace

std::string number_cell(double value) {
  std::array<char, 32> text{};
  if (std::isnan(value)) {
    std::snprintf(text.data(), text.size(), " %9s", "-");
  } else {
    std::snprintf(text.data(), text.size(), " %9.4g", value);
  }
  return text.data();
}

std::string title_cell(const std::string& title) {
  return std::string(title.size() < 10 ? 10 - title.size() : 1, ' ') + title;
}

std::vector<int> shown_leads(int leads) {
  constexpr int kMostShown = 24;
  std::vector<int> shown;
  int every = 1;
  for (int decade = 1; leads > kMostShown && leads / every + 2 > kMostShown; decade *= 10) {
    for (const int factor : {2, 5, 10}) {
      every = factor * decade;
      if (leads / every + 2 <= kMostShown) break;
    }
  }
  for (int lead = 1; lead <= leads; ++lead) {
    if (lead == 1 || lead == leads || lead % every == 0) shown.push_back(lead - 1);
  }
  return shown;
}

TableRows lead_rows(const ScoreReport& report) {
  TableRows table{"lead", {}};
  for (const int lead : shown_leads(report.scores->leads()))
    table.rows.push_back({lead, lead_text((lead + 1) * report.lead_time, report.of_months)});
  return table;
}

std::vector<std::string> score_table(
    const ScoreReport& report, const std::string& title, const TableRows& rows,
    const std::vector<std::string>& columns,
    const std::function<std::vector<double>(std::size_t region, int row)>& numbers) {
  constexpr std::size_t kRow = 6;
  const std::vector<Region>& regions = report.scores->regions();
  const auto right = [](const std::string& text) {
    return std::string(text.size() < kRow ? kRow - text.size() : 0, ' ') + text;
  };
  std::size_t width = 8;
  for (const Region& region : regions) width = std::max(width, region.name.size());
  std::string titles = concat("  ", padded("region", width), "  ", right(rows.title));
  for (const std::string& column : columns) titles += title_cell(column);
  std::vector<std::string> lines = {title, titles};
  for (std::size_t region = 0; region < regions.size(); ++region) {
    for (const TableRows::Row& row : rows.rows) {
      std::string line = concat("  ", padded(regions[region].name, width), "  ", right(row.name));
      for (const double number : numbers(region, row.number)) line += number_cell(number);
      lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace jigsaw::inline evaluate
