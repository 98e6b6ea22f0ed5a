#pragma once
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline predict {

/// Some channels of one rank's piece of a tensor [B, space…, C], as files take them: field by field.
template <typename T>
struct PackedPiece {
  Box box;                   ///< of the tensor
  std::vector<int> numbers;  ///< of the channels that are here, in the list of those that are asked for
  std::vector<T> values;     ///< [channels that are here, B, space…]

  std::int64_t plane() const { return box.extent.count(1, last()); }
  int last() const { return box.extent.rank() - 1; }
  std::int64_t count() const { return std::ssize(numbers) * box.extent[0] * plane(); }
};

/// The piece of any rank, without values. @param channels  that are asked for, numbers among C.
template <typename T>
PackedPiece<T> piece_of(const Rank& rank, const Layout& layout, const std::vector<int>& channels, int of);

/// Its values. @param all  of the box, channels last.
template <typename T>
void pack(std::span<const T> all, const std::vector<int>& channels, PackedPiece<T>& piece);

/// The piece of rank `of` at rank 0; elsewhere one without values. Collective over the job.
/// @param own  of this rank, with its values. @param layout, channels  those of `own`.
template <typename T>
PackedPiece<T> bring(const Rank& rank, Communicator& world, const Layout& layout,
                     const std::vector<int>& channels, const PackedPiece<T>& own, int of);

}  // namespace jigsaw::inline predict
