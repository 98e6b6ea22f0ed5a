#pragma once
#include <vector>

#include "parallel/planner.h"

namespace jigsaw::testing {

/// What plans of a block cost by their definition, transfers counted rank by rank, and the cheapest of all,
/// by trying them: every operation in any of its rules along every axis, every value cut along any dim that
/// has enough elements (along data the sample). A step's transfer lasts as long as its busiest rank's.
class ExhaustivePlan {
 public:
  ExhaustivePlan(const Trace& trace, const MeshShape& mesh, const CostModel& costs);

  /// Over all layouts of all values; layouts whose first operations alone cost more than some whole plan are
  /// left out.
  double minimum() const;
  double cost(const Plan& plan) const;

 private:
  using Rules = std::vector<const ShardingRule*>;  // by axis; null where the axis has one rank

  /// Of an operation: the least seconds over its rules, by the homes of its activations.
  struct Table {
    std::vector<int> values;
    std::vector<double> seconds;
  };

  int size(int axis) const { return mesh_.size[static_cast<std::size_t>(axis)]; }
  const Trace::Value& value(int v) const { return trace_.values[static_cast<std::size_t>(v)]; }
  const std::vector<Placements>& homes(int v) const { return homes_[static_cast<std::size_t>(v)]; }
  std::vector<Placements> homes_of(const Trace::Value& v) const;
  std::vector<Rules> rule_combinations(const Trace::Node& node) const;
  Placements operand(const Rules& rules, std::size_t i) const;
  Placements output(const Rules& rules, std::size_t o) const;
  /// Nodes of each group of ranks that differ along these axes only, and ranks on each; 0 ranks where groups
  /// or nodes are unlike.
  struct Spread {
    double nodes = 1, local = 0;
  };
  Spread spread(AxisSet axes) const;
  const Link& link(const Spread& over) const { return over.nodes == 1 ? costs_.node : costs_.network; }
  /// Of a reduction or a gather of so many bytes: those that stay within nodes where they travel in two
  /// levels.
  static double within(const Spread& over, double bytes);
  double seconds(AxisSet axes, const TransferCost& cost) const;
  double piece(const Shape& global, const Placements& placements) const;
  double transfer(const Shape& global, const Placements& from, const Placements& to) const;
  double own(const Trace::Node& node, const Rules& rules) const;
  double gather(const Trace::Node& node, const Rules& rules, std::size_t i) const;
  double work(const Trace::Node& node, const Rules& rules) const;
  int made_again(const Trace::Node& node) const;
  double input(const Trace::Node& node, const Rules& rules, std::size_t i, const Placements& home) const;
  double result(const Trace::Node& node, const Rules& rules, std::size_t o, const Placements& home) const;
  Table table_of(const Trace::Node& node) const;
  double seconds(const Table& table, const std::vector<std::size_t>& homes) const;
  void descend(std::size_t n, std::size_t o, double so_far, std::vector<std::size_t>& homes,
               double& best) const;

  const Trace& trace_;
  const MeshShape mesh_;
  const CostModel costs_;
  std::vector<Spread> spreads_;  // by set of axes
  std::vector<std::vector<Placements>> homes_;
  std::vector<Table> tables_;
};

}  // namespace jigsaw::testing
