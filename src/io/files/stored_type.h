#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace jigsaw::inline files {

/// What numbers are in files that are decoded here.
enum class StoredType : std::uint8_t { kU8, kI8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kF32, kF64 };

/// A number of 16 bits, 5 of them for the exponent (IEEE 754 binary16).
struct Half {
  std::uint16_t bits = 0;

  Half() = default;
  /// The nearest one, of two the even one.
  explicit Half(double value);
  static Half of_bits(std::uint16_t bits) {
    Half half;
    half.bits = bits;
    return half;
  }
  explicit operator float() const;
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

std::int64_t size_of(StoredType type);
/// As numpy calls it.
const char* numpy_name(StoredType type);
bool is_floating(StoredType type);

/// Puts a number, in this machine's byte order, into its size_of(type) bytes; what the type does not hold
/// becomes the nearest that it does.
void encode_number(StoredType type, double value, std::span<std::byte> bytes);

}  // namespace jigsaw::inline files
