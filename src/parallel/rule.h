#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "array/shape.h"
#include "parallel/layout.h"

namespace jigsaw {

/// What a row's own algorithm sends to other ranks in a step, beside redistributions. The rows of an
/// operation along several axes are one algorithm, over the ranks of all of them.
struct OwnTraffic {
  /// Dims of the first input as a set of bits.
  using Dims = std::uint32_t;

  /// Statistics, in f32: for each element that the piece has in these dims, so many numbers are gathered
  /// forward, and so many summed over ranks backward.
  Dims gathered_for = 0, summed_for = 0;
  double gathered = 0, summed = 0;

  /// Halos, forward and again backward: points of the dim that the row cuts, beyond the piece's low and high
  /// end; `around` where the dim goes on beyond the grid's ends.
  std::int64_t below = 0, above = 0;
  bool around = false;

  /// What goes to each other rank, forward and backward, over the elements of the last input's piece (keys
  /// and values that go round).
  double ring = 0;

  /// What changes ranks forward, and again backward, over the elements of the first input's piece, at most.
  /// A result for which something does is kept rather than made again.
  double moved = 0;

  bool operator==(const OwnTraffic&) const = default;
};

/// One way to run an operation on pieces along ONE mesh axis: placements of its inputs and its output under
/// which the local kernel gives pieces of the right answer. All-Replicate is always valid and never listed.
///
/// The backward runs along the same row, see gradient_placement().
///
/// Units scale: a row that cuts dims in units of u_i is as right in units of k·u_i, see scaled().
struct Row {
  std::string label;  ///< what is cut: an index letter; or "sum": a Partial input passes
  std::vector<Placement> inputs;
  Placement output;
  OwnTraffic own = {};

  bool operator==(const Row&) const = default;
};

/// The row with all units k times as large.
Row scaled(const Row& row, std::int64_t k);

/// Names a function of autograd/operations.h; the values stand in autograd/operation.h.
enum class Operation : std::uint8_t;

/// An operation as the planner sees it: global shapes, its rows, and what it costs.
struct Signature {
  Operation operation;
  std::string name;  ///< the operation's name and what varies in it: "contract bk,nk->bn"
  std::vector<Shape> inputs;
  Shape output;
  std::vector<Row> rows;
  double forward_flops = 0;
  /// For each input, whether backward reads it again (it is then gathered again if a row needs it whole).
  std::vector<bool> saved;
  /// Whether backward reads what the kernel found out beside its result: a recomputed block runs it again.
  bool keeps_findings = false;
  /// Whether backward makes the result again from the operands for each operation that reads it, rather than
  /// keep it: what that brings to other layouts travels again. Rows with OwnTraffic::moved are excepted.
  bool remade = false;

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

/// The rows that follow from letters: cut a letter in every operand that has it, replicate the others; the
/// output is cut if it keeps the letter and Partial(sum) if it lacks it. Right for every operation that
/// treats each value of the letter alike and is linear in the sum: contractions, elementwise operations with
/// broadcasting, reductions.
std::vector<Row> rows_of_letters(const std::vector<Letters>& inputs, const Letters& output);

/// The row of an operation that is linear in some of its inputs together: those are Partial(sum), the others
/// whole, and the result is Partial(sum).
Row row_linear_in(const std::vector<bool>& inputs);

/// How the gradient of a row's input is placed: Shard as the input is; Partial where the input is replicated
/// and the row cuts something, since each rank then has seen a part of the output only; whole where the
/// input is Partial, since each summand has the gradient of the sum.
Placement gradient_placement(const Placement& input, bool row_cuts);

}  // namespace jigsaw
