#include "parallel/planner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "parallel/counted_plan.h"
#include "parallel/plan_space.h"

namespace jigsaw::inline parallel {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A choice, and what it has in common with others of its operation.
struct Option : RuleChoice {
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
      : trace_(trace), space_(trace, mesh, model), last_use_(trace.values.size(), -1) {
    for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
      for (const int input : trace.nodes[n].inputs)
        last_use_[static_cast<std::size_t>(input)] = static_cast<int>(n);
    }
    for (std::size_t n = 0; n < trace.nodes.size(); ++n) find_choices(n);
    least_rest_.assign(trace.nodes.size() + 1, 0.0);
    for (std::size_t n = trace.nodes.size(); n-- > 0;) {
      double least = kNever;
      for (const Option& choice : choices_[n]) least = std::min(least, choice.least);
      least_rest_[n] = least_rest_[n + 1] + least;
    }
  }

  Plan run();
  /// See CountedPlan.
  std::int64_t looked_at() const { return looked_at_ + space_.transfers(); }

 private:
  // A state: which home each live activation has (by value number), in order of value.
  using Homes = std::vector<std::pair<int, int>>;
  struct Reached {
    double seconds = kNever;
    const Homes* from = nullptr;
    int choice = -1;
    int homes = -1;
  };
  // The cheapest way so far to results as rules give them, or redistributed to homes.
  struct Given {
    double seconds = kNever;
    const Homes* state = nullptr;
    int choice = -1;
    int homes = -1;  // see home_of()
  };

  // What a value in some home adds to the least cost of the next operation that takes it; exact up to the
  // slack.
  struct Arrival {
    double seconds = 0, slack = -1;
  };

  /// Seconds to redistribute operand i from each of its homes to each layout that some choice wants,
  /// in[i][home][want], and what a choice gives to each of its results' homes, out[give][homes]; computed
  /// when first asked for (negative until then). Parameters have no homes.
  struct Edges {
    std::vector<std::vector<int>> wants;  // by input: a choice that wants it so
    std::vector<int> gives;               // a choice that gives it so
    std::vector<std::vector<std::vector<double>>> in;
    std::vector<std::vector<double>> out;
    std::vector<std::vector<Arrival>> arrivals;  // by input and home, see arrival()
  };

  const std::vector<Placements>& homes_of(int v) const { return space_.homes_of(v); }
  /// The results' homes as one number: how many there are, and which that is of result o.
  int homes_of_results(std::size_t n) const {
    std::size_t count = 1;
    for (const int v : trace_.nodes[n].outputs) count *= homes_of(v).size();
    return static_cast<int>(count);
  }
  int home_of(std::size_t n, std::size_t o, int homes) const {
    const std::vector<int>& outputs = trace_.nodes[n].outputs;
    for (std::size_t before = 0; before < o; ++before)
      homes /= static_cast<int>(homes_of(outputs[before]).size());
    return homes % static_cast<int>(homes_of(outputs[o]).size());
  }
  bool is_activation(int v) const { return space_.value(v).role == Trace::Role::kActivation; }

  void find_choices(std::size_t n);
  double arrival(std::size_t n, int v, int home, double slack);
  double in_seconds(std::size_t n, std::size_t i, int home, int want);
  double out_seconds(std::size_t n, int give, int homes);
  void offer(std::size_t n, const std::vector<int>& homes, const Homes* state, double seconds, double left,
             std::vector<Given>& given);
  std::vector<Given> place(std::size_t n, const std::vector<Given>& given, const std::vector<int>& homes,
                           double left);
  void extend(std::size_t n, double limit);
  Plan trace_back() const;

  const Trace& trace_;
  const PlanSpace space_;
  std::vector<int> last_use_;
  std::vector<std::vector<Option>> choices_;  // by operation, in ascending order of `least`
  std::vector<Edges> edges_;                  // by operation
  std::vector<double> least_rest_;            // what the operations from each on cost at least
  std::int64_t looked_at_ = 0;
  std::vector<std::map<Homes, Reached>> reached_;  // before each operation, and after the last
};

/// The ways to run an operation, and the layouts that they have in common.
void Search::find_choices(std::size_t n) {
  const Trace::Node& node = trace_.nodes[n];
  std::vector<Option>& choices = choices_.emplace_back();
  for (RuleChoice& choice : space_.rule_choices(node)) choices.push_back({std::move(choice)});
  for (Option& choice : choices) {
    choice.least_out = space_.least_out(node, choice.decision);
    choice.least = choice.seconds + choice.least_out;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      choice.least_in.push_back(space_.least_in(node, i, choice.decision));
      choice.least += choice.least_in.back();
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Option& a, const Option& b) { return a.least < b.least; });
  Edges& edges = edges_.emplace_back();
  edges.wants.resize(node.inputs.size());
  std::vector<std::map<std::tuple<Key, AxisSet, bool>, int>> wants(node.inputs.size());
  std::map<std::pair<std::vector<Key>, bool>, int> gives;
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const Decision& decision = choices[c].decision;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto [want, fresh] =
          wants[i].try_emplace({key_of(decision.inputs[i]), decision.cut, decision.rematerialised},
                               static_cast<int>(edges.wants[i].size()));
      if (fresh) edges.wants[i].push_back(static_cast<int>(c));
      choices[c].wants.push_back(want->second);
    }
    std::vector<Key> results;
    for (const Placements& output : decision.rule_outputs) results.push_back(key_of(output));
    const auto [give, fresh] = gives.try_emplace({std::move(results), decision.rematerialised},
                                                 static_cast<int>(edges.gives.size()));
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
    seconds = space_.input_seconds(node, i, choices_[n][choice].decision,
                                   homes_of(node.inputs[i])[static_cast<std::size_t>(home)]);
  }
  return seconds;
}

