#include "proof/validator.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "proof/placed_run.h"

namespace jigsaw {

namespace {

/// A conversion that sends nothing.
bool is_free(const Placement& from, const Placement& to) {
  return from == to || (from.is_replicate() && to.is_shard());
}

/// Whether operands placed as in `wanted` can be brought to `row`, and its outputs to the wanted ones, for
/// free.
bool reaches(const Row& row, const Row& wanted) {
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    if (!is_free(wanted.inputs[i], row.inputs[i])) return false;
  }
  for (std::size_t o = 0; o < row.outputs.size(); ++o) {
    if (!is_free(row.outputs[o], wanted.outputs[o])) return false;
  }
  return true;
}

/// Each row with each option for one more operand.
std::vector<Row> extended(const std::vector<Row>& rows, std::vector<Placement> Row::*operands,
                          const std::vector<Placement>& options) {
  std::vector<Row> result;
  for (const Row& row : rows) {
    for (const Placement& option : options) {
      result.push_back(row);
      (result.back().*operands).push_back(option);
    }
  }
  return result;
}

bool cuts_nothing(const Row& row) {
  const auto replicated = [](const Placement& p) { return p.is_replicate(); };
  return std::all_of(row.outputs.begin(), row.outputs.end(), replicated) &&
         std::all_of(row.inputs.begin(), row.inputs.end(), replicated);
}

/// What one operand can be on an axis: units are 1 and those that rows use for that dim.
std::vector<Placement> candidates(const Shape& shape, const std::vector<Row>& rows,
                                  const std::function<const Placement&(const Row&)>& operand) {
  std::vector<Placement> found = {Placement::replicate(), Placement::partial_sum()};
  for (int dim = 0; dim < shape.rank(); ++dim) found.push_back(Placement::shard(dim));
  for (const Row& row : rows) {
    const Placement& p = operand(row);
    if (std::find(found.begin(), found.end(), p) == found.end()) found.push_back(p);
  }
  return found;
}

class Validation {
 public:
  Validation(const ProofCase& one, const std::vector<Row>& rows) {
    for (const ProofCase::Instance& instance : one.instances) runs_.emplace_back(instance);
    for (const Row& row : rows) {
      closure_.push_back(row);
      const Row twice = scaled(row, 2);
      if (!(twice == row)) closure_.push_back(twice);
      if (!row.own_units) continue;
      // What goes round may be cut in units of its own.
      for (auto [mixed, other] : {std::pair{row, twice}, {twice, row}}) {
        mixed.inputs.back() = other.inputs.back();
        closure_.push_back(mixed);
      }
    }
  }

  bool sound(const Row& row) { return right({&row}) && right_in_units_of_two(row); }

  /// Pairs of sound rows on 2 × 3 ranks.
  std::vector<std::string> wrong_products(const std::vector<Row>& sound_rows) {
    std::vector<std::string> wrong;
    for (const Row& a : sound_rows) {
      for (const Row& b : sound_rows) {
        if (!right_on({2, 3}, {&a, &b})) wrong.push_back(concat(a.label, " × ", b.label));
      }
    }
    return wrong;
  }

  std::vector<Row> missing() {
    const Signature& signature = runs_[0].signature();
    std::vector<Row> all = {{}};
    for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
      all = extended(all, &Row::inputs,
                     candidates(signature.inputs[i], closure_,
                                [i](const Row& row) -> const Placement& { return row.inputs[i]; }));
    }
    for (std::size_t o = 0; o < signature.outputs.size(); ++o) {
      all = extended(all, &Row::outputs,
                     candidates(signature.outputs[o], closure_,
                                [o](const Row& row) -> const Placement& { return row.outputs[o]; }));
    }
    std::erase_if(all, [this](const Row& row) { return reached(row) || !right({&row}); });
    return all;
  }

 private:
  bool right_in_units_of_two(const Row& row) {
    const Row twice = scaled(row, 2);
    return twice == row || right({&twice});
  }
  bool right(const std::vector<const Row*>& rows) { return right_on({2}, rows) && right_on({3}, rows); }
  bool right_on(const std::vector<int>& sizes, const std::vector<const Row*>& rows) {
    return std::all_of(runs_.begin(), runs_.end(), [&](PlacedRun& run) { return run.right(sizes, rows); });
  }
  bool reached(const Row& wanted) const {
    const Row replicated{"", std::vector<Placement>(wanted.inputs.size()),
                         std::vector<Placement>(wanted.outputs.size())};
    return cuts_nothing(wanted) || reaches(replicated, wanted) ||
           std::any_of(closure_.begin(), closure_.end(),
                       [&](const Row& row) { return reaches(row, wanted); });
  }

  std::vector<Row> closure_;  // the rows, and in units twice as large
  std::vector<PlacedRun> runs_;
};

}  // namespace

int Verdict::unsound() const {
  const auto wrong =
      std::count_if(rows.begin(), rows.end(), [](const Proven& proven) { return !proven.sound; });
  return static_cast<int>(wrong) + static_cast<int>(products.size());
}

std::string called_operation(const ProofCase& one) {
  return PlacedRun(one.instances.at(0)).signature().operation;
}

std::vector<Row> listed_rows(const ProofCase& one) {
  require(!one.instances.empty(), "a case of the validator has shapes");
  const auto rows_of = [](const ProofCase::Instance& instance) {
    return PlacedRun(instance).signature().rows;
  };
  std::vector<Row> rows = rows_of(one.instances[0]);
  for (const ProofCase::Instance& instance : one.instances) {
    require(rows_of(instance) == rows, "rows of one case do not depend on the shapes");
  }
  return rows;
}

Verdict validate(const std::string& operation, const ProofCase& one, const std::vector<Row>& rows) {
  Validation validation(one, rows);
  Verdict verdict{operation, concat(operation, " ", one.name), {}, {}, {}};
  std::vector<Row> sound;
  for (const Row& row : rows) {
    verdict.rows.push_back({row, validation.sound(row)});
    if (verdict.rows.back().sound) sound.push_back(row);
  }
  verdict.products = validation.wrong_products(sound);
  verdict.missing = validation.missing();
  return verdict;
}

std::vector<Verdict> validate_all() {
  std::vector<Verdict> verdicts;
  for (const RegisteredOperation& operation : all_operations()) {
    for (const ProofCase& one : operation.cases())
      verdicts.push_back(validate(operation.name, one, listed_rows(one)));
  }
  return verdicts;
}

}  // namespace jigsaw
