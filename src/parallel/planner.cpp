#include "parallel/planner.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// For each axis the number of a row, or -1 for all-Replicate.
using AxisRows = std::array<int, kMaxAxes>;

/// One way to run an operation on all axes at once.
struct RowChoice {
  Decision decision;   // `output` not yet chosen
  double seconds = 0;  // local work, forward and backward, and the traffic of parameters
};

class Search {
 public:
  Search(const Trace& trace, const MeshShape& mesh, const CostModel& model)
      : trace_(trace),
        mesh_(mesh),
        model_(model),
        homes_(trace.values.size()),
        last_use_(trace.values.size(), -1) {
    for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
      for (const int input : trace.nodes[n].inputs)
        last_use_[static_cast<std::size_t>(input)] = static_cast<int>(n);
    }
    find_homes();
  }

  Plan run();

 private:
  // A state: which home each live activation has (by value number), in order of value.
  using Homes = std::vector<std::pair<int, int>>;
  struct Reached {
    double seconds = kNever;
    const Homes* from = nullptr;
    int choice = -1;
    int home = -1;
  };
  // For one combination of input homes: the best choice for each output home.
  struct Best {
    std::vector<double> seconds;
    std::vector<int> choice;
  };

  /// Seconds to bring operand i from each of its homes to what each choice wants, in[i][home][choice], and
  /// the result to each of its homes, out[choice][home]; parameters have no homes.
  struct EdgeCosts {
    std::vector<std::vector<std::vector<double>>> in;
    std::vector<std::vector<double>> out;
  };

  const Trace::Value& value(int v) const { return trace_.values[static_cast<std::size_t>(v)]; }
  Layout layout(int v, const Placements& p) const { return {value(v).shape, p}; }
  const std::vector<Placements>& homes_of(int v) const { return homes_[static_cast<std::size_t>(v)]; }

  void find_homes();
  std::vector<Placement> candidates(int v, int axis) const;
  std::vector<int> rows_on_axis(const Trace::Node& node, int axis) const;
  std::vector<RowChoice> row_choices(const Trace::Node& node) const;
  RowChoice make_choice(const Trace::Node& node, const AxisRows& rows) const;
  double local_seconds(const Trace::Node& node, const Decision& decision) const;
  double ring_seconds(const Trace::Node& node, const AxisRows& rows, const Decision& decision) const;
  double own_seconds(const Trace::Node& node, const Decision& decision, const AxisRows& rows) const;
  double parameter_seconds(const Layout& compute) const;
  double transfer(const Layout& from, const Layout& to) const {
    return transfer_cost(mesh_, from, to, model_.element_bytes).seconds(model_);
  }
  double input_seconds(const Trace::Node& node, std::size_t i, const Decision& decision,
                       const Placements& home) const;
  double output_seconds(const Trace::Node& node, const Decision& decision, const Placements& home) const;
  EdgeCosts edge_costs(const Trace::Node& node, const std::vector<RowChoice>& choices) const;
  Best best_of(const Trace::Node& node, const std::vector<RowChoice>& choices, const EdgeCosts& costs,
               const std::vector<int>& homes) const;
  void extend(std::size_t n);
  Plan trace_back() const;

  const Trace& trace_;
  const MeshShape& mesh_;
  const CostModel& model_;
  std::vector<std::vector<Placements>> homes_;
  std::vector<int> last_use_;
  std::vector<std::vector<RowChoice>> choices_;    // by operation
  std::vector<std::map<Homes, Reached>> reached_;  // before each operation, and after the last
};

/// Cuts that the value's producer gives or its consumers take, so that some neighbour needs no transfer.
std::vector<Placement> Search::candidates(int v, int axis) const {
  std::vector<Placement> found;
  const int size = mesh_.size[static_cast<std::size_t>(axis)];
  const auto add = [&](const Placement& p, bool any_extent) {
    if (!p.is_shard() || std::find(found.begin(), found.end(), p) != found.end()) return;
    if (any_extent || value(v).shape[p.dim] / p.unit >= size) found.push_back(p);
  };
  for (const bool any_extent : {false, true}) {
    for (const Trace::Node& node : trace_.nodes) {
      for (const Row& row : node.signature.rows) {
        if (node.output == v) add(row.output, any_extent);
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          if (node.inputs[i] == v) add(row.inputs[i], any_extent);
        }
      }
    }
    if (!found.empty()) return found;
  }
  return {Placement::replicate()};
}

