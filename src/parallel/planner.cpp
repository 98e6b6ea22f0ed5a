#include "parallel/planner.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// For each axis the number of a row, or -1 for all-Replicate.
using AxisRows = std::array<int, kMaxAxes>;

/// One way to run an operation on all axes at once.
struct RowChoice {
  Decision decision;             // `output` not yet chosen
  double seconds = 0;            // local work, forward and backward, and the traffic of parameters
  double least = 0;              // with what must travel in and out at least
  double least_out = 0;          // of which out
  std::vector<double> least_in;  // of which in, by input
  std::vector<int> wants;        // by input: which of Edges::wants
  int gives = 0;                 // which of Edges::gives
};

/// Placements as numbers that can be ordered.
using Key = std::array<std::int64_t, kMaxAxes>;
Key key_of(const Placements& placements) {
  Key key;
  for (std::size_t axis = 0; axis < key.size(); ++axis) {
    const Placement& p = placements.of[axis];
    key[axis] = std::int64_t{p.unit} * 256 + p.dim * 16 + static_cast<int>(p.kind);
  }
  return key;
}

class Search {
 public:
  Search(const Trace& trace, const MeshShape& mesh, const CostModel& model)
      : trace_(trace),
        mesh_(mesh),
        model_(model),
        homes_(trace.values.size()),
        always_cut_(trace.values.size()),
        last_use_(trace.values.size(), -1) {
    for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
      for (const int input : trace.nodes[n].inputs)
        last_use_[static_cast<std::size_t>(input)] = static_cast<int>(n);
    }
    find_rows();
    find_homes();
    for (std::size_t n = 0; n < trace.nodes.size(); ++n) find_choices(n);
    least_rest_.assign(trace.nodes.size() + 1, 0.0);
    for (std::size_t n = trace.nodes.size(); n-- > 0;) {
      double least = kNever;
      for (const RowChoice& choice : choices_[n]) least = std::min(least, choice.least);
      least_rest_[n] = least_rest_[n + 1] + least;
    }
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
  // The cheapest way so far to a result as rows give it, or brought to a home.
  struct Given {
    double seconds = kNever;
    const Homes* state = nullptr;
    int choice = -1;
    int home = -1;
  };

  // What a value in some home adds to the least cost of the next operation that takes it: right up to slack.
  struct Arrival {
    double seconds = 0, slack = -1;
  };

  /// Seconds to bring operand i from each of its homes to each layout that some choice wants,
  /// in[i][home][want], and each result that a choice gives to each home, out[give][home]; computed when
  /// first asked for (negative until then). Parameters have no homes.
  struct Edges {
    std::vector<std::vector<int>> wants;  // by input: a choice that wants it so
    std::vector<int> gives;               // a choice that gives it so
    std::vector<std::vector<std::vector<double>>> in;
    std::vector<std::vector<double>> out;
    std::vector<std::vector<Arrival>> arrivals;  // by input and home, see arrival()
  };

  const Trace::Value& value(int v) const { return trace_.values[static_cast<std::size_t>(v)]; }
  Layout layout(int v, const Placements& p) const { return {value(v).shape, p}; }
  const std::vector<Placements>& homes_of(int v) const { return homes_[static_cast<std::size_t>(v)]; }

  const std::vector<Row>& rows_of(const Trace::Node& node) const {
    return rows_[static_cast<std::size_t>(&node - trace_.nodes.data())];
  }

