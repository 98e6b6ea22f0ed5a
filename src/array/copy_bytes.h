#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace jigsaw::inline array {

/// As memcpy, but where there are no bytes addresses may be null, as those of empty arrays are.
inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace jigsaw::inline array
