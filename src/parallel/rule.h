#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "array/shape.h"
#include "parallel/cost_model.h"
#include "parallel/layout.h"

namespace jigsaw::inline parallel {

/// The layouts of one call's operands, from which OwnTraffic finds what the operation itself sends.
struct OwnCall {
  const MeshShape& mesh;
  std::span<const Layout> inputs;  ///< as the rules take them
  AxisSet axes;                    ///< of more than one rank, along which rules run that communicate
  double element_bytes;

  double ranks() const;
  /// The largest piece of an input.
  Shape piece(std::size_t input) const { return inputs[input].largest_piece(mesh); }
};

/// What an operation's own algorithm sends to other ranks in a step, forward and backward, beside
/// redistributions: a function of the call, and the numbers that it takes, so that two can be compared. The
/// rules of an operation along several axes are one algorithm, over the ranks of all of them.
struct OwnTraffic {
  using Function = TransferCost (*)(const OwnCall& call, std::span<const double> numbers);
  Function function = nullptr;  ///< null where nothing is sent
  std::vector<double> numbers = {};

  TransferCost operator()(const OwnCall& call) const { return function(call, numbers); }
  bool operator==(const OwnTraffic&) const = default;
};

/// One way to run an operation on pieces along ONE mesh axis (what DTensor calls a placement strategy):
/// placements of its inputs and its outputs under which the local kernel gives pieces of the right answer.
/// All-Replicate is always valid and never listed.
///
/// The backward runs along the same rule, see gradient_placement().
///
/// Units scale: a rule that cuts dims in units of u_i is as right in units of k·u_i, see scaled().
struct ShardingRule {
  std::string label;  ///< what is cut: an index letter; or "sum": a Partial input passes
  std::vector<Placement> inputs;
  std::vector<Placement> outputs;
  bool communicates = false;  ///< along this axis by the operation's own algorithm, see Signature::own
  bool own_units = false;     ///< the last input may be cut in other units than the others
  bool moves_result = false;  ///< the algorithm brings the result from other ranks: it is not rematerialised

  bool operator==(const ShardingRule&) const = default;
};

/// The rule with all units k times as large.
ShardingRule scaled(const ShardingRule& rule, std::int64_t k);

/// An operation as the planner sees it: global shapes, its rules, and what it costs.
struct Signature {
  std::string operation;  ///< as autograd/registry.h names it; the tape sets it
  std::string name;       ///< with what varies: "contract bk,nk->bn"
  std::vector<Shape> inputs;
  std::vector<Shape> outputs;
  std::vector<ShardingRule> rules;
  double forward_flops = 0;
  /// For each input, whether backward reads it again (it is then gathered again if a rule needs it whole).
  std::vector<bool> saved;
  /// Whether it is a product of its saved inputs: the gradient of each reads only the others.
  bool bilinear = false;
  /// Whether backward, or rematerialising, reads what the kernel found out beside its result: a recomputed
  /// block runs it again.
  bool keeps_findings = false;
  /// Whether backward rematerialises the result from the operands for each operation that reads it, rather
  /// than keep it: what that redistributes travels again. Rules that move the result are excepted.
  bool rematerialised = false;
  OwnTraffic own = {};

  bool operator==(const Signature&) const = default;
};

/// The index letters of an operation's operands and output. A letter's dim may have a unit (patch, head):
/// pieces are cut at its multiples only, so that the same cut of another operand's dim matches it.
struct LetterDim {
  char letter;
  std::int64_t unit = 1;
};
using Letters = std::vector<LetterDim>;
/// Letters with the units that `units` gives some of them; else 1.
Letters letters(std::string_view text, const Letters& units = {});

/// The rules that follow from letters: cut a letter in every operand that has it, replicate the others; the
/// output is cut if it keeps the letter and Partial(sum) if it lacks it. Right for every operation that
/// treats each value of the letter alike and is linear in the sum: contractions, elementwise operations with
/// broadcasting, reductions.
std::vector<ShardingRule> rules_of_letters(const std::vector<Letters>& inputs, const Letters& output);
/// The same of several outputs.
std::vector<ShardingRule> rules_of_letters(const std::vector<Letters>& inputs,
                                           const std::vector<Letters>& outputs);

/// The rule of an operation that is linear in some of its inputs together: those are Partial(sum), the others
/// whole, and the results are Partial(sum).
ShardingRule linear_rule(const std::vector<bool>& inputs, std::size_t outputs = 1);

/// How the gradient of a rule's input is placed: Shard as the input is; Partial where the input is replicated
/// and the rule cuts something, since each rank then has seen a part of the output only; whole where the
/// input is Partial, since each summand has the gradient of the sum.
Placement gradient_placement(const Placement& input, bool rule_cuts);

}  // namespace jigsaw::inline parallel