  void find_rows();
  void find_homes();
  void find_choices(std::size_t n);
  double least_in(const Trace::Node& node, std::size_t i, const Decision& decision) const;
  double least_out(const Trace::Node& node, const Decision& decision) const;
  double least_gather(int v, const Placements& whole, int gathers, int messages) const;
  double arrival(std::size_t n, int v, int home, double slack);
  double in_seconds(std::size_t n, std::size_t i, int home, int want);
  double out_seconds(std::size_t n, int give, int home);
  std::vector<Placement> candidates(int v, int axis) const;
  std::vector<int> rows_on_axis(const Trace::Node& node, int axis) const;
  std::vector<RowChoice> row_choices(const Trace::Node& node) const;
  RowChoice make_choice(const Trace::Node& node, const AxisRows& rows) const;
  double local_seconds(const Trace::Node& node, const Decision& decision) const;
  double own_seconds(const Trace::Node& node, const Decision& decision, const AxisRows& rows) const;
  double parameter_seconds(const Layout& compute) const;
  double transfer(const Layout& from, const Layout& to) const {
    return transfer_cost(mesh_, from, to, model_.element_bytes).seconds(model_);
  }
  double input_seconds(const Trace::Node& node, std::size_t i, const Decision& decision,
                       const Placements& home) const;
  double output_seconds(const Trace::Node& node, const Decision& decision, const Placements& home) const;
  void offer(std::size_t n, const std::vector<int>& homes, const Homes* state, double seconds, double left,
             std::vector<Given>& given);
  std::vector<Given> place(std::size_t n, const std::vector<Given>& given, const std::vector<int>& homes,
                           double left);
  void extend(std::size_t n, double limit);
  Plan trace_back() const;

  const Trace& trace_;
  const MeshShape& mesh_;
  const CostModel& model_;
  std::vector<std::vector<Placements>> homes_;
  std::vector<AxisSet> always_cut_;  // by value: the axes that cut it in all its homes
  std::vector<int> last_use_;
  std::vector<std::vector<Row>> rows_;             // by operation: without Partial inputs, in all units
  std::vector<std::vector<RowChoice>> choices_;    // by operation, in ascending order of `least`
  std::vector<Edges> edges_;                       // by operation
  std::vector<double> least_rest_;                 // what the operations from each on cost at least
  std::vector<std::map<Homes, Reached>> reached_;  // before each operation, and after the last
};

/// The rows that keep values fully cut; where a neighbour cuts the same dim in multiples of a row's units, in
/// those (units scale): a field in patches stays in patches.
void Search::find_rows() {
  std::vector<std::set<std::pair<int, std::int64_t>>> units(trace_.values.size());  // dim and unit
  const auto note = [&](int v, const Placement& p) {
    return p.is_shard() && p.unit > 1 && units[static_cast<std::size_t>(v)].emplace(p.dim, p.unit).second;
  };
  const auto note_row = [&](const Trace::Node& node, const Row& row) {
    bool fresh = note(node.output, row.output);
    for (std::size_t i = 0; i < row.inputs.size(); ++i) fresh = note(node.inputs[i], row.inputs[i]) || fresh;
    return fresh;
  };
  /// Multiples of p's unit in which v is cut along the same dim.
  const auto add_multiples = [&](int v, const Placement& p, std::set<std::int64_t>& multiples) {
    if (!p.is_shard()) return;
    for (const auto& [dim, unit] : units[static_cast<std::size_t>(v)]) {
      if (dim == p.dim && unit > p.unit && unit % p.unit == 0) multiples.insert(unit / p.unit);
    }
  };
  const auto rows_in_units = [&](const Trace::Node& node) {
    std::vector<Row> rows;
    for (const Row& row : node.signature.rows) {
      const auto partial = [](const Placement& p) { return p.is_partial(); };
      if (std::any_of(row.inputs.begin(), row.inputs.end(), partial)) continue;
      std::set<std::int64_t> multiples;
      add_multiples(node.output, row.output, multiples);
      for (std::size_t i = 0; i < row.inputs.size(); ++i)
        add_multiples(node.inputs[i], row.inputs[i], multiples);
      if (multiples.empty()) multiples.insert(1);
      for (const std::int64_t k : multiples) rows.push_back(scaled(row, k));
    }
    return rows;
  };
  for (std::size_t v = 0; v < trace_.values.size(); ++v) {
    for (const Placement& p : trace_.values[v].placements.of) note(static_cast<int>(v), p);
  }
  for (const Trace::Node& node : trace_.nodes) {
    for (const Row& row : node.signature.rows) note_row(node, row);
  }
  for (bool fresh = true; fresh;) {
    fresh = false;
    rows_.clear();
    for (const Trace::Node& node : trace_.nodes) {
      rows_.push_back(rows_in_units(node));
      for (const Row& row : rows_.back()) fresh = note_row(node, row) || fresh;
    }
  }
}

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
      for (const Row& row : rows_of(node)) {
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
  for (std::size_t i = 0; i < trace_.values.size(); ++i) {
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      const auto cut = [axis](const Placements& home) { return home[axis].is_shard(); };
      if (std::all_of(homes_[i].begin(), homes_[i].end(), cut)) always_cut_[i] |= axis_bit(axis);
    }
  }
}