void Search::find_homes() {
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
}

/// On the data axis the sample is cut, elsewhere any letter that has enough values for all ranks.
std::vector<int> Search::rows_on_axis(const Trace::Node& node, int axis) const {
  const std::vector<Row>& rows = node.signature.rows;
  std::vector<int> found;
  const int size = mesh_.size[static_cast<std::size_t>(axis)];
  const auto extent = [&](const Row& row) {
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
      const Placement& p = row.inputs[i];
      if (p.is_shard()) return (node.signature.inputs[i][p.dim] + p.unit - 1) / p.unit;
    }
    return std::int64_t{0};
  };
  if (axis == 0) {
    const auto sample = std::find_if(rows.begin(), rows.end(),
                                     [](const Row& row) { return row.output == Placement::shard(0); });
    found.push_back(sample == rows.end() ? -1 : static_cast<int>(sample - rows.begin()));
    return found;
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (extent(rows[r]) >= size) found.push_back(static_cast<int>(r));
  }
  if (!found.empty()) return found;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (extent(rows[r]) > 1) found.push_back(static_cast<int>(r));
  }
  found.push_back(-1);
  return found;
}

RowChoice Search::make_choice(const Trace::Node& node, const AxisRows& rows) const {
  RowChoice choice;
  Decision& d = choice.decision;
  d.inputs.resize(node.inputs.size());
  std::vector<std::string> labels;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const int r = rows[static_cast<std::size_t>(axis)];
    if (mesh_.size[static_cast<std::size_t>(axis)] == 1) continue;
    if (r < 0) {
      labels.push_back("-");
      continue;
    }
    const Row& row = node.signature.rows[static_cast<std::size_t>(r)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) d.inputs[i][axis] = row.inputs[i];
    d.row_output[axis] = row.output;
    d.cut |= axis_bit(axis);
    labels.push_back(row.label);
  }
  d.rows = join(labels, " ");
  choice.seconds += local_seconds(node, d) + own_seconds(node, d, rows) + ring_seconds(node, rows, d);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (value(node.inputs[i]).role == Trace::Role::kParameter) {
      choice.seconds += parameter_seconds(layout(node.inputs[i], d.inputs[i]));
    }
  }
  return choice;
}

std::vector<RowChoice> Search::row_choices(const Trace::Node& node) const {
  AxisRows none;
  none.fill(-1);
  std::vector<AxisRows> combinations(1, none);
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (mesh_.size[static_cast<std::size_t>(axis)] == 1) continue;
    std::vector<AxisRows> next;
    for (const int row : rows_on_axis(node, axis)) {
      for (AxisRows combination : combinations) {
        combination[static_cast<std::size_t>(axis)] = row;
        next.push_back(combination);
      }
    }
    combinations = std::move(next);
  }
  std::vector<RowChoice> choices;
  for (const AxisRows& rows : combinations) choices.push_back(make_choice(node, rows));
  return choices;
}

/// The largest piece's share of the FLOPs (backward is twice the forward) and of the bytes through memory.
double Search::local_seconds(const Trace::Node& node, const Decision& decision) const {
  const Coordinates first{};
  double bytes = 0, share = 1;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Layout input = layout(node.inputs[i], decision.inputs[i]);
    bytes += static_cast<double>(input.box(mesh_, first).extent.count()) * model_.element_bytes;
  }
  const Layout output = layout(node.output, decision.row_output);
  bytes += static_cast<double>(output.box(mesh_, first).extent.count()) * model_.element_bytes;
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
      share *= static_cast<double>(input.box(mesh_, first).extent[p.dim]) /
               static_cast<double>(std::max<std::int64_t>(input.global[p.dim], 1));
      break;
    }
  }
  return 3 * (node.signature.forward_flops * share / model_.flops_per_second +
              bytes / model_.memory_bytes_per_second);
}

