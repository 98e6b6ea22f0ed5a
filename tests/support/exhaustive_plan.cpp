#include "support/exhaustive_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "support/enumerated_cost.h"

namespace jigsaw::testing {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::int64_t units(const Trace::Node& node, const ShardingRule& rule) {
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    if (!rule.inputs[i].is_shard()) continue;
    return (node.signature.inputs[i][rule.inputs[i].dim] + rule.inputs[i].unit - 1) / rule.inputs[i].unit;
  }
  return 0;
}

}  // namespace

ExhaustivePlan::ExhaustivePlan(const Trace& trace, const MeshShape& mesh, const CostModel& costs)
    : trace_(trace), mesh_(mesh), costs_(costs) {
  for (AxisSet axes = 0; axes < axis_bit(mesh.axes); ++axes) spreads_.push_back(spread(axes));
  for (const Trace::Value& v : trace.values) homes_.push_back(homes_of(v));
  for (const Trace::Node& node : trace.nodes) tables_.push_back(table_of(node));
}

double ExhaustivePlan::minimum() const {
  double best = kNever;
  std::vector<std::size_t> homes(trace_.values.size(), 0);
  descend(0, 0, 0, homes, best);
  return best;
}

/// Operation n and those after it, for each home of its results from o on.
void ExhaustivePlan::descend(std::size_t n, std::size_t o, double so_far, std::vector<std::size_t>& homes,
                             double& best) const {
  if (so_far >= best) return;
  if (n == trace_.nodes.size()) {
    best = so_far;
    return;
  }
  if (o == trace_.nodes[n].outputs.size()) {
    descend(n + 1, 0, so_far + seconds(tables_[n], homes), homes, best);
    return;
  }
  const int made = trace_.nodes[n].outputs[o];
  for (std::size_t home = 0; home < homes_[static_cast<std::size_t>(made)].size(); ++home) {
    homes[static_cast<std::size_t>(made)] = home;
    descend(n, o + 1, so_far, homes, best);
  }
}

double ExhaustivePlan::cost(const Plan& plan) const {
  double total = 0;
  std::vector<Placements> home(trace_.values.size());
  for (std::size_t v = 0; v < home.size(); ++v) home[v] = trace_.values[v].placements;
  for (std::size_t n = 0; n < trace_.nodes.size(); ++n) {
    const Trace::Node& node = trace_.nodes[n];
    const Decision& decision = plan.decisions[n];
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      home[static_cast<std::size_t>(node.outputs[o])] = decision.outputs[o];
    Rules rules(static_cast<std::size_t>(mesh_.axes), nullptr);
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      for (const ShardingRule& rule : node.signature.rules) {
        if (contains(decision.cut, axis) && rule.outputs[0] == decision.rule_outputs[0][axis] &&
            rule.inputs[0] == decision.inputs[0][axis] &&
            rule.inputs.back() == decision.inputs.back()[axis]) {
          rules[static_cast<std::size_t>(axis)] = &rule;
        }
      }
    }
    total += work(node, rules);
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      total += result(node, rules, o, decision.outputs[o]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      total += input(node, rules, i, home[static_cast<std::size_t>(node.inputs[i])]);
  }
  return total;
}

double ExhaustivePlan::piece(const Shape& global, const Placements& placements) const {
  return static_cast<double>(Layout{global, placements}.box(mesh_, {}).extent.count());
}

ExhaustivePlan::Spread ExhaustivePlan::spread(AxisSet axes) const {
  std::map<std::vector<int>, std::map<int, int>> groups;  // by the other coordinates: ranks on each node
  for (int number = 0; number < mesh_.ranks(); ++number) {
    const Coordinates at = mesh_.coordinates(number);
    std::vector<int> others;
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      if (!contains(axes, axis)) others.push_back(at[static_cast<std::size_t>(axis)]);
    }
    ++groups[others][number / costs_.ranks_per_node];
  }
  std::set<std::size_t> nodes;
  std::set<int> local;
  for (const auto& [others, on_node] : groups) {
    nodes.insert(on_node.size());
    for (const auto& [node, ranks] : on_node) local.insert(ranks);
  }
  const bool alike = nodes.size() == 1 && local.size() == 1;
  return {static_cast<double>(*nodes.rbegin()), alike ? static_cast<double>(*local.begin()) : 0.0};
}

double ExhaustivePlan::within(const Spread& over, double bytes) {
  if (over.nodes == 1 || over.local <= 1) return 0;
  // Of n − 1 equal pieces those for the other nodes leave this one once.
  const double piece = bytes / (over.nodes * over.local - 1);
  return bytes - piece * (over.nodes - 1);
}

