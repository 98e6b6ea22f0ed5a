#pragma once
#include <vector>

#include "parallel/sharded_tensor.h"

namespace jigsaw::inline task {

// Predictions of an ensemble are [B·members, space…, C]: all members of the first sample, then of the second.

/// How many members each sample has, and how many samples a whole batch.
struct Members {
  std::int64_t count = 1, samples = 1;
};

/// Where all members of each point stand on one rank: where predictions stand, if `data` cuts whole batches
/// between samples; else `data` cuts the first dim of space in place of samples. What points a rank has is
/// the same in batches that are not whole.
Layout members_together(const Mesh& mesh, const Layout& prediction, const Members& members);
/// The layout of one field of each sample, [B, space…, C], beside members in such a layout.
Layout of_samples(const Layout& together, std::int64_t members);

/// A member of each sample of a piece, [b·members, …], as [b, …].
Array member_of(Context& context, const Array& piece, std::int64_t members, std::int64_t number);
/// The mean of a piece's members, [b, …], of bfloat16 in float32; of one the piece itself.
Array member_mean(Context& context, const Array& piece, std::int64_t members);
/// Of fields of each member, [b, …], the members as a piece holds them: [b·members, …].
Array join_members(Context& context, const std::vector<Array>& members);

/// The values where the others are there, too; NaN elsewhere.
Array where_both(Context& context, const Array& values, const Array& others);

}  // namespace jigsaw::inline task
