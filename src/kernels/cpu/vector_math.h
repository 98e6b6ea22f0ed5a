#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "array/dtype.h"

namespace jigsaw::cpu {

// Straight-line functions that the compiler vectorises.

/// BFloat16(value), NaN apart, without a branch.
inline BFloat16 rounded_bfloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (word + 0x7fffU + ((word >> 16) & 1U)) >> 16;
  BFloat16 result;
  result.bits = static_cast<std::uint16_t>((word & 0x7fffffffU) > 0x7f800000U ? word >> 16 | 0x40U : rounded);
  return result;
}

template <typename T>
inline T rounded(float value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return rounded_bfloat16(value);
  } else {
    return static_cast<T>(value);
  }
}

/// e^x for x ≤ 0 within 2 units in the last place; 0 below −87. Polynomial of Cephes (expf.c, Moshier).
inline float exp_negative(float x) {
  const float bounded = x < -87.0F ? -87.0F : x;
  const float shifted = bounded * 1.44269504F + 12582912.0F;  // n in the low bits: x = n ln 2 + r
  const float n = shifted - 12582912.0F;
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const std::uint32_t scaled =
      std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23);
  return x < -87.0F ? 0.0F : std::bit_cast<float>(scaled);
}

/// e^(−x²/2), and the normal distribution's lower tail Φ(−|x|).
struct NormalTail {
  float kernel, tail;
};

/// Φ(−a) = e^(−a²/2)·P(u), u = (a − 3)/(a + 3): a minimax fit of degree 7 on [0, 14], within 1.5e-8 of Φ.
inline NormalTail normal_tail(float x) {
  const float magnitude = std::abs(x);
  const float a = magnitude > 14.0F ? 14.0F : magnitude;
  const float u = (a - 3.0F) / (a + 3.0F);
  float p = -3.663292956e-4F;
  p = p * u - 8.875763154e-4F;
  p = p * u + 2.977997860e-3F;
  p = p * u + 6.138953717e-3F;
  p = p * u - 4.621999564e-2F;
  p = p * u + 1.232238286e-1F;
  p = p * u - 2.064025228e-1F;
  p = p * u + 1.215139587e-1F;
  const float kernel = exp_negative(-0.5F * a * a);
  return {kernel, kernel * p};
}

/// x·Φ(x).
inline float gelu(float x) {
  const float tail = normal_tail(x).tail;
  return x > 0.0F ? x - x * tail : x * tail;
}

/// Φ(x) + x·φ(x).
inline float gelu_derivative(float x) {
  const NormalTail at = normal_tail(x);
  const float bounded = x > 14.0F ? 14.0F : x < -14.0F ? -14.0F : x;
  return (x > 0.0F ? 1.0F - at.tail : at.tail) + bounded * at.kernel * 0.398942280F;
}

}  // namespace jigsaw::cpu
