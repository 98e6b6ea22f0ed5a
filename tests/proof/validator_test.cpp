// The rules of every operation are right and whole, and the validator sees when they are not.
#include "proof/validator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "base/text.h"
#include "proof/report.h"
#include "support/source_dir.h"

namespace jigsaw {
namespace {

/// The case of this name of an operation.
OperationCase find_case(Operation operation, const std::string& name) {
  for (const OperationCase& one : operation_cases(operation)) {
    if (one.name == name) return one;
  }
  throw std::invalid_argument("no such case");
}

std::vector<Row> without(std::vector<Row> rows, const std::string& label) {
  std::erase_if(rows, [&](const Row& row) { return row.label == label; });
  return rows;
}

class EveryOperation : public ::testing::TestWithParam<Operation> {};

TEST_P(EveryOperation, RulesAreSoundAndComplete) {
  const std::vector<OperationCase> cases = operation_cases(GetParam());
  ASSERT_FALSE(cases.empty());
  std::vector<Verdict> verdicts;
  for (const OperationCase& one : cases) {
    verdicts.push_back(validate(GetParam(), one, listed_rows(one)));
    EXPECT_FALSE(verdicts.back().rows.empty()) << verdicts.back().name << " has no rows";
  }
  EXPECT_TRUE(proven(verdicts)) << report(verdicts);
}

INSTANTIATE_TEST_SUITE_P(, EveryOperation, ::testing::ValuesIn(all_operations()),
                         [](const auto& of) { return std::string(name(of.param)); });

/// Every function that the headers of autograd declare as taking a tape and giving a value is an operation
/// that the validator knows.
TEST(Operations, EveryDeclaredOneIsValidated) {
  std::set<std::string> known;
  for (const Operation operation : all_operations()) known.insert(std::string(name(operation)));
  std::set<std::string> declared;
  const std::regex declaration(R"(Variable (\w+)\(Tape& tape)");
  const std::filesystem::path folder = std::filesystem::path(testing::source_dir()) / "src/autograd";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (std::sregex_iterator match(text.begin(), text.end(), declaration), end; match != end; ++match) {
      declared.insert((*match)[1]);
    }
  }
  EXPECT_EQ(declared, known);
}

TEST(Operations, EveryCaseCallsItsOperation) {
  for (const Operation operation : all_operations()) {
    for (const OperationCase& one : operation_cases(operation)) {
      EXPECT_TRUE(called_operation(one) == operation) << name(operation) << " " << one.name;
    }
  }
}

TEST(Validator, SeesAWrongRow) {
  const OperationCase linear = find_case(Operation::kContract, "bk,nk->bn");
  const std::vector<Row> rows = listed_rows(linear);
  EXPECT_EQ(validate(Operation::kContract, linear, rows).unsound(), 0);
  const auto added = [&](Row row) {
    std::vector<Row> more = rows;
    more.push_back(std::move(row));
    return more;
  };
  const Placement whole = Placement::replicate(), sum = Placement::partial_sum();
  // Summing what is whole; cutting x alone; a result that is cut where a letter is summed.
  for (const Row& wrong : {Row{"wrong", {whole, whole}, {sum}},
                           Row{"wrong", {Placement::shard(0), whole}, {Placement::shard(1)}},
                           Row{"wrong", {Placement::shard(1), Placement::shard(1)}, {Placement::shard(0)}},
                           Row{"wrong", {sum, sum}, {sum}}}) {
    const Verdict verdict = validate(Operation::kContract, linear, added(wrong));
    EXPECT_EQ(verdict.unsound(), 1) << report({verdict});
    EXPECT_FALSE(verdict.rows.back().sound);
    EXPECT_FALSE(proven({verdict}));
    EXPECT_NE(report({verdict}).find(": 1 unsound, 0 incomplete\n"), std::string::npos);
  }
}

TEST(Validator, SeesAMissingRow) {
  const OperationCase linear = find_case(Operation::kContract, "bk,nk->bn");
  for (const std::string label : {"b", "n", "k"}) {
    const Verdict verdict = validate(Operation::kContract, linear, without(listed_rows(linear), label));
    EXPECT_EQ(verdict.unsound(), 0) << label;
    EXPECT_EQ(verdict.incomplete(), 1) << label << "\n" << report({verdict});
    EXPECT_NE(report({verdict}).find(": 0 unsound, 1 incomplete\n"), std::string::npos);
  }
  EXPECT_EQ(validate(Operation::kContract, linear, without(listed_rows(linear), "sum")).incomplete(), 2);
}

TEST(Validator, SeesAMissingRowWithAnExchangeOfItsOwn) {
  const OperationCase norm = find_case(Operation::kLayerNorm, "bc");
  const Verdict verdict = validate(Operation::kLayerNorm, norm, without(listed_rows(norm), "c"));
  EXPECT_EQ(verdict.incomplete(), 1) << report({verdict});
}

TEST(Validator, SeesAWrongUnit) {
  const OperationCase patches = find_case(Operation::kPatchify, "by [3]");
  std::vector<Row> rows = listed_rows(patches);
  for (Row& row : rows) {
    if (row.label == "w") row.inputs[0].unit = 1;
  }
  const Verdict verdict = validate(Operation::kPatchify, patches, rows);
  EXPECT_EQ(verdict.unsound(), 1) << report({verdict});
}

}  // namespace
}  // namespace jigsaw
