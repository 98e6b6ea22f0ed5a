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

/// 2^x for −126 < x ≤ 0, within 1e-7 of it and the rounding of x: 2^n, in the exponent's bits, times a
/// minimax polynomial of degree 6 on [−1/2, 1/2].
inline float exp2_negative(float x) {
  const float shifted = x + 12582912.0F;  // the nearest integer in the low bits
  const float f = x - (shifted - 12582912.0F);
  float p = 1.534582217e-4F;
  p = p * f + 1.339993565e-3F;
  p = p * f + 9.618488961e-3F;
  p = p * f + 5.550328766e-2F;
  p = p * f + 2.402264689e-1F;
  p = p * f + 6.931472057e-1F;
  p = p * f + 1.0F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) +
                              (std::bit_cast<std::uint32_t>(shifted) << 23));
}

/// Of the normal distribution at x, with a = min(|x|, 12): e^(−a²/2), and its tail Φ(−a).
struct NormalTail {
  float a, kernel, tail;
};

/// Φ(−a) = e^(−a²/2)·P(u), u = (a − 3)/(a + 3): a minimax fit of degree 7, within 1.5e-8 of Φ.
inline NormalTail normal_tail(float x) {
  const float magnitude = std::abs(x);
  const float a = magnitude > 12.0F ? 12.0F : magnitude;
  const float u = (a - 3.0F) / (a + 3.0F);
  float p = -3.663292956e-4F;
  p = p * u - 8.875763154e-4F;
  p = p * u + 2.977997860e-3F;
  p = p * u + 6.138953717e-3F;
  p = p * u - 4.621999564e-2F;
  p = p * u + 1.232238286e-1F;
  p = p * u - 2.064025228e-1F;
  p = p * u + 1.215139587e-1F;
  const float kernel = exp2_negative(a * a * -0.721347520F);  // log2(e)/2
  return {a, kernel, kernel * p};
}

/// x·Φ(x).
inline float gelu(float x) {
  const NormalTail at = normal_tail(x);
  return (x > 0.0F ? x : 0.0F) - at.a * at.tail;
}

/// Φ(x) + x·φ(x).
inline float gelu_derivative(float x) {
  const NormalTail at = normal_tail(x);
  const float lower =
      at.tail - at.a * at.kernel * 0.398942280F;  // of −a; the derivatives of x and −x add up to 1
  return x > 0.0F ? 1.0F - lower : lower;
}

}  // namespace jigsaw::cpu