/// On the data axis the sample is cut, elsewhere any letter that has enough values for all ranks.
std::vector<int> Search::rows_on_axis(const Trace::Node& node, int axis) const {
  const std::vector<Row>& rows = rows_of(node);
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
    const Row& row = rows_of(node)[static_cast<std::size_t>(r)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) d.inputs[i][axis] = row.inputs[i];
    d.row_output[axis] = row.output;
    d.cut |= axis_bit(axis);
    labels.push_back(row.label);
  }
  d.rows = join(labels, " ");
  choice.seconds += local_seconds(node, d) + own_seconds(node, d, rows);
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
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (!contains(decision.cut, axis)) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Placement& p = decision.inputs[i][axis];
      if (!p.is_shard()) continue;
      const std::int64_t units = (value(node.inputs[i]).shape[p.dim] + p.unit - 1) / p.unit;
      const int size = mesh_.size[static_cast<std::size_t>(axis)];
      const std::int64_t largest = (units + size - 1) / size;
      share *= static_cast<double>(largest) / static_cast<double>(std::max<std::int64_t>(units, 1));
      break;
    }
  }
  return 3 * (node.signature.forward_flops * share / model_.flops_per_second +
              bytes / model_.memory_bytes_per_second);
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

/// What gathering a fully cut value along the axes on which `whole` holds it whole costs at least: every
/// element of the largest piece goes to each other rank that wants it.
double Search::least_gather(int v, const Placements& whole, int gathers, int messages) const {
  double copies = 1, pieces = 1;
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    const int size = mesh_.size[static_cast<std::size_t>(axis)];
    pieces *= size;
    if (contains(always_cut_[static_cast<std::size_t>(v)], axis) && !whole[axis].is_shard()) copies *= size;
  }
  if (copies == 1) return 0;
  const double bytes =
      static_cast<double>(value(v).shape.count()) / pieces * (copies - 1) * model_.element_bytes;
  return messages * model_.latency_seconds + gathers * bytes / model_.network_bytes_per_second;
}

double Search::least_in(const Trace::Node& node, std::size_t i, const Decision& decision) const {
  const int v = node.inputs[i];
  if (value(v).role == Trace::Role::kParameter) return 0;
  if (homes_of(v).size() == 1) return input_seconds(node, i, decision, homes_of(v)[0]);
  bool summed = false;  // the gradient
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    summed = summed || (contains(decision.cut, axis) && decision.inputs[i][axis].is_replicate());
  }
  const int gathers = node.signature.saved[i] ? 2 : 1;
  return least_gather(v, decision.inputs[i], gathers, gathers + (summed ? 1 : 0));
}

double Search::least_out(const Trace::Node& node, const Decision& decision) const {
  const std::vector<Placements>& homes = homes_of(node.output);
  if (homes.size() == 1) return output_seconds(node, decision, homes[0]);
  return least_gather(node.output, decision.row_output, 1, decision.row_output.any_partial() ? 2 : 1);
}

/// The ways to run an operation, and the layouts that they have in common.
void Search::find_choices(std::size_t n) {
  const Trace::Node& node = trace_.nodes[n];
  std::vector<RowChoice>& choices = choices_.emplace_back(row_choices(node));
  for (RowChoice& choice : choices) {
    choice.least_out = least_out(node, choice.decision);
    choice.least = choice.seconds + choice.least_out;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      choice.least_in.push_back(least_in(node, i, choice.decision));
      choice.least += choice.least_in.back();
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const RowChoice& a, const RowChoice& b) { return a.least < b.least; });
  Edges& edges = edges_.emplace_back();
  edges.wants.resize(node.inputs.size());
  std::vector<std::map<std::pair<Key, AxisSet>, int>> wants(node.inputs.size());
  std::map<Key, int> gives;
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const Decision& decision = choices[c].decision;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto [want, fresh] = wants[i].try_emplace({key_of(decision.inputs[i]), decision.cut},
                                                      static_cast<int>(edges.wants[i].size()));
      if (fresh) edges.wants[i].push_back(static_cast<int>(c));
      choices[c].wants.push_back(want->second);
    }
    const auto [give, fresh] =
        gives.try_emplace(key_of(decision.row_output), static_cast<int>(edges.gives.size()));
    if (fresh) edges.gives.push_back(static_cast<int>(c));
    choices[c].gives = give->second;
  }
  for (const int v : node.inputs) {
    edges.in.emplace_back(homes_of(v).size());
    edges.arrivals.emplace_back(homes_of(v).size());
  }
  edges.out.resize(edges.gives.size());
}

