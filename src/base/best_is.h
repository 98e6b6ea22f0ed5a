#pragma once
#include <cmath>
#include <cstdint>

namespace jigsaw::inline base {

/// Which values of a score are better. kAuto: as its name says (best_of() in task/metric.h), which stands in
/// its place before values are compared.
enum class BestIs : std::uint8_t { kAuto, kLowest, kHighest, kNearestZero };

/// Whether score `a` is better than `b`.
inline bool better(double a, double b, BestIs best) {
  if (best == BestIs::kNearestZero) return std::abs(a) < std::abs(b);
  return best == BestIs::kHighest ? a > b : a < b;
}

}  // namespace jigsaw::inline base
