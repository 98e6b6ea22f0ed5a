#pragma once
#include <cstdint>
#include <vector>

#include "comm/call.h"
#include "comm/node_grid.h"

namespace jigsaw::inline nccl {

/// The messages of one rank of a group on several nodes (NodeGrid) by which pieces are reduced or gathered in
/// two rounds, one within nodes and one between ranks of equal number on all nodes. Every piece, or sum of a
/// node, leaves a node once for each other node, where direct messages take it there once for each rank; all
/// in all, as many messages and as many bytes travel as directly. `counts` are elements of the pieces by
/// rank.
///
/// To reduce: within a node each rank is sent the pieces of all ranks with its own number; their sums then
/// travel between nodes. To gather: each rank's piece travels between nodes, and then, within nodes, the
/// pieces of all ranks with its number.
class TwoLevels {
 public:
  TwoLevels(const NodeGrid& grid, int rank)
      : grid_(grid), node_(rank / grid.local), number_(rank % grid.local) {}

  int node() const { return node_; }
  int number() const { return number_; }  ///< on the node

  struct Round {
    std::vector<Message> sends, receives;
  };

  /// Pieces of ranks of this rank's number on consecutive nodes, of as many elements each and equally far
  /// apart: one kernel adds them.
  struct Run {
    int pieces = 0;
    std::int64_t count = 0;   ///< of a piece
    std::int64_t first = 0;   ///< the first among all elements
    std::int64_t stride = 0;  ///< from a piece to the next, there
    std::int64_t place = 0;   ///< the first among the elements of this rank's number

    std::int64_t elements() const { return pieces * count; }
  };
  /// All that are not empty.
  std::vector<Run> runs(const std::vector<std::int64_t>& counts) const;
  /// Elements of all pieces of this rank's number, and where its own one begins among them.
  std::int64_t elements(const std::vector<std::int64_t>& counts) const;
  std::int64_t own_place(const std::vector<std::int64_t>& counts) const;

  /// From all elements to the other summands of each run, one run after the other: `local` − 1 times the
  /// place of a run is where they begin, rank by rank.
  Round sums_within(const std::vector<std::int64_t>& counts) const;
  /// From the sums of this rank's number, one piece after the other, to the other summands of the own piece,
  /// node by node.
  Round sums_between(const std::vector<std::int64_t>& counts) const;
  /// From the own piece to its place among all elements, also this rank's own.
  Round pieces_between(const std::vector<std::int64_t>& counts) const;
  /// From there to there.
  Round pieces_within(const std::vector<std::int64_t>& counts) const;

 private:
  int rank_at(int node, int number) const { return node * grid_.local + number; }
  std::int64_t count_of(const std::vector<std::int64_t>& counts, int node, int number) const {
    return counts[static_cast<std::size_t>(rank_at(node, number))];
  }

  NodeGrid grid_;
  int node_, number_;
};

}  // namespace jigsaw::inline nccl
