#pragma once
#include <span>

#include "array/array.h"

namespace jigsaw::inline array {

/// The bytes of an array on the host; throws Error for one that stands on a device (download it first) or
/// has no memory.
std::byte* host_memory(const Array& array);

/// The elements of an array on the host, in row-major order: for code that works on host memory, as readers
/// of files and transports do. T is the array's own type, or std::byte.
template <typename T>
class HostView : public std::span<T> {
 public:
  explicit HostView(const Array& array)
      : std::span<T>(reinterpret_cast<T*>(host_memory(array)),
                     static_cast<std::size_t>(array.bytes()) / sizeof(T)) {
    using Element = std::remove_const_t<T>;
    if constexpr (!std::is_same_v<Element, std::byte> && !std::is_same_v<Element, std::uint16_t>)
      require(array.dtype() == kDType<Element>, "a host view of another type than the array's");
  }
};

}  // namespace jigsaw::inline array
