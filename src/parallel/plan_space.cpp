#include "parallel/plan_space.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline parallel {

PlanSpace::PlanSpace(const Trace& trace, const MeshShape& mesh, const CostModel& model)
    : trace_(trace),
      mesh_(mesh),
      model_(model),
      sent_(mesh),
      in_node_(ranks_in_node(mesh, model.ranks_per_node)),
      reads_(trace.values.size(), 0),
      homes_(trace.values.size()),
      always_cut_(trace.values.size()),
      largest_(trace.values.size()) {
  for (const Trace::Node& node : trace.nodes) {
    const auto is_parameter = [&](int v) { return value(v).role == Trace::Role::kParameter; };
    require(!std::ranges::all_of(node.inputs, is_parameter),
            "an operation on parameters alone has no sample for `data` to cut");
  }
  count_reads();
  find_rules();
  find_homes();
}

std::size_t PlanSpace::Hash::operator()(const std::pair<Layout, Layout>& transfer) const {
  std::uint64_t hash = 0;
  const auto add = [&](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32U;
  };
  for (const Layout* layout : {&transfer.first, &transfer.second}) {
    for (const std::int64_t extent : layout->global) add(extent);
    for (const Placement& p : layout->placements.of)
      add((static_cast<int>(p.kind) * 64 + p.dim) * 4096L + p.unit);
  }
  return hash;
}

double PlanSpace::transfer(const Layout& from, const Layout& to) const {
  ++transfers_;
  if (from == to) return 0;
  const auto [place, fresh] = known_.try_emplace({from, to});
  if (fresh) place->second = transfer_seconds(mesh_, from, to, model_, &sent_);
  return place->second;
}

/// Counts what backward reads: saved values, and those from which it rematerialises others.
void PlanSpace::count_reads() {
  for (std::size_t n = trace_.nodes.size(); n-- > 0;) {
    const Trace::Node& node = trace_.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      reads_[static_cast<std::size_t>(node.inputs[i])] +=
          times_rematerialised(node, node.signature.rematerialised) + (node.signature.saved[i] ? 1 : 0);
    }
  }
}

/// The rules that keep values fully cut; where a neighbour cuts the same dim in multiples of a rule's units,
/// in those (units scale): a field in patches stays in patches.
void PlanSpace::find_rules() {
  std::vector<std::set<std::pair<int, std::int64_t>>> units(trace_.values.size());  // dim and unit
  const auto note = [&](int v, const Placement& p) {
    return p.is_shard() && p.unit > 1 && units[static_cast<std::size_t>(v)].emplace(p.dim, p.unit).second;
  };
  const auto note_rule = [&](const Trace::Node& node, const ShardingRule& rule) {
    bool fresh = false;
    for (std::size_t o = 0; o < rule.outputs.size(); ++o)
      fresh = note(node.outputs[o], rule.outputs[o]) || fresh;
    for (std::size_t i = 0; i < rule.inputs.size(); ++i)
      fresh = note(node.inputs[i], rule.inputs[i]) || fresh;
    return fresh;
  };
  /// Multiples of p's unit in which v is cut along the same dim.
  const auto add_multiples = [&](int v, const Placement& p, std::set<std::int64_t>& multiples) {
    if (!p.is_shard()) return;
    for (const auto& [dim, unit] : units[static_cast<std::size_t>(v)]) {
      if (dim == p.dim && unit > p.unit && unit % p.unit == 0) multiples.insert(unit / p.unit);
    }
  };
  const auto rules_in_units = [&](const Trace::Node& node) {
    std::vector<ShardingRule> rules;
    for (const ShardingRule& rule : node.signature.rules) {
      const auto partial = [](const Placement& p) { return p.is_partial(); };
      if (std::any_of(rule.inputs.begin(), rule.inputs.end(), partial)) continue;
      std::set<std::int64_t> multiples;
      for (std::size_t o = 0; o < rule.outputs.size(); ++o)
        add_multiples(node.outputs[o], rule.outputs[o], multiples);
      for (std::size_t i = 0; i < rule.inputs.size(); ++i)
        add_multiples(node.inputs[i], rule.inputs[i], multiples);
      if (multiples.empty()) multiples.insert(1);
      for (const std::int64_t k : multiples) rules.push_back(scaled(rule, k));
    }
    return rules;
  };
  for (std::size_t v = 0; v < trace_.values.size(); ++v) {
    for (const Placement& p : trace_.values[v].placements.of) note(static_cast<int>(v), p);
  }
  for (const Trace::Node& node : trace_.nodes) {
    for (const ShardingRule& rule : node.signature.rules) note_rule(node, rule);
  }
  for (bool fresh = true; fresh;) {
    fresh = false;
    rules_.clear();
    for (const Trace::Node& node : trace_.nodes) {
      rules_.push_back(rules_in_units(node));
      for (const ShardingRule& rule : rules_.back()) fresh = note_rule(node, rule) || fresh;
    }
  }
}