double Search::in_seconds(std::size_t n, std::size_t i, int home, int want) {
  const Trace::Node& node = trace_.nodes[n];
  Edges& edges = edges_[n];
  const std::vector<int>& wants = edges.wants[i];
  std::vector<double>& row = edges.in[i][static_cast<std::size_t>(home)];
  if (row.empty()) row.assign(wants.size(), -1.0);
  double& seconds = row[static_cast<std::size_t>(want)];
  if (seconds < 0) {
    const auto choice = static_cast<std::size_t>(wants[static_cast<std::size_t>(want)]);
    seconds = input_seconds(node, i, choices_[n][choice].decision,
                            homes_of(node.inputs[i])[static_cast<std::size_t>(home)]);
  }
  return seconds;
}

double Search::out_seconds(std::size_t n, int give, int home) {
  const Trace::Node& node = trace_.nodes[n];
  Edges& edges = edges_[n];
  const std::vector<Placements>& homes = homes_of(node.output);
  std::vector<double>& row = edges.out[static_cast<std::size_t>(give)];
  if (row.empty()) row.assign(homes.size(), -1.0);
  double& seconds = row[static_cast<std::size_t>(home)];
  if (seconds < 0) {
    const auto choice = static_cast<std::size_t>(edges.gives[static_cast<std::size_t>(give)]);
    seconds = output_seconds(node, choices_[n][choice].decision, homes[static_cast<std::size_t>(home)]);
  }
  return seconds;
}

/// What the first operation after n that takes v costs above its least when v stands in this home, or more
/// than `slack` where that is more.
double Search::arrival(std::size_t n, int v, int home, double slack) {
  std::size_t next = n + 1, i = 0;
  const auto takes = [&](const std::vector<int>& inputs) {
    i = static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), v) - inputs.begin());
    return i < inputs.size();
  };
  while (!takes(trace_.nodes[next].inputs)) ++next;
  Arrival& arrival = edges_[next].arrivals[i][static_cast<std::size_t>(home)];
  if (arrival.slack >= slack) return arrival.seconds;
  const double least = choices_[next][0].least;
  arrival = {kNever, slack};
  for (const RowChoice& choice : choices_[next]) {
    if (choice.least - least > std::min(slack, arrival.seconds)) break;
    arrival.seconds = std::min(arrival.seconds, choice.least - choice.least_in[i] - least +
                                                    in_seconds(next, i, home, choice.wants[i]));
  }
  return arrival.seconds;
}

/// Offers what operation n gives after a state that costs `seconds`, its inputs in these homes.
void Search::offer(std::size_t n, const std::vector<int>& homes, const Homes* state, double seconds,
                   double left, std::vector<Given>& given) {
  given.resize(edges_[n].gives.size());
  for (std::size_t c = 0; c < choices_[n].size(); ++c) {
    const RowChoice& choice = choices_[n][c];
    if (seconds + choice.least > left) break;
    double total = seconds + choice.seconds;
    Given& best = given[static_cast<std::size_t>(choice.gives)];
    const double bound = std::min(left - choice.least_out, best.seconds);
    for (std::size_t i = 0; i < homes.size() && total <= bound; ++i) {
      if (!edges_[n].in[i].empty()) total += in_seconds(n, i, homes[i], choice.wants[i]);
    }
    if (total <= bound && total < best.seconds) best = {total, state, static_cast<int>(c), -1};
  }
}

/// What was offered, brought to each of these homes.
std::vector<Search::Given> Search::place(std::size_t n, const std::vector<Given>& given,
                                         const std::vector<int>& homes, double left) {
  std::vector<Given> placed(homes.size());
  for (std::size_t give = 0; give < given.size(); ++give) {
    if (given[give].seconds > left) continue;
    for (std::size_t h = 0; h < homes.size(); ++h) {
      const double seconds = given[give].seconds + out_seconds(n, static_cast<int>(give), homes[h]);
      if (seconds > left || seconds >= placed[h].seconds) continue;
      placed[h] = given[give];
      placed[h].seconds = seconds;
      placed[h].home = homes[h];
    }
  }
  std::erase_if(placed, [](const Given& one) { return one.seconds == kNever; });
  return placed;
}

