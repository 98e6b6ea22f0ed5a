#pragma once
#include <string>
#include <vector>

#include "parallel/cost.h"
#include "parallel/rule.h"

namespace jigsaw::inline parallel {

/// A block's operations in order, recorded on arrays without data.
struct Trace {
  enum class Role : std::uint8_t {
    kActivation,  ///< made inside the block; its layout is the planner's choice
    kPinned,      ///< enters or leaves the block in a given layout
    kParameter    ///< held in the layout its rule wants, cut again for storage along all other axes
  };
  struct Value {
    Shape shape;
    Role role = Role::kActivation;
    Placements placements;  ///< kPinned
    std::string name;

    /// Whatever their names.
    bool operator==(const Value& other) const {
      return shape == other.shape && role == other.role && placements == other.placements;
    }
  };
  struct Node {
    Signature signature;
    std::vector<int> inputs, outputs;  ///< values

    bool operator==(const Node&) const = default;
  };
  std::vector<Value> values;
  std::vector<Node> nodes;

  /// Equal traces have equal plans.
  bool operator==(const Trace&) const = default;
};

/// How one operation runs: the placements its inputs are redistributed to, what its kernel then gives, and
/// the placements in which the results are kept. `cut` are the axes along which some letter is cut.
struct Decision {
  std::vector<Placements> inputs;
  std::vector<Placements> rule_outputs;
  std::vector<Placements> outputs;
  AxisSet cut = 0;
  bool rematerialised = false;  ///< see Signature
  std::string rules;            ///< label per axis, for people
};

/// The decisions of a block, replayed by operation number, and the placements of its parameters.
struct Plan {
  std::vector<Decision> decisions;
  std::vector<Placements> parameters;  ///< by value number; meaningful for parameters only
  double seconds = 0;                  ///< by the cost model, forward and backward

  std::string to_string(const Trace& trace, const MeshShape& mesh) const;
};

/// The cheapest chain of rules, forward and backward together: FLOPs of the largest piece, bytes through
/// memory, and every redistribution in and out, with parameters gathered before use and their gradients
/// scattered after it.
///
/// Every activation is kept fully cut (nothing is held twice); along `data` the sample is cut. The search is
/// exact: dynamic programming over the layouts of the values that are alive between operations.
Plan make_plan(const Trace& trace, const MeshShape& mesh, const CostModel& model);

}  // namespace jigsaw::inline parallel
