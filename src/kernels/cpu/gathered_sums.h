#pragma once
#include <algorithm>
#include <array>
#include <vector>

namespace jigsaw::inline kernels::cpu {

/// Calls f(zero) with a number of the type in which points gather from their readers, those of each point
/// listed along each of three dims: float32 for a few, so that vectors stay wide; float64 where there may be
/// as many as a grid has points.
template <typename Reader, typename F>
void visit_sums(const std::array<std::vector<std::vector<Reader>>, 3>& readers, const F& f) {
  constexpr std::size_t kMostInFloat = 64;
  std::size_t most = 1;
  for (const auto& dim : readers) {
    std::size_t longest = 0;
    for (const auto& of_point : dim) longest = std::max(longest, of_point.size());
    most *= longest;
  }
  if (most <= kMostInFloat) {
    f(0.0F);
  } else {
    f(0.0);
  }
}

}  // namespace jigsaw::inline kernels::cpu
