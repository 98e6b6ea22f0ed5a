#pragma once
#include <cstdint>

namespace jigsaw::inline kernels {

/// A number that kernels divide by, and what they do instead where the dividend n is below 2³¹: the quotient
/// is (⌊n · magic / 2³²⌋ + n) >> shift (Granlund and Montgomery, "Division by invariant integers using
/// multiplication", PLDI 1994). A plain value without bytes that nobody set.
struct Divisor {
  std::int64_t by = 1;
  std::uint32_t magic = 1, shift = 0;
};

/// @param by  at least 1; where there is nothing to divide it may be less.
inline Divisor divisor(std::int64_t by) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  if (by < 1) return {};
  if (by >= kLimit) return {by, 0, 31};  // 0 for all n below 2³¹
  std::uint32_t shift = 0;
  while ((std::int64_t{1} << shift) < by) ++shift;
  const auto rest = static_cast<std::uint64_t>((std::int64_t{1} << shift) - by);
  return {by, static_cast<std::uint32_t>((rest << 32) / static_cast<std::uint64_t>(by) + 1), shift};
}

}  // namespace jigsaw::inline kernels
