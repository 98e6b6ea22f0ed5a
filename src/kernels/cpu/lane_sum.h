#pragma once
#include <array>
#include <cstdint>

namespace jigsaw::inline kernels::cpu {

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

/// Σ f(i) of float32 numbers for i in [0, n), n of any size: lanes of a few of them in float32, so that
/// vectors stay wide, which go on into lanes in float64.
template <typename F>
inline double long_sum(std::int64_t n, const F& f) {
  constexpr std::int64_t kLanes = 16, kBlock = 32 * kLanes;
  std::array<double, kLanes> totals{};
  for (std::int64_t first = 0; first < n; first += kBlock) {
    std::array<float, kLanes> sums{};
    const std::int64_t end = first + kBlock < n ? first + kBlock : n;
    const std::int64_t whole = first + (end - first) / kLanes * kLanes;
    for (std::int64_t i = first; i < whole; i += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[static_cast<std::size_t>(lane)] += f(i + lane);
    }
    for (std::int64_t i = whole; i < end; ++i) sums[static_cast<std::size_t>(i - whole)] += f(i);
    for (std::size_t lane = 0; lane < sums.size(); ++lane) totals[lane] += static_cast<double>(sums[lane]);
  }
  double total = 0;
  for (const double each : totals) total += each;
  return total;
}

}  // namespace jigsaw::inline kernels::cpu
