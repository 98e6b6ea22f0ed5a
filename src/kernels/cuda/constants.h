#pragma once
#include <map>
#include <span>
#include <string>

#include "array/array.h"

namespace jigsaw::inline kernels::cuda {

/// Numbers that kernels read besides arrays (positions, tables, counts of ranks): they go up once, and are
/// found again by what they are.
class Constants {
 public:
  /// The same bytes on the device, there for work of any stream; until the context ends, or other constants
  /// have taken much more than their place.
  const std::byte* of(Context& context, std::span<const std::byte> bytes);

 private:
  std::map<std::string, Array> known_;
  std::size_t held_ = 0;
};

template <typename T>
const T* constants(Context& context, std::span<const T> values) {
  return reinterpret_cast<const T*>(context.state<Constants>().of(context, std::as_bytes(values)));
}

}  // namespace jigsaw::inline kernels::cuda
