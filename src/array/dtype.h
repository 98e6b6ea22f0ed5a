#pragma once
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace jigsaw::inline array {

enum class DType : std::uint8_t { kFloat32, kFloat64, kBfloat16 };

/// "fp32", "fp64", "bf16".
std::string_view name(DType dtype);
constexpr std::int64_t size_of(DType dtype) {
  return dtype == DType::kFloat64 ? 8 : dtype == DType::kFloat32 ? 4 : 2;
}

/// The upper half of a float32, rounded to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = word + 0x7fffU + ((word >> 16) & 1U);
    bits = static_cast<std::uint16_t>(is_nan ? (word >> 16) | 0x40U : rounded >> 16);
  }
  explicit BFloat16(double value) : BFloat16(static_cast<float>(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

template <typename T>
inline constexpr DType kDType = DType::kFloat32;
template <>
inline constexpr DType kDType<double> = DType::kFloat64;
template <>
inline constexpr DType kDType<BFloat16> = DType::kBfloat16;

/// The type in which sums over elements of T are formed: double for double, else float.
template <typename T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Calls f with a value of the C++ type of `dtype`: visit(dtype, [&](auto zero) { using T = decltype(zero); …
/// }).
template <typename F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kBfloat16:
      return f(BFloat16{});
  }
  fail("unknown element type");
}

}  // namespace jigsaw::inline array
