#include "nccl/sum_order.h"

#include "comm/levels.h"
#include "comm/reduce.h"

namespace jigsaw::inline nccl {

namespace {

/// What `rank` holds after so many of the owner's levels.
void add_levels(SumOrder& order, const std::vector<Level>& levels, std::size_t done, int rank) {
  if (done == 0) {
    order.summands.push_back({rank, 0});
    return;
  }
  for (const int from : summands(levels[done - 1], rank)) add_levels(order, levels, done - 1, from);
  ++order.summands.back().ends;
}

/// The sum of ranks [first, first + ranks), which holds `depth` sums within one another.
void add_parts(SumOrder& order, int first, int ranks, int depth) {
  if (depth == 0) {
    order.summands.push_back({first, 0});
    return;
  }
  for (const std::int64_t part : even_counts(ranks, ranks < Level::kParts ? ranks : Level::kParts)) {
    add_parts(order, first, static_cast<int>(part), depth - 1);
    first += static_cast<int>(part);
  }
  ++order.summands.back().ends;
}

}  // namespace

SumOrder order_for(int owner, int ranks) {
  const std::vector<Level> all = levels(ranks, owner);
  SumOrder order{{}, static_cast<int>(all.size())};
  add_levels(order, all, all.size(), owner);
  return order;
}

/// The first part of each part is its largest.
SumOrder order_for_all(int ranks) {
  SumOrder order{{}, static_cast<int>(levels(ranks, 0).size())};
  add_parts(order, 0, ranks, order.depth);
  return order;
}

}  // namespace jigsaw::inline nccl