/// Cuts that the value's producer gives or its consumers take, so that some neighbour needs no transfer.
std::vector<Placement> PlanSpace::candidates(int v, int axis) const {
  std::vector<Placement> found;
  const int size = mesh_.size[static_cast<std::size_t>(axis)];
  const auto add = [&](const Placement& p, bool any_extent) {
    if (!p.is_shard() || std::find(found.begin(), found.end(), p) != found.end()) return;
    if (any_extent || value(v).shape[p.dim] / p.unit >= size) found.push_back(p);
  };
  for (const bool any_extent : {false, true}) {
    for (const Trace::Node& node : trace_.nodes) {
      for (const ShardingRule& rule : rules_of(node)) {
        for (std::size_t o = 0; o < node.outputs.size(); ++o) {
          if (node.outputs[o] == v) add(rule.outputs[o], any_extent);
        }
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          if (node.inputs[i] == v) add(rule.inputs[i], any_extent);
        }
      }
    }
    if (!found.empty()) return found;
  }
  return {Placement::replicate()};
}

void PlanSpace::find_homes() {
  for (std::size_t i = 0; i < trace_.values.size(); ++i) {
    const int v = static_cast<int>(i);
    if (value(v).role == Trace::Role::kPinned) homes_[i] = {value(v).placements};
    if (value(v).role != Trace::Role::kActivation) continue;
    std::vector<Placements> homes = {Placements{}};
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      if (mesh_.size[static_cast<std::size_t>(axis)] == 1) continue;
      const std::vector<Placement> options =
          axis == 0 ? std::vector<Placement>{Placement::shard(0)} : candidates(v, axis);
      std::vector<Placements> next;
      for (const Placements& home : homes) {
        for (const Placement& option : options) {
          next.push_back(home);
          next.back()[axis] = option;
        }
      }
      homes = std::move(next);
    }
    homes_[i] = std::move(homes);
  }
  for (std::size_t i = 0; i < trace_.values.size(); ++i) {
    for (const Placements& home : homes_[i]) {
      const auto piece = static_cast<double>(layout(static_cast<int>(i), home).largest_piece(mesh_).count());
      largest_[i] = std::max(largest_[i], piece);
    }
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      const auto cut = [axis](const Placements& home) { return home[axis].is_shard(); };
      if (std::all_of(homes_[i].begin(), homes_[i].end(), cut)) always_cut_[i] |= axis_bit(axis);
    }
  }
}

/// On the data axis the sample is cut, elsewhere any letter that has enough values for all ranks.
std::vector<int> PlanSpace::rules_on_axis(const Trace::Node& node, int axis) const {
  const std::vector<ShardingRule>& rules = rules_of(node);
  std::vector<int> found;
  const int size = mesh_.size[static_cast<std::size_t>(axis)];
  const auto extent = [&](const ShardingRule& rule) {
    for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
      const Placement& p = rule.inputs[i];
      if (p.is_shard()) return (node.signature.inputs[i][p.dim] + p.unit - 1) / p.unit;
    }
    return std::int64_t{0};
  };
  if (axis == 0) {
    const auto sample = std::find_if(rules.begin(), rules.end(), [](const ShardingRule& rule) {
      return rule.outputs[0] == Placement::shard(0);
    });
    found.push_back(sample == rules.end() ? -1 : static_cast<int>(sample - rules.begin()));
    return found;
  }
  for (std::size_t r = 0; r < rules.size(); ++r) {
    if (extent(rules[r]) >= size) found.push_back(static_cast<int>(r));
  }
  if (!found.empty()) return found;
  for (std::size_t r = 0; r < rules.size(); ++r) {
    if (extent(rules[r]) > 1) found.push_back(static_cast<int>(r));
  }
  found.push_back(-1);
  return found;
}