double ExhaustivePlan::seconds(AxisSet axes, const TransferCost& cost) const {
  const Spread& over = spreads_[axes];
  const Link& usual = link(over);
  double total = cost.messages * usual.latency_seconds;
  for (std::size_t kind = 0; kind < cost.bytes.size(); ++kind) {
    const auto collective = static_cast<Collective>(kind);
    double within_nodes = 0;
    if (collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
        collective == Collective::kAllReduce) {
      // Of an array that is reduced and gathered, each time half.
      const int calls = collective == Collective::kAllReduce ? 2 : 1;
      const double piece = cost.bytes[kind] / calls / std::max(over.nodes * over.local - 1, 1.0);
      if (piece * (over.nodes - 1) * (over.local - 1) >= costs_.two_levels_from) {
        within_nodes = within(over, cost.bytes[kind]);
        if (within_nodes > 0) total += calls * costs_.node.latency_seconds;
      }
    }
    total += within_nodes / costs_.node.bytes_per_second +
             (cost.bytes[kind] - within_nodes) / usual.bytes_per_second;
  }
  return total;
}

double ExhaustivePlan::transfer(const Shape& global, const Placements& from, const Placements& to) const {
  Layout held{global, from};
  double total = 0;
  for (const Step& step : redistribution_steps(mesh_, held, {global, to})) {
    if (step.kind != Collective::kBroadcast) {
      TransferCost cost;
      cost.add(step.kind, enumerated_sent(mesh_, step, held) * costs_.element_bytes, 1);
      cost.messages = 1;
      total += seconds(step.axes, cost);
    }
    held = step.to;
  }
  return total;
}

std::vector<Placements> ExhaustivePlan::homes_of(const Trace::Value& v) const {
  if (v.role != Trace::Role::kActivation) return {v.placements};
  std::vector<Placements> homes = {Placements{}};
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (size(axis) == 1) continue;
    std::vector<Placements> next;
    for (const Placements& home : homes) {
      for (int dim = 0; dim < v.shape.rank(); ++dim) {
        if ((axis == 0 && dim > 0) || v.shape[dim] < size(axis)) continue;
        next.push_back(home);
        next.back()[axis] = Placement::shard(dim);
      }
    }
    homes = next;
  }
  return homes;
}

std::vector<ExhaustivePlan::Rules> ExhaustivePlan::rule_combinations(const Trace::Node& node) const {
  std::vector<Rules> all = {Rules(static_cast<std::size_t>(mesh_.axes), nullptr)};
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (size(axis) == 1) continue;
    std::vector<Rules> next;
    for (const Rules& rules : all) {
      for (const ShardingRule& rule : node.signature.rules) {
        if (axis == 0 ? !(rule.outputs[0] == Placement::shard(0)) : units(node, rule) < size(axis)) continue;
        next.push_back(rules);
        next.back()[static_cast<std::size_t>(axis)] = &rule;
      }
    }
    all = next;
  }
  return all;
}

Placements ExhaustivePlan::operand(const Rules& rules, std::size_t i) const {
  Placements placements;
  for (std::size_t axis = 0; axis < rules.size(); ++axis) {
    if (rules[axis] != nullptr) placements.of[axis] = rules[axis]->inputs[i];
  }
  return placements;
}

Placements ExhaustivePlan::output(const Rules& rules, std::size_t o) const {
  Placements placements;
  for (std::size_t axis = 0; axis < rules.size(); ++axis) {
    if (rules[axis] != nullptr) placements.of[axis] = rules[axis]->outputs[o];
  }
  return placements;
}

/// What the rules' own algorithms send, which the operation says.
double ExhaustivePlan::own(const Trace::Node& node, const Rules& rules) const {
  AxisSet axes = 0;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const ShardingRule* rule = rules[static_cast<std::size_t>(axis)];
    if (rule != nullptr && rule->communicates) axes |= axis_bit(axis);
  }
  if (axes == 0) return 0;
  std::vector<Layout> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back({node.signature.inputs[i], operand(rules, i)});
  return seconds(axes, node.signature.own({mesh_, inputs, axes, costs_.element_bytes}));
}

/// Local work of the rank with the largest pieces, rules' own algorithms, and parameters gathered twice and
/// scattered.
double ExhaustivePlan::work(const Trace::Node& node, const Rules& rules) const {
  double flops = node.signature.forward_flops, elements = 0, total = own(node, rules);
  for (std::size_t o = 0; o < node.outputs.size(); ++o)
    elements += piece(node.signature.outputs[o], output(rules, o));
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const ShardingRule* rule = rules[static_cast<std::size_t>(axis)];
    if (rule == nullptr) continue;
    // What axes before this one leave of the dim.
    std::int64_t left = units(node, *rule);
    for (int before = 0; before < axis; ++before) {
      if (rules[static_cast<std::size_t>(before)] == rule) left = (left + size(before) - 1) / size(before);
    }
    flops *= std::ceil(static_cast<double>(left) / size(axis)) / static_cast<double>(left);
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    elements += piece(node.signature.inputs[i], operand(rules, i));
    if (value(node.inputs[i]).role == Trace::Role::kParameter) total += gather(node, rules, i);
  }
  return total + 3 * flops / costs_.flops_per_second +
         3 * elements * costs_.element_bytes / costs_.memory_bytes_per_second;
}

