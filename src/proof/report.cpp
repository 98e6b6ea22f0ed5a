#include "proof/report.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace jigsaw {

namespace {

std::string placements_of(const Row& row) {
  std::vector<std::string> inputs, outputs;
  for (const Placement& input : row.inputs) inputs.push_back(input.to_string());
  for (const Placement& output : row.outputs) outputs.push_back(output.to_string());
  return concat(join(inputs, ", "), " -> ", join(outputs, ", "));
}

std::string line(const std::string& label, const Row& row, const std::string& verdict) {
  const std::string start = "  " + label + std::string(label.size() < 5 ? 5 - label.size() : 1, ' ');
  const std::string text = start + placements_of(row);
  return text + std::string(text.size() < 50 ? 50 - text.size() : 1, ' ') + verdict + "\n";
}

}  // namespace

std::string report(const std::vector<Verdict>& verdicts) {
  std::string text;
  std::set<std::string> operations;
  std::size_t rows = 0;
  int unsound = 0, incomplete = 0;
  for (const Verdict& verdict : verdicts) {
    text += verdict.name + "\n";
    if (verdict.rows.empty()) text += "  no rows: runs replicated only\n";
    for (const auto& [row, sound] : verdict.rows) {
      text += line(row.label, row, sound ? "sound" : "UNSOUND: listed, and gives the wrong answer");
    }
    for (const std::string& pair : verdict.products) {
      text += concat("  ", pair, "  UNSOUND: each right on one axis, wrong together\n");
    }
    for (const Row& row : verdict.missing) text += line("", row, "INCOMPLETE: right, and not listed");
    operations.insert(verdict.operation);
    rows += verdict.rows.size();
    unsound += verdict.unsound();
    incomplete += verdict.incomplete();
  }
  return text + concat(operations.size(), " operations, ", rows, " rows: ", unsound, " unsound, ", incomplete,
                       " incomplete\n");
}

bool proven(const std::vector<Verdict>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.unsound() == 0 && verdict.incomplete() == 0;
  });
}

}  // namespace jigsaw