RuleChoice PlanSpace::make_choice(const Trace::Node& node, const AxisRules& rules) const {
  RuleChoice choice;
  Decision& d = choice.decision;
  d.inputs.resize(node.inputs.size());
  d.rule_outputs.resize(node.outputs.size());
  d.rematerialised = node.signature.rematerialised;
  std::vector<std::string> labels;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const int r = rules[static_cast<std::size_t>(axis)];
    if (mesh_.size[static_cast<std::size_t>(axis)] == 1) continue;
    if (r < 0) {
      labels.push_back("-");
      continue;
    }
    const ShardingRule& rule = rules_of(node)[static_cast<std::size_t>(r)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) d.inputs[i][axis] = rule.inputs[i];
    for (std::size_t o = 0; o < node.outputs.size(); ++o) d.rule_outputs[o][axis] = rule.outputs[o];
    d.rematerialised = d.rematerialised && !rule.moves_result;
    d.cut |= axis_bit(axis);
    labels.push_back(rule.label);
  }
  d.rules = join(labels, " ");
  choice.seconds += local_seconds(node, d) + own_seconds(node, d, rules);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (value(node.inputs[i]).role == Trace::Role::kParameter) {
      choice.seconds += parameter_seconds(layout(node.inputs[i], d.inputs[i]));
    }
  }
  return choice;
}

std::vector<RuleChoice> PlanSpace::rule_choices(const Trace::Node& node) const {
  AxisRules none;
  none.fill(-1);
  std::vector<AxisRules> combinations(1, none);
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (mesh_.size[static_cast<std::size_t>(axis)] == 1) continue;
    std::vector<AxisRules> next;
    for (const int rule : rules_on_axis(node, axis)) {
      for (AxisRules combination : combinations) {
        combination[static_cast<std::size_t>(axis)] = rule;
        next.push_back(combination);
      }
    }
    combinations = std::move(next);
  }
  std::vector<RuleChoice> choices;
  for (const AxisRules& rules : combinations) choices.push_back(make_choice(node, rules));
  return choices;
}

/// The largest piece's share of the FLOPs (backward is twice the forward) and of the bytes through memory.
double PlanSpace::local_seconds(const Trace::Node& node, const Decision& decision) const {
  const Coordinates first{};
  double bytes = 0, share = 1;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Layout input = layout(node.inputs[i], decision.inputs[i]);
    bytes += static_cast<double>(input.box(mesh_, first).extent.count()) * model_.element_bytes;
  }
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const Layout output = layout(node.outputs[o], decision.rule_outputs[o]);
    bytes += static_cast<double>(output.box(mesh_, first).extent.count()) * model_.element_bytes;
  }
  // Each cut letter once, by a dim of the first input that has it: several axes may cut it.
  std::vector<std::pair<std::size_t, int>> counted;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (!contains(decision.cut, axis)) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Placement& p = decision.inputs[i][axis];
      if (!p.is_shard()) continue;
      const std::pair<std::size_t, int> dim{i, p.dim};
      if (std::find(counted.begin(), counted.end(), dim) != counted.end()) break;
      counted.push_back(dim);
      const Layout input = layout(node.inputs[i], decision.inputs[i]);
      share *= static_cast<double>(input.largest_piece(mesh_)[p.dim]) /
               static_cast<double>(std::max<std::int64_t>(input.global[p.dim], 1));
      break;
    }
  }
  return 3 * (node.signature.forward_flops * share / model_.flops_per_second +
              bytes / model_.memory_bytes_per_second);
}

/// What the rules' own algorithms send, forward and backward.
double PlanSpace::own_seconds(const Trace::Node& node, const Decision& decision,
                              const AxisRules& rules) const {
  AxisSet axes = 0;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const int r = rules[static_cast<std::size_t>(axis)];
    if (r >= 0 && rules_of(node)[static_cast<std::size_t>(r)].communicates) axes |= axis_bit(axis);
  }
  if (axes == 0) return 0;
  std::vector<Layout> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back(layout(node.inputs[i], decision.inputs[i]));
  return model_.seconds(mesh_, axes, node.signature.own({mesh_, inputs, axes, model_.element_bytes}));
}

