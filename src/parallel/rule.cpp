#include "parallel/rule.h"

#include <algorithm>

namespace jigsaw::inline parallel {

Letters letters(std::string_view text, const Letters& units) {
  Letters result;
  for (const char letter : text) {
    result.push_back({letter});
    for (const LetterDim& named : units) {
      if (named.letter == letter) result.back().unit = named.unit;
    }
  }
  return result;
}

namespace {

Placement cut_of(const Letters& operand, char letter, Placement otherwise) {
  for (std::size_t dim = 0; dim < operand.size(); ++dim) {
    if (operand[dim].letter == letter) return Placement::shard(static_cast<int>(dim), operand[dim].unit);
  }
  return otherwise;
}

}  // namespace

std::vector<ShardingRule> rules_of_letters(const std::vector<Letters>& inputs, const Letters& output) {
  return rules_of_letters(inputs, std::vector<Letters>{output});
}

std::vector<ShardingRule> rules_of_letters(const std::vector<Letters>& inputs,
                                           const std::vector<Letters>& outputs) {
  std::vector<ShardingRule> rules;
  std::string seen;
  const auto add = [&](const Letters& operand) {
    for (const LetterDim& dim : operand) {
      if (dim.letter == '1' || seen.find(dim.letter) != std::string::npos) continue;
      seen += dim.letter;
      ShardingRule rule{std::string(1, dim.letter), {}, {}};
      for (const Letters& input : inputs)
        rule.inputs.push_back(cut_of(input, dim.letter, Placement::replicate()));
      for (const Letters& output : outputs)
        rule.outputs.push_back(cut_of(output, dim.letter, Placement::partial_sum()));
      rules.push_back(rule);
    }
  };
  for (const Letters& input : inputs) add(input);
  return rules;
}

double OwnCall::ranks() const {
  double ranks = 1;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (contains(axes, axis)) ranks *= mesh.size[static_cast<std::size_t>(axis)];
  }
  return ranks;
}

ShardingRule scaled(const ShardingRule& rule, std::int64_t k) {
  const auto times = [k](Placement& placement) {
    if (placement.is_shard()) placement = Placement::shard(placement.dim, placement.unit * k);
  };
  ShardingRule result = rule;
  for (Placement& input : result.inputs) times(input);
  for (Placement& output : result.outputs) times(output);
  return result;
}

ShardingRule linear_rule(const std::vector<bool>& inputs, std::size_t outputs) {
  ShardingRule rule{"sum", {}, std::vector<Placement>(outputs, Placement::partial_sum())};
  for (const bool linear : inputs) {
    rule.inputs.push_back(linear ? Placement::partial_sum() : Placement::replicate());
  }
  return rule;
}

Placement gradient_placement(const Placement& input, bool rule_cuts) {
  if (input.is_shard()) return input;
  if (input.is_partial()) return Placement::replicate();
  return rule_cuts ? Placement::partial_sum() : Placement::replicate();
}

}  // namespace jigsaw::inline parallel
