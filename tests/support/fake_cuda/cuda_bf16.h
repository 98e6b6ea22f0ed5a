#pragma once
// CUDA's bfloat16, for a host compiler: see fake_cuda.h.
#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  std::uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
/// Rounds to nearest even.
inline __nv_bfloat16 __float2bfloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {0x7fff};
  return {static_cast<std::uint16_t>((word + 0x7fffU + (word >> 16 & 1U)) >> 16)};
}
