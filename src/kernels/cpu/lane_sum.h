#pragma once
#include <array>
#include <cstdint>

namespace jigsaw::cpu {

/// Σ f(i) for i in [0, n) in sixteen interleaved sums, added in a fixed order: the compiler keeps them in
/// vector registers, and the result is the same whatever the registers' width.
template <typename Sum, typename F>
inline Sum lane_sum(std::int64_t n, const F& f) {
  constexpr std::int64_t kLanes = 16;
  std::array<Sum, kLanes> sums{};
  const std::int64_t whole = n / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[static_cast<std::size_t>(lane)] += f(i + lane);
  }
  for (std::int64_t i = whole; i < n; ++i) sums[static_cast<std::size_t>(i - whole)] += f(i);
  Sum total = 0;
  for (const Sum sum : sums) total += sum;
  return total;
}

}  // namespace jigsaw::cpu
