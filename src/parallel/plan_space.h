#pragma once
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parallel/planner.h"
#include "parallel/sent_elements.h"

namespace jigsaw::inline parallel {

/// One way to run an operation on all axes at once.
struct RuleChoice {
  Decision decision;   ///< `outputs` are not chosen yet
  double seconds = 0;  ///< local work, forward and backward, and the traffic of parameters
};

/// What a plan takes, in seconds by the cost model, forward and backward together.
struct PlanParts {
  double compute = 0;     ///< kernels of the largest piece
  double move = 0;        ///< of values between layouts
  double own = 0;         ///< what operations send by themselves: halos, keys and values, statistics
  double parameters = 0;  ///< gathered, and their gradients scattered
  double seconds() const { return compute + move + own + parameters; }
  PlanParts& operator+=(const PlanParts& other);
};

/// What the planner chooses among in one block, and what each choice costs. Parameters have no homes.
class PlanSpace {
 public:
  PlanSpace(const Trace& trace, const MeshShape& mesh, const CostModel& model);

  const Trace::Value& value(int v) const { return trace_.values[static_cast<std::size_t>(v)]; }
  /// The layouts in which a value may be kept.
  const std::vector<Placements>& homes_of(int v) const { return homes_[static_cast<std::size_t>(v)]; }
  std::vector<RuleChoice> rule_choices(const Trace::Node& node) const;

  /// Seconds to redistribute operand i from its home to what a choice wants, and its gradient back.
  double input_seconds(const Trace::Node& node, std::size_t i, const Decision& decision,
                       const Placements& home) const;
  /// Seconds to redistribute result o to its home, and its gradient back.
  double output_seconds(const Trace::Node& node, std::size_t o, const Decision& decision,
                        const Placements& home) const;
  /// The least of input_seconds() over all homes, and that of output_seconds() summed over all outputs.
  double least_in(const Trace::Node& node, std::size_t i, const Decision& decision) const;
  double least_out(const Trace::Node& node, const Decision& decision) const;

  /// What a plan of this trace on this mesh takes.
  PlanParts parts(const Plan& plan) const;

  /// Transfers whose cost was asked for so far.
  std::int64_t transfers() const { return transfers_; }

 private:
  /// For each axis the number of a rule, or -1 for all-Replicate.
  using AxisRules = std::array<int, kMaxAxes>;

  const std::vector<ShardingRule>& rules_of(const Trace::Node& node) const {
    return rules_[static_cast<std::size_t>(&node - trace_.nodes.data())];
  }
  Layout layout(int v, const Placements& p) const { return {value(v).shape, p}; }
  double transfer(const Layout& from, const Layout& to) const;
  /// How often backward rematerialises the result if it does: redistributes the operands and the result.
  int times_rematerialised(const Trace::Node& node, bool rematerialised) const {
    int times = 0;
    for (const int output : node.outputs) times += reads_[static_cast<std::size_t>(output)];
    return rematerialised ? times : 0;
  }
  void count_reads();
  void find_rules();
  void find_homes();
  std::vector<Placement> candidates(int v, int axis) const;
  std::vector<int> rules_on_axis(const Trace::Node& node, int axis) const;
  RuleChoice make_choice(const Trace::Node& node, const AxisRules& rules) const;
  /// The rules of a decision that was made from them.
  AxisRules rules_taken(const Trace::Node& node, const Decision& decision) const;
  double local_seconds(const Trace::Node& node, const Decision& decision) const;
  double own_seconds(const Trace::Node& node, const Decision& decision, const AxisRules& rules) const;
  double parameter_seconds(const Layout& compute) const;
  double least_gather(int v, const Placements& whole, int gathers, int messages) const;

  const Trace& trace_;
  const MeshShape& mesh_;
  const CostModel& model_;
  mutable SentElements sent_;
  const std::array<int, kMaxAxes> in_node_;  // ranks_in_node()
  std::vector<int> reads_;                   // by value: how often backward reads it, at most
  std::vector<std::vector<ShardingRule>>
      rules_;  // by operation: without Partial inputs, in the units of neighbours
  std::vector<std::vector<Placements>> homes_;
  mutable std::int64_t transfers_ = 0;
  struct Hash {
    std::size_t operator()(const std::pair<Layout, Layout>& transfer) const;
  };
  /// What was found, for operations share layouts, and on many ranks it takes long.
  mutable std::unordered_map<std::pair<Layout, Layout>, double, Hash> known_;
  std::vector<AxisSet> always_cut_;  // by value: the axes that cut it in all its homes
  std::vector<double> largest_;      // by value: elements of its largest piece in any home
};

}  // namespace jigsaw::inline parallel