double Search::out_seconds(std::size_t n, int give, int homes) {
  const Trace::Node& node = trace_.nodes[n];
  Edges& edges = edges_[n];
  std::vector<double>& row = edges.out[static_cast<std::size_t>(give)];
  if (row.empty()) row.assign(static_cast<std::size_t>(homes_of_results(n)), -1.0);
  double& seconds = row[static_cast<std::size_t>(homes)];
  if (seconds < 0) {
    const auto choice = static_cast<std::size_t>(edges.gives[static_cast<std::size_t>(give)]);
    seconds = 0;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const Placements& home = homes_of(node.outputs[o])[static_cast<std::size_t>(home_of(n, o, homes))];
      seconds += space_.output_seconds(node, o, choices_[n][choice].decision, home);
    }
  }
  return seconds;
}

/// What the first operation after n that takes v costs above its least when v is kept in this home; any
/// number above `slack` where it is more than that.
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
  for (const Option& choice : choices_[next]) {
    ++looked_at_;
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
    const Option& choice = choices_[n][c];
    if (seconds + choice.least > left) break;
    ++looked_at_;
    double total = seconds + choice.seconds;
    Given& best = given[static_cast<std::size_t>(choice.gives)];
    const double bound = std::min(left - choice.least_out, best.seconds);
    for (std::size_t i = 0; i < homes.size() && total <= bound; ++i) {
      if (!edges_[n].in[i].empty()) total += in_seconds(n, i, homes[i], choice.wants[i]);
    }
    if (total <= bound && total < best.seconds) best = {total, state, static_cast<int>(c), -1};
  }
}

/// What was offered, redistributed to each of these homes of the results.
std::vector<Search::Given> Search::place(std::size_t n, const std::vector<Given>& given,
                                         const std::vector<int>& homes, double left) {
  std::vector<Given> placed(homes.size());
  for (std::size_t give = 0; give < given.size(); ++give) {
    if (given[give].seconds > left) continue;
    looked_at_ += std::ssize(homes);
    for (std::size_t h = 0; h < homes.size(); ++h) {
      const double seconds = given[give].seconds + out_seconds(n, static_cast<int>(give), homes[h]);
      if (seconds > left || seconds >= placed[h].seconds) continue;
      placed[h] = given[give];
      placed[h].seconds = seconds;
      placed[h].homes = homes[h];
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
  const auto stays = [&](int v) { return is_activation(v) && used_later(v); };
  const auto arrives = [&](std::size_t o, int homes) {
    const int v = node.outputs[o];
    return !stays(v) || arrival(n, v, home_of(n, o, homes), slack) <= slack;
  };
  std::vector<int> targets;
  for (int homes = 0; homes < homes_of_results(n); ++homes) {
    bool all = true;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) all = all && arrives(o, homes);
    if (all) targets.push_back(homes);
  }
  // States by the homes of the inputs, and by what stays alive beside the results: the fewer of the two are
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
    ++looked_at_;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (stays(node.outputs[o])) alive.emplace_back(node.outputs[o], home_of(n, o, from.homes));
    }
    for (const auto& [v, home] : alive) {
      if (seconds + arrival(n, v, home, slack) > left) return;
    }
    if (seconds > left) return;
    Reached& target = reached_[n + 1][alive];
    if (seconds < target.seconds) target = {seconds, state, from.choice, from.homes};
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
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const auto home = static_cast<std::size_t>(home_of(n, o, step.homes));
      decision.outputs.push_back(homes_of(node.outputs[o])[home]);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (space_.value(node.inputs[i]).role == Trace::Role::kParameter) {
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

CountedPlan make_counted_plan(const Trace& trace, const MeshShape& mesh, const CostModel& model) {
  Search search(trace, mesh, model);
  Plan plan = search.run();
  return {std::move(plan), search.looked_at()};
}

Plan make_plan(const Trace& trace, const MeshShape& mesh, const CostModel& model) {
  return make_counted_plan(trace, mesh, model).plan;
}

std::string Plan::to_string(const Trace& trace, const MeshShape& mesh) const {
  std::string text;
  for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
    const Trace::Node& node = trace.nodes[n];
    text += concat("  ", node.signature.name, "  rules: ", decisions[n].rules, "  ");
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      text += concat(i > 0 ? ", " : "", Layout{trace.values[static_cast<std::size_t>(node.inputs[i])].shape,
                                               decisions[n].inputs[i]}
                                            .to_string(mesh));
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      text += concat(o == 0 ? " -> " : ", ",
                     Layout{node.signature.outputs[o], decisions[n].outputs[o]}.to_string(mesh));
    }
    text += "\n";
  }
  return text;
}

}  // namespace jigsaw::inline parallel
