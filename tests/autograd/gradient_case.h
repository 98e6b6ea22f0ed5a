#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograd/operations.h"
#include "support/parameters.h"

namespace jigsaw::testing {

/// A block of operations in float64 on made-up numbers.
struct GradientCase {
  using Variables = std::vector<Variable>;
  using Function = std::function<Variable(Tape&, const Variables& inputs, const Variables& parameters)>;

  std::string name;
  std::vector<Shape> inputs;
  std::vector<Shape> parameters;
  Function run;
  int times = 1;  ///< the block runs so often; its result is its first input the next time
  bool recompute = false;
  std::vector<std::int64_t> units = {};  ///< of the output's space
  /// Outputs of a block before it, which `run` then takes in place of the inputs.
  std::function<Variables(Tape&, const Variables& inputs, const Variables& parameters)> heads = {};

  /// Numbers for all inputs ("input.0", …), parameters ("parameter.0", …) and the output's weights
  /// ("weight").
  Tensors values(const Shape& output) const;
};

/// Which way every operation runs: rule `rule` of its signature along `axis`, or all-Replicate for -1.
struct Forced {
  int axis = 0;
  int rule = -1;
};

/// One rank's copy of a case.
class GradientRun {
 public:
  /// @param forced  in place of the planner's plan, for cases of one operation.
  GradientRun(const Rank& rank, const GradientCase& what, std::optional<Forced> forced = {});

  const Shape& output() const { return output_.global; }
  /// The rules of the first operation.
  const std::vector<ShardingRule>& rules() const { return plans_.at("case").trace.nodes[0].signature.rules; }
  /// This rank's part of "output" and of the gradients of Σ weight · output by the inputs and parameters.
  Tensors gradients(const Tensors& values);
  /// Σ weight · output over this rank's elements, without recording.
  double weighted_sum(const Tensors& values);

 private:
  Variable run_blocks(Tape& tape, ParameterBlock& block, const std::vector<Variable>& inputs,
                      const std::vector<Variable>& parameters) const;
  Variable forward(Tape& tape, const std::vector<Variable>& inputs);
  std::vector<Variable> inputs_of(const Tensors& values, bool want_gradients) const;

  Rank rank_;
  GradientCase case_;
  PlanBook plans_;
  ParameterBlock block_{"case"};
  std::vector<Variable> parameters_;
  std::vector<Layout> inputs_;
  Layout output_;
};

/// The gradients on a mesh, put together from all ranks.
/// @param tensor  whether the ranks lie along `tensor`, or along the first domain axis.
Tensors gradients_on(int ranks, bool tensor, const GradientCase& what, std::optional<int> rule);

/// The same on any mesh, as planned.
Tensors gradients_on_mesh(const std::vector<int>& domain, int tensor, const GradientCase& what);

/// Checks a case: on one rank against central differences of every input and parameter; on 2 and 3 ranks,
/// along a domain axis and along tensor, with every rule of its first operation that cuts its inputs and with
/// the planner's plan, against one rank.
/// @param every_row  whether the case is one operation.
void check_gradients(const GradientCase& what, bool every_row = true);

}  // namespace jigsaw::testing
