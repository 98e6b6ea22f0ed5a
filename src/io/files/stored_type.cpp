#include "files/stored_type.h"

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

}  // namespace

std::int64_t size_of(StoredType type) {
  switch (type) {
    case StoredType::kU8:
    case StoredType::kI8:
      return 1;
    case StoredType::kI16:
    case StoredType::kU16:
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
    case StoredType::kF32:
      return encode<float>(value, bytes);
    case StoredType::kF64:
      return encode<double>(value, bytes);
  }
}

}  // namespace jigsaw::inline files
