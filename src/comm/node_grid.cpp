#include "comm/node_grid.h"

#include <cstddef>
#include <set>

namespace jigsaw::inline comm {

NodeGrid node_grid(const std::vector<int>& ranks, int ranks_per_node) {
  if (ranks_per_node <= 1) return {};
  const auto size = static_cast<int>(ranks.size());
  const auto node = [&](int rank) { return ranks[static_cast<std::size_t>(rank)] / ranks_per_node; };
  int local = 1;
  while (local < size && node(local) == node(0)) ++local;
  if (local == 1 || local == size || size % local != 0) return {};
  std::set<int> seen;
  for (int first = 0; first < size; first += local) {
    for (int rank = first; rank < first + local; ++rank) {
      if (node(rank) != node(first)) return {};
    }
    if (!seen.insert(node(first)).second) return {};
  }
  return {size / local, local};
}

}  // namespace jigsaw::inline comm
