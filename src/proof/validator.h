#pragma once
#include <string>
#include <vector>

#include "autograd/registry.h"

namespace jigsaw {

/// What the validator found of one case of an operation.
struct Verdict {
  struct Proven {
    Row row;
    bool sound = false;
  };
  std::string operation;
  std::string name;
  std::vector<Proven> rows;           ///< as listed
  std::vector<std::string> products;  ///< pairs of sound rows that are wrong on two axes at once
  std::vector<Row> missing;           ///< right, not listed, not reachable from a listed row

  int unsound() const;
  int incomplete() const { return static_cast<int>(missing.size()); }
};

/// The operation that a case calls.
std::string called_operation(const ProofCase& one);
/// The rows that it lists.
std::vector<Row> listed_rows(const ProofCase& one);

/// Proves rows, forward and backward, against the reference kernels on one rank in float64.
///
/// Sound: every row in units of 1 and 2 of its own on axes of 2 and 3 ranks, and every pair of rows on 2 × 3.
/// Complete: of all combinations of Replicate, Shard of each dim in the units that occur, and Partial(sum)
/// for each input and the output, those that are right are listed, or reached from a listed row by free
/// conversions: cutting an input or a result that is replicated.
Verdict validate(const std::string& operation, const ProofCase& one, const std::vector<Row>& rows);

/// Every case of every operation, with the rows it lists.
std::vector<Verdict> validate_all();

}  // namespace jigsaw