/// What rows with a ring send, once over the set of their axes.
double Search::ring_seconds(const Trace::Node& node, const AxisRows& rows, const Decision& decision) const {
  double share = 0, ranks = 1;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const int r = rows[static_cast<std::size_t>(axis)], size = mesh_.size[static_cast<std::size_t>(axis)];
    if (size == 1 || r < 0 || node.signature.rows[static_cast<std::size_t>(r)].ring == 0) continue;
    share = node.signature.rows[static_cast<std::size_t>(r)].ring;
    ranks *= size;
  }
  const Layout last = layout(node.inputs.back(), decision.inputs.back());
  const double piece = static_cast<double>(last.box(mesh_, {}).extent.count());
  constexpr double kMessages = 3;  // forward one, backward two
  return (ranks - 1) * (kMessages * model_.latency_seconds +
                        share * piece * model_.element_bytes / model_.network_bytes_per_second);
}

/// What the rows' own algorithms send, forward and backward.
double Search::own_seconds(const Trace::Node& node, const Decision& decision, const AxisRows& rows) const {
  double seconds = 0;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const int r = rows[static_cast<std::size_t>(axis)];
    if (r < 0) continue;
    const Row& row = node.signature.rows[static_cast<std::size_t>(r)];
    if (row.slice_bytes == 0) continue;
    const Shape piece = layout(node.inputs[0], decision.inputs[0]).box(mesh_, {}).extent;
    const std::int64_t slice = piece.count() / std::max<std::int64_t>(piece[row.inputs[0].dim], 1);
    seconds += 2 * (model_.latency_seconds +
                    static_cast<double>(row.slice_bytes * slice) / model_.network_bytes_per_second);
  }
  return seconds;
}

/// A parameter is gathered along the axes that do not cut it, forward and backward, and its gradient is
/// scattered. No latency: a block's parameters travel together.
double Search::parameter_seconds(const Layout& compute) const {
  double ranks = 1;
  for (int axis = 1; axis < mesh_.axes; ++axis) {
    if (!compute.placements[axis].is_shard()) ranks *= mesh_.size[static_cast<std::size_t>(axis)];
  }
  const double piece = static_cast<double>(compute.box(mesh_, {}).extent.count());
  return 3 * (ranks - 1) / ranks * piece * model_.element_bytes / model_.network_bytes_per_second;
}

double Search::input_seconds(const Trace::Node& node, std::size_t i, const Decision& decision,
                             const Placements& home) const {
  const Layout held = layout(node.inputs[i], home), wanted = layout(node.inputs[i], decision.inputs[i]);
  Placements gradient;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    gradient[axis] = gradient_placement(decision.inputs[i][axis], contains(decision.cut, axis));
  }
  const double forward = transfer(held, wanted);
  return forward * (node.signature.saved[i] ? 2 : 1) +
         transfer(layout(node.inputs[i], gradient), layout(node.inputs[i], dual(home)));
}

double Search::output_seconds(const Trace::Node& node, const Decision& decision,
                              const Placements& home) const {
  return transfer(layout(node.output, decision.row_output), layout(node.output, home)) +
         transfer(layout(node.output, dual(home)), layout(node.output, dual(decision.row_output)));
}

Search::Best Search::best_of(const Trace::Node& node, const std::vector<RowChoice>& choices,
                             const EdgeCosts& costs, const std::vector<int>& homes) const {
  const std::size_t outputs = homes_of(node.output).size();
  Best best{std::vector<double>(outputs, kNever), std::vector<int>(outputs, -1)};
  for (std::size_t c = 0; c < choices.size(); ++c) {
    double seconds = choices[c].seconds;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!costs.in[i].empty()) seconds += costs.in[i][static_cast<std::size_t>(homes[i])][c];
    }
    for (std::size_t h = 0; h < outputs; ++h) {
      if (seconds + costs.out[c][h] < best.seconds[h]) {
        best.seconds[h] = seconds + costs.out[c][h];
        best.choice[h] = static_cast<int>(c);
      }
    }
  }
  return best;
}

