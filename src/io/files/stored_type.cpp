#include "files/stored_type.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"

namespace jigsaw::inline files {

namespace {

template <typename T>
double number(const char* bytes, bool swapped) {
  std::array<char, sizeof(T)> raw{};
  std::copy_n(bytes, raw.size(), raw.begin());
  if (swapped) std::reverse(raw.begin(), raw.end());
  return static_cast<double>(std::bit_cast<T>(raw));
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

DecodeNumber decoder_of(StoredType type) {
  switch (type) {
    case StoredType::kU8:
      return number<std::uint8_t>;
    case StoredType::kI8:
      return number<std::int8_t>;
    case StoredType::kI16:
      return number<std::int16_t>;
    case StoredType::kU16:
      return number<std::uint16_t>;
    case StoredType::kI32:
      return number<std::int32_t>;
    case StoredType::kU32:
      return number<std::uint32_t>;
    case StoredType::kI64:
      return number<std::int64_t>;
    case StoredType::kU64:
      return number<std::uint64_t>;
    case StoredType::kF32:
      return number<float>;
    case StoredType::kF64:
      return number<double>;
  }
  fail("unknown type of a number in a file");
}

}  // namespace jigsaw::inline files