double ExhaustivePlan::gather(const Trace::Node& node, const Rules& rules, std::size_t i) const {
  double holders = 1;
  AxisSet axes = 0;
  for (int axis = 1; axis < mesh_.axes; ++axis) {
    if (operand(rules, i)[axis].is_shard()) continue;
    holders *= size(axis);
    axes |= axis_bit(axis);
  }
  const double bytes = piece(node.signature.inputs[i], operand(rules, i)) * costs_.element_bytes;
  // All parameters of a block travel together: much at a time.
  const double sent = 3 * bytes * (holders - 1) / holders;
  const Spread& over = spreads_[axes];
  const double near = std::isinf(costs_.two_levels_from) ? 0 : within(over, sent);
  return near / costs_.node.bytes_per_second + (sent - near) / link(over).bytes_per_second;
}

/// How often backward makes an operation's result again: for each operation that saves it, and each time
/// that the result of an operation which reads it is rematerialised.
int ExhaustivePlan::made_again(const Trace::Node& node) const {
  if (!node.signature.rematerialised) return 0;
  int times = 0;
  for (const Trace::Node& reader : trace_.nodes) {
    for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
      if (std::count(node.outputs.begin(), node.outputs.end(), reader.inputs[i]) > 0)
        times += (reader.signature.saved[i] ? 1 : 0) + made_again(reader);
    }
  }
  return times;
}

/// An input in, again in backward each time that this reads it, and its gradient back.
double ExhaustivePlan::input(const Trace::Node& node, const Rules& rules, std::size_t i,
                             const Placements& home) const {
  if (value(node.inputs[i]).role == Trace::Role::kParameter) return 0;
  const Placements wanted = operand(rules, i);
  Placements gradient = wanted;
  for (std::size_t axis = 0; axis < rules.size(); ++axis)
    gradient.of[axis] = gradient_placement(wanted.of[axis], rules[axis] != nullptr);
  const Shape& shape = node.signature.inputs[i];
  return transfer(shape, home, wanted) * (1 + (node.signature.saved[i] ? 1 : 0) + made_again(node)) +
         transfer(shape, gradient, dual(home));
}

/// The result out, again each time that it is rematerialised, and its gradient in.
double ExhaustivePlan::result(const Trace::Node& node, const Rules& rules, std::size_t o,
                              const Placements& home) const {
  const Shape& shape = node.signature.outputs[o];
  return transfer(shape, output(rules, o), home) * (1 + made_again(node)) +
         transfer(shape, dual(home), dual(output(rules, o)));
}

double ExhaustivePlan::seconds(const Table& table, const std::vector<std::size_t>& homes) const {
  std::size_t index = 0;
  for (const int v : table.values) {
    const auto at = static_cast<std::size_t>(v);
    index = index * homes_[at].size() + homes[at];
  }
  return table.seconds[index];
}

ExhaustivePlan::Table ExhaustivePlan::table_of(const Trace::Node& node) const {
  Table table;
  const auto column_of = [&](int v) {
    const auto known = std::find(table.values.begin(), table.values.end(), v);
    const auto column = static_cast<std::size_t>(known - table.values.begin());
    if (known == table.values.end()) table.values.push_back(v);
    return column;
  };
  std::vector<std::size_t> input_column;
  for (const int v : node.inputs) input_column.push_back(column_of(v));
  std::vector<std::size_t> output_column;
  for (const int v : node.outputs) output_column.push_back(column_of(v));
  std::size_t entries = 1;
  for (const int v : table.values) entries *= homes(v).size();
  table.seconds.assign(entries, kNever);
  for (const Rules& rules : rule_combinations(node)) {
    std::vector<std::vector<double>> of_home;  // by column
    for (const int v : table.values) of_home.emplace_back(homes(v).size(), 0.0);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      for (std::size_t h = 0; h < homes(node.inputs[i]).size(); ++h)
        of_home[input_column[i]][h] += input(node, rules, i, homes(node.inputs[i])[h]);
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      for (std::size_t h = 0; h < homes(node.outputs[o]).size(); ++h)
        of_home[output_column[o]][h] += result(node, rules, o, homes(node.outputs[o])[h]);
    }
    const double local = work(node, rules);
    std::vector<std::size_t> at(table.values.size(), 0);
    for (double& best : table.seconds) {
      double total = local;
      for (std::size_t column = 0; column < at.size(); ++column) total += of_home[column][at[column]];
      best = std::min(best, total);
      for (std::size_t column = at.size(); column-- > 0;) {
        if (++at[column] < of_home[column].size()) break;
        at[column] = 0;
      }
    }
  }
  return table;
}

}  // namespace jigsaw::testing