Search::EdgeCosts Search::edge_costs(const Trace::Node& node, const std::vector<RowChoice>& choices) const {
  EdgeCosts costs;
  costs.in.resize(node.inputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    for (const Placements& home : homes_of(node.inputs[i])) {
      std::vector<double>& row = costs.in[i].emplace_back();
      for (const RowChoice& choice : choices) row.push_back(input_seconds(node, i, choice.decision, home));
    }
  }
  for (const RowChoice& choice : choices) {
    std::vector<double>& row = costs.out.emplace_back();
    for (const Placements& home : homes_of(node.output)) {
      row.push_back(output_seconds(node, choice.decision, home));
    }
  }
  return costs;
}

/// From the states before operation n to those after it.
void Search::extend(std::size_t n) {
  const Trace::Node& node = trace_.nodes[n];
  const std::vector<RowChoice>& choices = choices_.emplace_back(row_choices(node));
  const EdgeCosts costs = edge_costs(node, choices);
  const auto used_later = [&](int v) { return last_use_[static_cast<std::size_t>(v)] > static_cast<int>(n); };
  const bool stays = value(node.output).role == Trace::Role::kActivation && used_later(node.output);
  std::map<std::vector<int>, Best> known;
  for (const auto& [state, cost] : reached_[n]) {
    std::vector<int> homes(node.inputs.size(), 0);
    Homes alive;
    for (const auto& [v, home] : state) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (v == node.inputs[i]) homes[i] = home;
      }
      if (used_later(v)) alive.emplace_back(v, home);
    }
    auto [best, fresh] = known.try_emplace(homes);
    if (fresh) best->second = best_of(node, choices, costs, homes);
    for (std::size_t h = 0; h < homes_of(node.output).size(); ++h) {
      Homes next = alive;
      if (stays) next.emplace_back(node.output, static_cast<int>(h));
      Reached& target = reached_[n + 1][next];
      const double seconds = cost.seconds + best->second.seconds[h];
      if (seconds < target.seconds) target = {seconds, &state, best->second.choice[h], static_cast<int>(h)};
    }
  }
}

/// The decisions on the cheapest way to a last state.
Plan Search::trace_back() const {
  Plan plan;
  plan.decisions.resize(trace_.nodes.size());
  plan.parameters.resize(trace_.values.size());
  const auto end =
      std::min_element(reached_.back().begin(), reached_.back().end(),
                       [](const auto& a, const auto& b) { return a.second.seconds < b.second.seconds; });
  require(end != reached_.back().end() && end->second.seconds < kNever, "a block has no valid plan");
  plan.seconds = end->second.seconds;
  const Homes* state = &end->first;
  for (std::size_t n = trace_.nodes.size(); n-- > 0;) {
    const Reached& step = reached_[n + 1].at(*state);
    const Trace::Node& node = trace_.nodes[n];
    Decision& decision = plan.decisions[n];
    decision = choices_[n][static_cast<std::size_t>(step.choice)].decision;
    decision.output = homes_of(node.output)[static_cast<std::size_t>(step.home)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (value(node.inputs[i]).role == Trace::Role::kParameter) {
        plan.parameters[static_cast<std::size_t>(node.inputs[i])] = decision.inputs[i];
      }
    }
    state = step.from;
  }
  return plan;
}

Plan Search::run() {
  reached_.resize(trace_.nodes.size() + 1);
  reached_[0][{}] = {0.0};
  for (std::size_t n = 0; n < trace_.nodes.size(); ++n) extend(n);
  return trace_back();
}

}  // namespace

Plan make_plan(const Trace& trace, const MeshShape& mesh, const CostModel& model) {
  return Search(trace, mesh, model).run();
}

std::string Plan::to_string(const Trace& trace, const MeshShape& mesh) const {
  std::string text;
  for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
    const Trace::Node& node = trace.nodes[n];
    text += concat("  ", node.signature.name, "  rows: ", decisions[n].rows, "  ");
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      text += concat(i > 0 ? ", " : "", Layout{trace.values[static_cast<std::size_t>(node.inputs[i])].shape,
                                               decisions[n].inputs[i]}
                                            .to_string(mesh));
    }
    text += concat(" -> ", Layout{node.signature.output, decisions[n].output}.to_string(mesh), "\n");
  }
  return text;
}

}  // namespace jigsaw
