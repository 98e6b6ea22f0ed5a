#include "proof/validator.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline proof {

namespace {

/// A conversion that sends nothing.
bool is_free(const Placement& from, const Placement& to) {
  return from == to || (from.is_replicate() && to.is_shard());
}

/// Whether operands placed as in `wanted` can be redistributed for free to `rule`, and its outputs to the
/// wanted ones, for free.
bool reaches(const ShardingRule& rule, const ShardingRule& wanted) {
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    if (!is_free(wanted.inputs[i], rule.inputs[i])) return false;
  }
  for (std::size_t o = 0; o < rule.outputs.size(); ++o) {
    if (!is_free(rule.outputs[o], wanted.outputs[o])) return false;
  }
  return true;
}

/// Each rule with each option for one more operand.
std::vector<ShardingRule> extended(const std::vector<ShardingRule>& rules,
                                   std::vector<Placement> ShardingRule::*operands,
                                   const std::vector<Placement>& options) {
  std::vector<ShardingRule> result;
  for (const ShardingRule& rule : rules) {
    for (const Placement& option : options) {
      result.push_back(rule);
      (result.back().*operands).push_back(option);
    }
  }
  return result;
}

bool cuts_nothing(const ShardingRule& rule) {
  const auto replicated = [](const Placement& p) { return p.is_replicate(); };
  return std::all_of(rule.outputs.begin(), rule.outputs.end(), replicated) &&
         std::all_of(rule.inputs.begin(), rule.inputs.end(), replicated);
}

/// What one operand can be on an axis: units are 1 and those that rules use for that dim.
std::vector<Placement> candidates(const Shape& shape, const std::vector<ShardingRule>& rules,
                                  const std::function<const Placement&(const ShardingRule&)>& operand) {
  std::vector<Placement> found = {Placement::replicate(), Placement::partial_sum()};
  for (int dim = 0; dim < shape.rank(); ++dim) found.push_back(Placement::shard(dim));
  for (const ShardingRule& rule : rules) {
    const Placement& p = operand(rule);
    if (std::find(found.begin(), found.end(), p) == found.end()) found.push_back(p);
  }
  return found;
}

class Validation {
 public:
  Validation(const ProofCase& one, const std::vector<ShardingRule>& rules, const MakeContext& make_context) {
    for (const ProofCase::Instance& instance : one.instances) runs_.emplace_back(instance, make_context);
    for (const ShardingRule& rule : rules) {
      closure_.push_back(rule);
      const ShardingRule twice = scaled(rule, 2);
      if (!(twice == rule)) closure_.push_back(twice);
      if (!rule.own_units) continue;
      // What goes round may be cut in units of its own.
      for (auto [mixed, other] : {std::pair{rule, twice}, {twice, rule}}) {
        mixed.inputs.back() = other.inputs.back();
        closure_.push_back(mixed);
      }
    }
  }

  bool sound(const ShardingRule& rule) { return right({&rule}) && right_in_units_of_two(rule); }

  /// Pairs of sound rules on 2 × 3 ranks.
  std::vector<std::string> wrong_products(const std::vector<ShardingRule>& sound_rules) {
    std::vector<std::string> wrong;
    for (const ShardingRule& a : sound_rules) {
      for (const ShardingRule& b : sound_rules) {
        if (!right_on({2, 3}, {&a, &b})) wrong.push_back(concat(a.label, " × ", b.label));
      }
    }
    return wrong;
  }

  std::vector<ShardingRule> missing() {
    const Signature& signature = runs_[0].signature();
    std::vector<ShardingRule> all = {{}};
    for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
      all =
          extended(all, &ShardingRule::inputs,
                   candidates(signature.inputs[i], closure_,
                              [i](const ShardingRule& rule) -> const Placement& { return rule.inputs[i]; }));
    }
    for (std::size_t o = 0; o < signature.outputs.size(); ++o) {
      all =
          extended(all, &ShardingRule::outputs,
                   candidates(signature.outputs[o], closure_,
                              [o](const ShardingRule& rule) -> const Placement& { return rule.outputs[o]; }));
    }
    std::erase_if(all, [this](const ShardingRule& rule) { return reached(rule) || !right({&rule}); });
    return all;
  }

 private:
  bool right_in_units_of_two(const ShardingRule& rule) {
    const ShardingRule twice = scaled(rule, 2);
    return twice == rule || right({&twice});
  }
  bool right(const std::vector<const ShardingRule*>& rules) {
    return right_on({2}, rules) && right_on({3}, rules);
  }
  bool right_on(const std::vector<int>& sizes, const std::vector<const ShardingRule*>& rules) {
    return std::all_of(runs_.begin(), runs_.end(), [&](PlacedRun& run) { return run.right(sizes, rules); });
  }
  bool reached(const ShardingRule& wanted) const {
    const ShardingRule replicated{"", std::vector<Placement>(wanted.inputs.size()),
                                  std::vector<Placement>(wanted.outputs.size())};
    return cuts_nothing(wanted) || reaches(replicated, wanted) ||
           std::any_of(closure_.begin(), closure_.end(),
                       [&](const ShardingRule& rule) { return reaches(rule, wanted); });
  }

  std::vector<ShardingRule> closure_;  // the rules, and in units twice as large
  std::vector<PlacedRun> runs_;
};

}  // namespace

int Verdict::unsound() const {
  const auto wrong =
      std::count_if(rules.begin(), rules.end(), [](const Proven& proven) { return !proven.sound; });
  return static_cast<int>(wrong) + static_cast<int>(products.size());
}

std::string called_operation(const ProofCase& one) {
  return PlacedRun(one.instances.at(0)).signature().operation;
}

std::vector<ShardingRule> listed_rules(const ProofCase& one) {
  require(!one.instances.empty(), "a case of the validator has shapes");
  const auto rules_of = [](const ProofCase::Instance& instance) {
    return PlacedRun(instance).signature().rules;
  };
  std::vector<ShardingRule> rules = rules_of(one.instances[0]);
  for (const ProofCase::Instance& instance : one.instances) {
    require(rules_of(instance) == rules, "rules of one case do not depend on the shapes");
  }
  return rules;
}

Verdict validate(const std::string& operation, const ProofCase& one, const std::vector<ShardingRule>& rules,
                 const MakeContext& make_context) {
  Validation validation(one, rules, make_context);
  Verdict verdict{operation, concat(operation, " ", one.name), {}, {}, {}};
  std::vector<ShardingRule> sound;
  for (const ShardingRule& rule : rules) {
    verdict.rules.push_back({rule, validation.sound(rule)});
    if (verdict.rules.back().sound) sound.push_back(rule);
  }
  verdict.products = validation.wrong_products(sound);
  verdict.missing = validation.missing();
  return verdict;
}

std::vector<Verdict> validate_all() {
  std::vector<Verdict> verdicts;
  for (const RegisteredOperation& operation : all_operations()) {
    for (const ProofCase& one : operation.cases())
      verdicts.push_back(validate(operation.name, one, listed_rules(one)));
  }
  return verdicts;
}

}  // namespace jigsaw::inline proof
