#include "parallel/plan_space.h"

namespace jigsaw::inline parallel {

PlanParts& PlanParts::operator+=(const PlanParts& other) {
  compute += other.compute;
  move += other.move;
  own += other.own;
  parameters += other.parameters;
  return *this;
}

PlanSpace::AxisRules PlanSpace::rules_taken(const Trace::Node& node, const Decision& decision) const {
  AxisRules taken;
  taken.fill(-1);
  const std::vector<ShardingRule>& rules = rules_of(node);
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (!contains(decision.cut, axis)) continue;
    const auto is_taken = [&](const ShardingRule& rule) {
      bool same = true;
      for (std::size_t i = 0; i < rule.inputs.size(); ++i)
        same = same && rule.inputs[i] == decision.inputs[i][axis];
      for (std::size_t o = 0; o < rule.outputs.size(); ++o)
        same = same && rule.outputs[o] == decision.rule_outputs[o][axis];
      return same;
    };
    for (std::size_t r = 0; r < rules.size(); ++r) {
      if (is_taken(rules[r])) taken[static_cast<std::size_t>(axis)] = static_cast<int>(r);
    }
  }
  return taken;
}

PlanParts PlanSpace::parts(const Plan& plan) const {
  PlanParts parts;
  std::vector<Placements> homes(trace_.values.size());
  for (std::size_t v = 0; v < homes.size(); ++v) homes[v] = trace_.values[v].placements;
  for (std::size_t n = 0; n < trace_.nodes.size(); ++n) {
    const Trace::Node& node = trace_.nodes[n];
    const Decision& decision = plan.decisions[n];
    parts.compute += local_seconds(node, decision);
    parts.own += own_seconds(node, decision, rules_taken(node, decision));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const int v = node.inputs[i];
      if (value(v).role == Trace::Role::kParameter) {
        parts.parameters += parameter_seconds(layout(v, decision.inputs[i]));
      } else {
        parts.move += input_seconds(node, i, decision, homes[static_cast<std::size_t>(v)]);
      }
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      homes[static_cast<std::size_t>(node.outputs[o])] = decision.outputs[o];
      parts.move += output_seconds(node, o, decision, decision.outputs[o]);
    }
  }
  return parts;
}

}  // namespace jigsaw::inline parallel
