#pragma once
#include <string>
#include <vector>

#include "autograd/registry.h"
#include "proof/placed_run.h"

namespace jigsaw::inline proof {

/// What the validator found of one case of an operation.
struct Verdict {
  struct Proven {
    ShardingRule rule;
    bool sound = false;
  };
  std::string operation;
  std::string name;
  std::vector<Proven> rules;          ///< as listed
  std::vector<std::string> products;  ///< pairs of sound rules that are wrong on two axes at once
  std::vector<ShardingRule> missing;  ///< right, not listed, not reachable from a listed rule

  int unsound() const;
  int incomplete() const { return static_cast<int>(missing.size()); }
};

/// The operation that a case calls.
std::string called_operation(const ProofCase& one);
/// The rules that it lists.
std::vector<ShardingRule> listed_rules(const ProofCase& one);

/// Proves rules, forward and backward, against the reference kernels on one rank in float64.
///
/// Sound: every rule in units of 1 and 2 of its own on axes of 2 and 3 ranks, and every pair of rules on 2
/// × 3. Complete: of all combinations of Replicate, Shard of each dim in the units that occur, and
/// Partial(sum) for each input and the output, those that are right are listed, or reached from a listed rule
/// by free conversions: cutting an input or a result that is replicated.
/// @param make_context  of the ranks that run on pieces.
Verdict validate(const std::string& operation, const ProofCase& one, const std::vector<ShardingRule>& rules,
                 const MakeContext& make_context = reference_context);

/// Every case of every operation, with the rules it lists.
std::vector<Verdict> validate_all();

}  // namespace jigsaw::inline proof
