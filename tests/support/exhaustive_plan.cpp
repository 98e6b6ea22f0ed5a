#include "support/exhaustive_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/enumerated_cost.h"

namespace jigsaw::testing {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::int64_t units(const Trace::Node& node, const Row& row) {
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    if (!row.inputs[i].is_shard()) continue;
    return (node.signature.inputs[i][row.inputs[i].dim] + row.inputs[i].unit - 1) / row.inputs[i].unit;
  }
  return 0;
}

}  // namespace

ExhaustivePlan::ExhaustivePlan(const Trace& trace, const MeshShape& mesh, const CostModel& costs)
    : trace_(trace), mesh_(mesh), costs_(costs) {
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
    Rows rows(static_cast<std::size_t>(mesh_.axes), nullptr);
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      for (const Row& row : node.signature.rows) {
        if (contains(decision.cut, axis) && row.outputs[0] == decision.row_outputs[0][axis] &&
            row.inputs[0] == decision.inputs[0][axis] && row.inputs.back() == decision.inputs.back()[axis]) {
          rows[static_cast<std::size_t>(axis)] = &row;
        }
      }
    }
    total += work(node, rows);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) total += result(node, rows, o, decision.outputs[o]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      total += input(node, rows, i, home[static_cast<std::size_t>(node.inputs[i])]);
  }
  return total;
}

double ExhaustivePlan::piece(const Shape& global, const Placements& placements) const {
  return static_cast<double>(Layout{global, placements}.box(mesh_, {}).extent.count());
}

double ExhaustivePlan::transfer(const Shape& global, const Placements& from, const Placements& to) const {
  Layout held{global, from};
  double total = 0;
  for (const Step& step : redistribution_steps(mesh_, held, {global, to})) {
    if (step.kind != Collective::kBroadcast) {
      total += costs_.latency_seconds +
               enumerated_sent(mesh_, step, held) * costs_.element_bytes / costs_.network_bytes_per_second;
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

std::vector<ExhaustivePlan::Rows> ExhaustivePlan::row_combinations(const Trace::Node& node) const {
  std::vector<Rows> all = {Rows(static_cast<std::size_t>(mesh_.axes), nullptr)};
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (size(axis) == 1) continue;
    std::vector<Rows> next;
    for (const Rows& rows : all) {
      for (const Row& row : node.signature.rows) {
        if (axis == 0 ? !(row.outputs[0] == Placement::shard(0)) : units(node, row) < size(axis)) continue;
        next.push_back(rows);
        next.back()[static_cast<std::size_t>(axis)] = &row;
      }
    }
    all = next;
  }
  return all;
}

Placements ExhaustivePlan::operand(const Rows& rows, std::size_t i) const {
  Placements placements;
  for (std::size_t axis = 0; axis < rows.size(); ++axis) {
    if (rows[axis] != nullptr) placements.of[axis] = rows[axis]->inputs[i];
  }
  return placements;
}

Placements ExhaustivePlan::output(const Rows& rows, std::size_t o) const {
  Placements placements;
  for (std::size_t axis = 0; axis < rows.size(); ++axis) {
    if (rows[axis] != nullptr) placements.of[axis] = rows[axis]->outputs[o];
  }
  return placements;
}

/// What the rows' own algorithms send, which the operation says.
double ExhaustivePlan::own(const Trace::Node& node, const Rows& rows) const {
  AxisSet axes = 0;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const Row* row = rows[static_cast<std::size_t>(axis)];
    if (row != nullptr && row->communicates) axes |= axis_bit(axis);
  }
  if (axes == 0) return 0;
  std::vector<Layout> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back({node.signature.inputs[i], operand(rows, i)});
  return node.signature.own({mesh_, inputs, axes, costs_.element_bytes}).seconds(costs_);
}

/// Local work of the rank with the largest pieces, rows' own algorithms, and parameters gathered twice and
/// scattered.
double ExhaustivePlan::work(const Trace::Node& node, const Rows& rows) const {
  double flops = node.signature.forward_flops, elements = 0, total = own(node, rows);
  for (std::size_t o = 0; o < node.outputs.size(); ++o)
    elements += piece(node.signature.outputs[o], output(rows, o));
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const Row* row = rows[static_cast<std::size_t>(axis)];
    if (row == nullptr) continue;
    // What axes before this one leave of the dim.
    std::int64_t left = units(node, *row);
    for (int before = 0; before < axis; ++before) {
      if (rows[static_cast<std::size_t>(before)] == row) left = (left + size(before) - 1) / size(before);
    }
    flops *= std::ceil(static_cast<double>(left) / size(axis)) / static_cast<double>(left);
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    elements += piece(node.signature.inputs[i], operand(rows, i));
    if (value(node.inputs[i]).role == Trace::Role::kParameter) total += gather(node, rows, i);
  }
  return total + 3 * flops / costs_.flops_per_second +
         3 * elements * costs_.element_bytes / costs_.memory_bytes_per_second;
}

double ExhaustivePlan::gather(const Trace::Node& node, const Rows& rows, std::size_t i) const {
  double holders = 1;
  for (int axis = 1; axis < mesh_.axes; ++axis) {
    if (!operand(rows, i)[axis].is_shard()) holders *= size(axis);
  }
  const double bytes = piece(node.signature.inputs[i], operand(rows, i)) * costs_.element_bytes;
  return 3 * bytes * (holders - 1) / holders / costs_.network_bytes_per_second;
}

/// How often backward makes an operation's result again: for each operation that saves it, and each time
/// that the result of an operation which reads it is made again.
int ExhaustivePlan::made_again(const Trace::Node& node) const {
  if (!node.signature.remade) return 0;
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
double ExhaustivePlan::input(const Trace::Node& node, const Rows& rows, std::size_t i,
                             const Placements& home) const {
  if (value(node.inputs[i]).role == Trace::Role::kParameter) return 0;
  const Placements wanted = operand(rows, i);
  Placements gradient = wanted;
  for (std::size_t axis = 0; axis < rows.size(); ++axis)
    gradient.of[axis] = gradient_placement(wanted.of[axis], rows[axis] != nullptr);
  const Shape& shape = node.signature.inputs[i];
  return transfer(shape, home, wanted) * (1 + (node.signature.saved[i] ? 1 : 0) + made_again(node)) +
         transfer(shape, gradient, dual(home));
}

/// The result out, again each time that it is made again, and its gradient in.
double ExhaustivePlan::result(const Trace::Node& node, const Rows& rows, std::size_t o,
                              const Placements& home) const {
  const Shape& shape = node.signature.outputs[o];
  return transfer(shape, output(rows, o), home) * (1 + made_again(node)) +
         transfer(shape, dual(home), dual(output(rows, o)));
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
  for (const Rows& rows : row_combinations(node)) {
    std::vector<std::vector<double>> of_home;  // by column
    for (const int v : table.values) of_home.emplace_back(homes(v).size(), 0.0);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      for (std::size_t h = 0; h < homes(node.inputs[i]).size(); ++h)
        of_home[input_column[i]][h] += input(node, rows, i, homes(node.inputs[i])[h]);
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      for (std::size_t h = 0; h < homes(node.outputs[o]).size(); ++h)
        of_home[output_column[o]][h] += result(node, rows, o, homes(node.outputs[o])[h]);
    }
    const double local = work(node, rows);
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
