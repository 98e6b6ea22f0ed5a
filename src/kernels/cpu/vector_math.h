#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "array/dtype.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels::cpu {

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

/// e^(−|x|), and one over one more than it; x itself where that is no number.
struct Decay {
  float e, share;
};
inline Decay decay(float x) {
  const float magnitude = std::abs(x);
  const float bounded = magnitude < 87.0F ? magnitude : 87.0F;
  const float near = exp2_negative(bounded * -1.44269504F);  // log2(e)
  const float e = magnitude > 87.0F ? 0.0F : near;
  return {e, x == x ? 1.0F / (1.0F + e) : x};
}

inline float sigmoid(float x) {
  const Decay at = decay(x);
  return x < 0.0F ? at.e * at.share : at.share;
}
/// σ(x)·σ(−x).
inline float sigmoid_derivative(float x) {
  const Decay at = decay(x);
  return at.e * at.share * at.share;
}

inline float silu(float x) {
  return x * sigmoid(x);
}
/// σ(x)·(1 + x·σ(−x)).
inline float silu_derivative(float x) {
  const Decay at = decay(x);
  const float other = at.e * at.share;
  const float up = x < 0.0F ? other : at.share, down = x < 0.0F ? at.share : other;
  return up * (1.0F + x * down);
}

/// (1 − e^(−2|x|))/(1 + e^(−2|x|)) with x's sign; near 0, where that cancels, x + x³·P(x²) with a minimax fit
/// of degree 4 on |x| < 0.64, within 8e-8 of its value.
inline float hyperbolic_tangent(float x) {
  const Decay at = decay(2.0F * x);
  const float far = (1.0F - at.e) * at.share, square = x * x;
  float p = -5.60388e-3F;
  p = p * square + 2.055168e-2F;
  p = p * square - 5.371409e-2F;
  p = p * square + 1.3331153e-1F;
  p = p * square - 3.3333272e-1F;
  const float near = x + x * square * p;
  return std::abs(x) < 0.64F ? near : x < 0.0F ? -far : far;
}
/// 1/cosh²(x).
inline float hyperbolic_tangent_derivative(float x) {
  const Decay at = decay(2.0F * x);
  return 4.0F * at.e * at.share * at.share;
}

/// tanh(ln(1 + e^x)) = 1 − 2/((1 + e^x)² + 1), without what cancels or overflows, and its derivative.
struct SoftTanh {
  float value, slope;
};
inline SoftTanh soft_tanh(float x) {
  const float e = decay(x).e;  // of −|x|
  const float below = e * (2.0F + e), above = 1.0F + 2.0F * e;
  const float numerator = x < 0.0F ? below : above,
              share = 1.0F / (numerator + (x < 0.0F ? 2.0F : 2.0F * e * e));
  return {numerator * share, 4.0F * (x < 0.0F ? e : e * e) * (1.0F + e) * share * share};
}

inline float mish(float x) {
  return x * soft_tanh(x).value;
}
inline float mish_derivative(float x) {
  const SoftTanh at = soft_tanh(x);
  return at.value + x * at.slope;
}

template <Activation activation>
inline float activated(float x) {
  if constexpr (activation == Activation::kGelu) return gelu(x);
  if constexpr (activation == Activation::kRelu) return x < 0.0F ? 0.0F : x;
  if constexpr (activation == Activation::kSilu) return silu(x);
  if constexpr (activation == Activation::kTanh) return hyperbolic_tangent(x);
  if constexpr (activation == Activation::kSigmoid) return sigmoid(x);
  if constexpr (activation == Activation::kMish) return mish(x);
  if constexpr (activation == Activation::kLeakyRelu) return x < 0.0F ? 0.01F * x : x;
  if constexpr (activation == Activation::kNone) return x;
}
template <Activation activation>
inline float activation_derivative(float x) {
  if constexpr (activation == Activation::kGelu) return gelu_derivative(x);
  if constexpr (activation == Activation::kRelu) return x > 0.0F ? 1.0F : 0.0F;
  if constexpr (activation == Activation::kSilu) return silu_derivative(x);
  if constexpr (activation == Activation::kTanh) return hyperbolic_tangent_derivative(x);
  if constexpr (activation == Activation::kSigmoid) return sigmoid_derivative(x);
  if constexpr (activation == Activation::kMish) return mish_derivative(x);
  if constexpr (activation == Activation::kLeakyRelu) return x > 0.0F ? 1.0F : 0.01F;
  if constexpr (activation == Activation::kNone) return 1.0F;
}

}  // namespace jigsaw::inline kernels::cpu
