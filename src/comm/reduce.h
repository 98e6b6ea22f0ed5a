#pragma once
#include <span>

#include "comm/call.h"

namespace jigsaw::inline comm {

/// out[i] = pieces[0][i] op pieces[1][i] op …, from left to right in the type itself, so that every
/// backend gives the same bits. `out` overlaps no piece. A NaN in any piece wins over max and min.
/// f32 or f64 in host memory; throws CommError for bf16.
/// @param threads  among which many elements are parted; bits do not depend on it.
void reduce_in_order(std::span<const std::byte* const> pieces, std::int64_t count, DType dtype, ReduceOp op,
                     std::byte* out, int threads = 1);

/// What `owner` gets of a reduce_scatter, and of a large all_reduce for its part: at each of its levels
/// (comm/levels.h), outermost first, every rank of its part adds what its sources have, in rank order.
/// @param pieces  every rank's summand of what is the owner's.
void reduce_for(int owner, std::span<const std::byte* const> pieces, std::int64_t count, DType dtype,
                ReduceOp op, std::byte* out);

/// What every rank gets of a small all_reduce and of control values: the results of the parts added in order,
/// each of which is that of its own parts.
void reduce_for_all(std::span<const std::byte* const> pieces, std::int64_t count, DType dtype, ReduceOp op,
                    std::byte* out);

/// `count` elements cut first-remainder into `parts`: 10 in 4 is 3, 3, 2, 2.
std::vector<std::int64_t> even_counts(std::int64_t count, int parts);

}  // namespace jigsaw::inline comm