/// From the states before operation n to those after it, as far as a plan of at most `limit` may pass there.
void Search::extend(std::size_t n, double limit) {
  const Trace::Node& node = trace_.nodes[n];
  const double left = limit - least_rest_[n + 1], slack = limit - least_rest_[0];
  const auto used_later = [&](int v) { return last_use_[static_cast<std::size_t>(v)] > static_cast<int>(n); };
  const bool stays = value(node.output).role == Trace::Role::kActivation && used_later(node.output);
  std::vector<int> targets;
  for (std::size_t h = 0; h < homes_of(node.output).size(); ++h) {
    const int home = static_cast<int>(h);
    if (!stays || arrival(n, node.output, home, slack) <= slack) targets.push_back(home);
  }
  // States by the homes of the inputs, and by what stays alive beside the result: the fewer of the two are
  // looked at one by one.
  using Entry = std::pair<const Homes*, double>;
  std::map<std::vector<int>, std::vector<Entry>> by_homes;
  std::map<Homes, std::vector<Entry>> by_alive;
  const auto homes_in = [&](const Homes& state) {
    std::vector<int> homes(node.inputs.size(), 0);
    for (const auto& [v, home] : state) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (v == node.inputs[i]) homes[i] = home;
      }
    }
    return homes;
  };
  const auto alive_after = [&](const Homes& state) {
    Homes alive;
    for (const auto& [v, home] : state) {
      if (used_later(v)) alive.emplace_back(v, home);
    }
    return alive;
  };
  for (const auto& [state, cost] : reached_[n]) {
    by_homes[homes_in(state)].emplace_back(&state, cost.seconds);
    by_alive[alive_after(state)].emplace_back(&state, cost.seconds);
  }
  const auto reach = [&](Homes alive, const Given& from, const Homes* state, double seconds) {
    if (stays) alive.emplace_back(node.output, from.home);
    for (const auto& [v, home] : alive) {
      if (seconds + arrival(n, v, home, slack) > left) return;
    }
    if (seconds > left) return;
    Reached& target = reached_[n + 1][alive];
    if (seconds < target.seconds) target = {seconds, state, from.choice, from.home};
  };
  if (by_homes.size() < by_alive.size()) {
    for (const auto& [homes, states] : by_homes) {
      double least = kNever;
      for (const Entry& entry : states) least = std::min(least, entry.second);
      std::vector<Given> given;
      offer(n, homes, nullptr, 0, left - least, given);
      for (const Given& from : place(n, given, targets, left - least)) {
        for (const Entry& entry : states)
          reach(alive_after(*entry.first), from, entry.first, entry.second + from.seconds);
      }
    }
    return;
  }
  for (const auto& [alive, states] : by_alive) {
    std::vector<Given> given;
    for (const Entry& entry : states)
      offer(n, homes_in(*entry.first), entry.first, entry.second, left, given);
    for (const Given& from : place(n, given, targets, left)) reach(alive, from, from.state, from.seconds);
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

/// What the operations cost at least bounds what a state can lead to, so that of the very many layouts most
/// are never looked at. The limit rises until a plan lies well within it; that plan is the cheapest of all.
Plan Search::run() {
  constexpr double kWithin = 0.999999, kRise = 1.06;
  const auto cost = [](const auto& reached) { return reached.second.seconds; };
  for (double limit = 1.01 * least_rest_[0];; limit *= kRise) {
    if (!(limit > 0) || limit > 1e6 * least_rest_[0]) limit = kNever;
    reached_.assign(trace_.nodes.size() + 1, {});
    reached_[0][{}] = {0.0};
    for (std::size_t n = 0; n < trace_.nodes.size(); ++n) extend(n, limit);
    double least = kNever;
    for (const auto& end : reached_.back()) least = std::min(least, cost(end));
    if (least <= kWithin * limit || limit == kNever) return trace_back();
  }
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