/// A parameter is gathered along the axes that do not cut it, forward and backward, and its gradient is
/// scattered. No latency: a block's small parameters travel together, and large ones hide it.
double PlanSpace::parameter_seconds(const Layout& compute) const {
  double ranks = 1;
  AxisSet axes = 0;
  for (int axis = 1; axis < mesh_.axes; ++axis) {
    if (compute.placements[axis].is_shard()) continue;
    ranks *= mesh_.size[static_cast<std::size_t>(axis)];
    axes |= axis_bit(axis);
  }
  const double piece = static_cast<double>(compute.box(mesh_, {}).extent.count());
  return 3 * (ranks - 1) / ranks * piece * model_.element_bytes * model_.seconds_per_byte(mesh_, axes);
}

double PlanSpace::input_seconds(const Trace::Node& node, std::size_t i, const Decision& decision,
                                const Placements& home) const {
  const Layout held = layout(node.inputs[i], home), wanted = layout(node.inputs[i], decision.inputs[i]);
  Placements gradient;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    gradient[axis] = gradient_placement(decision.inputs[i][axis], contains(decision.cut, axis));
  }
  const int times =
      1 + times_rematerialised(node, decision.rematerialised) + (node.signature.saved[i] ? 1 : 0);
  return times * transfer(held, wanted) +
         transfer(layout(node.inputs[i], gradient), layout(node.inputs[i], dual(home)));
}

double PlanSpace::output_seconds(const Trace::Node& node, std::size_t o, const Decision& decision,
                                 const Placements& home) const {
  const int times = 1 + times_rematerialised(node, decision.rematerialised), v = node.outputs[o];
  const Placements& given = decision.rule_outputs[o];
  return times * transfer(layout(v, given), layout(v, home)) +
         transfer(layout(v, dual(home)), layout(v, dual(given)));
}

/// What gathering a fully cut value along the axes on which `whole` holds it whole costs at least: every
/// element of the largest piece goes to each other rank that wants it, but only once to other nodes what
/// their ranks can pass on: those along axes within nodes, and where it may go in two levels those along a
/// part of an axis, or, where nodes part an axis unevenly, all of a node.
double PlanSpace::least_gather(int v, const Placements& whole, int gathers, int messages) const {
  double copies = 1, nodes = 1, across = 1, pieces = 1;
  bool evenly = true;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const double size = mesh_.size[a];
    pieces *= size;
    if (!contains(always_cut_[static_cast<std::size_t>(v)], axis) || whole[axis].is_shard()) continue;
    copies *= size;
    nodes *= size / std::max(in_node_[a], 1);
    if (in_node_[a] < mesh_.size[a]) across *= size;
    evenly = evenly && in_node_[a] > 0;
  }
  if (copies == 1) return 0;
  const double piece = static_cast<double>(value(v).shape.count()) / pieces * model_.element_bytes;
  // In two levels less than all that is gathered is kept within nodes: what is less goes directly.
  const double most = copies * largest_[static_cast<std::size_t>(v)] * model_.element_bytes;
  const bool levels = most >= model_.two_levels_from;
  const double far_copies = !levels ? across : evenly ? nodes : std::max(copies / model_.ranks_per_node, 1.0);
  const double far = piece * (far_copies - 1), near = piece * (copies - far_copies);
  return messages * (far_copies > 1 ? model_.network : model_.node).latency_seconds +
         gathers * far / model_.network.bytes_per_second + gathers * near / model_.node.bytes_per_second;
}

double PlanSpace::least_in(const Trace::Node& node, std::size_t i, const Decision& decision) const {
  const int v = node.inputs[i];
  if (value(v).role == Trace::Role::kParameter) return 0;
  if (homes_of(v).size() == 1) return input_seconds(node, i, decision, homes_of(v)[0]);
  bool summed = false;  // the gradient
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    summed = summed || (contains(decision.cut, axis) && decision.inputs[i][axis].is_replicate());
  }
  const int gathers =
      1 + times_rematerialised(node, decision.rematerialised) + (node.signature.saved[i] ? 1 : 0);
  return least_gather(v, decision.inputs[i], gathers, gathers + (summed ? 1 : 0));
}

double PlanSpace::least_out(const Trace::Node& node, const Decision& decision) const {
  double least = 0;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const std::vector<Placements>& homes = homes_of(node.outputs[o]);
    const Placements& given = decision.rule_outputs[o];
    least += homes.size() == 1 ? output_seconds(node, o, decision, homes[0])
                               : least_gather(node.outputs[o], given, 1, given.any_partial() ? 2 : 1);
  }
  return least;
}

}  // namespace jigsaw::inline parallel
