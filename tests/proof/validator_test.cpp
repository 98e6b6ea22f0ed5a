// The rules of every operation are right and whole, and the validator sees when they are not.
#include "proof/validator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "autograd/operations.h"
#include "proof/report.h"
#include "support/source_dir.h"
#include "support/test_context.h"

namespace jigsaw {
namespace {

/// The case of this name of an operation.
ProofCase find_case(const std::string& operation, const std::string& name) {
  for (const ProofCase& one : find_operation(operation).cases()) {
    if (one.name == name) return one;
  }
  throw std::invalid_argument("no such case");
}

std::vector<ShardingRule> without(std::vector<ShardingRule> rules, const std::string& label) {
  std::erase_if(rules, [&](const ShardingRule& rule) { return rule.label == label; });
  return rules;
}

/// On the device that the test runs on.
Verdict validated(const std::string& operation, const ProofCase& one,
                  const std::vector<ShardingRule>& rules) {
  return validate(operation, one, rules, [] { return testing::test_context(Backend::kReference, 1); });
}

class EveryOperation : public ::testing::TestWithParam<RegisteredOperation> {};

TEST_P(EveryOperation, RulesAreSoundAndComplete) {
  const std::vector<ProofCase> cases = GetParam().cases();
  ASSERT_FALSE(cases.empty());
  std::vector<Verdict> verdicts;
  for (const ProofCase& one : cases) {
    verdicts.push_back(validated(GetParam().name, one, listed_rules(one)));
    EXPECT_FALSE(verdicts.back().rules.empty()) << verdicts.back().name << " has no rules";
  }
  EXPECT_TRUE(proven(verdicts)) << report(verdicts);
}

INSTANTIATE_TEST_SUITE_P(, EveryOperation, ::testing::ValuesIn(all_operations()),
                         [](const auto& of) { return of.param.name; });

std::set<std::string> registered() {
  std::set<std::string> names;
  for (const RegisteredOperation& operation : all_operations()) names.insert(operation.name);
  return names;
}

/// What the first group of `pattern` matches in the lines of all sources of a folder.
std::set<std::string> found_in(const std::string& folder, const std::regex& lines,
                               const std::regex& pattern) {
  std::set<std::string> found;
  const std::filesystem::path root = std::filesystem::path(testing::source_dir()) / folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (!std::regex_search(line, lines)) continue;
      for (std::sregex_iterator match(line.begin(), line.end(), pattern), end; match != end; ++match)
        found.insert((*match)[1]);
    }
  }
  return found;
}

/// Every function that the headers of autograd declare as taking a tape and a value and giving values, and
/// every object that calls itself an operation anywhere, is in the registry, and so proved.
TEST(Operations, EveryOneIsRegistered) {
  std::set<std::string> declared;
  for (const char* header : {"operations.h", "field_operations.h"}) {
    std::ifstream file(std::filesystem::path(testing::source_dir()) / "src/autograd" / header);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::regex function(R"((?:Variable|std::vector<Variable>) (\w+)\(Tape& tape)");
    for (std::sregex_iterator match(text.begin(), text.end(), function), end; match != end; ++match)
      declared.insert((*match)[1]);
  }
  EXPECT_EQ(declared, registered());
  EXPECT_EQ(
      found_in("src", std::regex(R"(string_view name\(\) const override)"), std::regex(R"re("(\w+)")re")),
      registered());
}

TEST(Operations, EveryCaseCallsItsOperation) {
  for (const RegisteredOperation& operation : all_operations()) {
    for (const ProofCase& one : operation.cases())
      EXPECT_EQ(called_operation(one), operation.name) << one.name;
  }
}

TEST(Validator, SeesAWrongRow) {
  const ProofCase linear = find_case("contract", "bk,nk->bn");
  const std::vector<ShardingRule> rules = listed_rules(linear);
  EXPECT_EQ(validated("contract", linear, rules).unsound(), 0);
  const auto added = [&](ShardingRule rule) {
    std::vector<ShardingRule> more = rules;
    more.push_back(std::move(rule));
    return more;
  };
  const Placement whole = Placement::replicate(), sum = Placement::partial_sum();
  // Summing what is whole; cutting x alone; a result that is cut where a letter is summed.
  for (const ShardingRule& wrong :
       {ShardingRule{"wrong", {whole, whole}, {sum}},
        ShardingRule{"wrong", {Placement::shard(0), whole}, {Placement::shard(1)}},
        ShardingRule{"wrong", {Placement::shard(1), Placement::shard(1)}, {Placement::shard(0)}},
        ShardingRule{"wrong", {sum, sum}, {sum}}}) {
    const Verdict verdict = validated("contract", linear, added(wrong));
    EXPECT_EQ(verdict.unsound(), 1) << report({verdict});
    EXPECT_FALSE(verdict.rules.back().sound);
    EXPECT_FALSE(proven({verdict}));
    EXPECT_NE(report({verdict}).find(": 1 unsound, 0 incomplete\n"), std::string::npos);
  }
}

TEST(Validator, SeesAMissingRow) {
  const ProofCase linear = find_case("contract", "bk,nk->bn");
  for (const std::string label : {"b", "n", "k"}) {
    const Verdict verdict = validated("contract", linear, without(listed_rules(linear), label));
    EXPECT_EQ(verdict.unsound(), 0) << label;
    EXPECT_EQ(verdict.incomplete(), 1) << label << "\n" << report({verdict});
    EXPECT_NE(report({verdict}).find(": 0 unsound, 1 incomplete\n"), std::string::npos);
  }
  EXPECT_EQ(validated("contract", linear, without(listed_rules(linear), "sum")).incomplete(), 2);
}

TEST(Validator, SeesAMissingRowWithAnExchangeOfItsOwn) {
  const ProofCase norm = find_case("layer_norm", "bc");
  const Verdict verdict = validated("layer_norm", norm, without(listed_rules(norm), "c"));
  EXPECT_EQ(verdict.incomplete(), 1) << report({verdict});
}

TEST(Validator, SeesAWrongUnit) {
  const ProofCase patches = find_case("patchify", "by [3]");
  std::vector<ShardingRule> rules = listed_rules(patches);
  for (ShardingRule& rule : rules) {
    if (rule.label == "w") rule.inputs[0].unit = 1;
  }
  const Verdict verdict = validated("patchify", patches, rules);
  EXPECT_EQ(verdict.unsound(), 1) << report({verdict});
}

/// 18 columns are 9 and 9, or 6, 6 and 6, in any unit; in twice the units, 10 and 8 beside 12 and 6.
TEST(Validator, SeesAWrongUnitThatFitsByChance) {
  ProofCase patches = find_case("patchify", "by [3]");
  patches.instances.clear();
  add_instance(patches, {Shape{2, 18, 3}},
               [](Tape& tape, const std::vector<Variable>& x) { return patchify(tape, x[0], Shape{3}); });
  std::vector<ShardingRule> rules = listed_rules(patches);
  EXPECT_EQ(validated("patchify", patches, rules).unsound(), 0);
  for (ShardingRule& rule : rules) {
    if (rule.label == "w") rule.inputs[0].unit = 1;
  }
  const Verdict verdict = validated("patchify", patches, rules);
  EXPECT_EQ(verdict.unsound(), 1) << report({verdict});
}

}  // namespace
}  // namespace jigsaw
