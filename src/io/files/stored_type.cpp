#include "files/stored_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"

namespace jigsaw::inline files {

namespace {

template <typename T>
void encode(double value, std::span<std::byte> bytes) {
  T number{};
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
    if (value >= kHigh) {
      number = std::numeric_limits<T>::max();
    } else if (value > kLow) {
      number = static_cast<T>(value);
    } else if (value <= kLow) {
      number = std::numeric_limits<T>::min();
    }
  } else {
    number = static_cast<T>(value);
  }
  std::memcpy(bytes.data(), &number, sizeof number);
}

constexpr std::uint16_t kHalfSign = 0x8000, kHalfInfinity = 0x7c00, kHalfNaN = 0x7e00;
constexpr int kHalfFraction = 10, kHalfLeastExponent = -14;
constexpr double kHalfLimit = 65520;  ///< from it on the nearest is infinity

}  // namespace

Half::Half(double value) {
  const std::uint16_t sign = std::signbit(value) ? kHalfSign : 0;
  const double size = std::abs(value);
  if (std::isnan(value)) {
    bits = sign | kHalfNaN;
  } else if (size >= kHalfLimit) {
    bits = sign | kHalfInfinity;
  } else {
    // In units of the last place, which all below 2^-14 share; a fraction rounded up to 2 raises the
    // exponent.
    const int exponent = size == 0 ? kHalfLeastExponent : std::max(std::ilogb(size), kHalfLeastExponent);
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(size, kHalfFraction - exponent)));
    const int raised = (exponent - kHalfLeastExponent) << kHalfFraction;
    bits = static_cast<std::uint16_t>(sign + raised + units);
  }
}

Half::operator float() const {
  const std::uint32_t sign = (bits & std::uint32_t{kHalfSign}) << 16;
  const std::uint32_t size = bits & ~std::uint32_t{kHalfSign};
  constexpr int kShift = 23 - kHalfFraction;
  // The same fraction, and an exponent that is too small by the difference of the biases.
  const float scaled = std::bit_cast<float>(size << kShift) * 0x1p112F;
  const std::uint32_t beyond = size >= kHalfInfinity ? 0x7f800000U | size << kShift : 0;
  return std::bit_cast<float>(sign | (beyond != 0 ? beyond : std::bit_cast<std::uint32_t>(scaled)));
}

bool is_floating(StoredType type) {
  return type == StoredType::kF16 || type == StoredType::kF32 || type == StoredType::kF64;
}

const char* numpy_name(StoredType type) {
  static constexpr std::array<const char*, 11> kNames = {"uint8",   "int8",    "int16",  "uint16",
                                                         "int32",   "uint32",  "int64",  "uint64",
                                                         "float16", "float32", "float64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::int64_t size_of(StoredType type) {
  switch (type) {
    case StoredType::kU8:
    case StoredType::kI8:
      return 1;
    case StoredType::kI16:
    case StoredType::kU16:
    case StoredType::kF16:
      return 2;
    case StoredType::kI32:
    case StoredType::kU32:
    case StoredType::kF32:
      return 4;
    case StoredType::kI64:
    case StoredType::kU64:
    case StoredType::kF64:
      return 8;
  }
  fail("unknown type of a number in a file");
}

void encode_number(StoredType type, double value, std::span<std::byte> bytes) {
  switch (type) {
    case StoredType::kU8:
      return encode<std::uint8_t>(value, bytes);
    case StoredType::kI8:
      return encode<std::int8_t>(value, bytes);
    case StoredType::kI16:
      return encode<std::int16_t>(value, bytes);
    case StoredType::kU16:
      return encode<std::uint16_t>(value, bytes);
    case StoredType::kI32:
      return encode<std::int32_t>(value, bytes);
    case StoredType::kU32:
      return encode<std::uint32_t>(value, bytes);
    case StoredType::kI64:
      return encode<std::int64_t>(value, bytes);
    case StoredType::kU64:
      return encode<std::uint64_t>(value, bytes);
    case StoredType::kF16:
      return encode<Half>(value, bytes);
    case StoredType::kF32:
      return encode<float>(value, bytes);
    case StoredType::kF64:
      return encode<double>(value, bytes);
  }
}

}  // namespace jigsaw::inline files
