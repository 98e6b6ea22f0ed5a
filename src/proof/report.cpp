#include "proof/report.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace jigsaw::inline proof {

namespace {

std::string placements_of(const ShardingRule& rule) {
  std::vector<std::string> inputs, outputs;
  for (const Placement& input : rule.inputs) inputs.push_back(input.to_string());
  for (const Placement& output : rule.outputs) outputs.push_back(output.to_string());
  return concat(join(inputs, ", "), " -> ", join(outputs, ", "));
}

std::string line(const std::string& label, const ShardingRule& rule, const std::string& verdict) {
  const std::string start = "  " + label + std::string(label.size() < 5 ? 5 - label.size() : 1, ' ');
  const std::string text = start + placements_of(rule);
  return text + std::string(text.size() < 50 ? 50 - text.size() : 1, ' ') + verdict + "\n";
}

}  // namespace

std::string report(const std::vector<Verdict>& verdicts) {
  std::string text;
  std::set<std::string> operations;
  std::size_t rules = 0;
  int unsound = 0, incomplete = 0;
  for (const Verdict& verdict : verdicts) {
    text += verdict.name + "\n";
    if (verdict.rules.empty()) text += "  no rules: runs replicated only\n";
    for (const auto& [rule, sound] : verdict.rules) {
      text += line(rule.label, rule, sound ? "sound" : "UNSOUND: listed, and gives the wrong answer");
    }
    for (const std::string& pair : verdict.products) {
      text += concat("  ", pair, "  UNSOUND: each right on one axis, wrong together\n");
    }
    for (const ShardingRule& rule : verdict.missing)
      text += line("", rule, "INCOMPLETE: right, and not listed");
    operations.insert(verdict.operation);
    rules += verdict.rules.size();
    unsound += verdict.unsound();
    incomplete += verdict.incomplete();
  }
  return text + concat(operations.size(), " operations, ", rules, " rows: ", unsound, " unsound, ",
                       incomplete, " incomplete\n");
}

bool proven(const std::vector<Verdict>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.unsound() == 0 && verdict.incomplete() == 0;
  });
}

}  // namespace jigsaw::inline proof
