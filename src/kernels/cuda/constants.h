#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "array/array.h"

namespace jigsaw::inline kernels::cuda {

/// Numbers that kernels read besides arrays (positions, tables, counts of ranks): they go up once, and are
/// found again by what they are, byte by byte: a type has no bytes that nobody sets.
class Constants {
 public:
  /// Where kMostBytes would be exceeded all are freed but those that the last kKept calls returned, of which
  /// one launch may read several, and those that recorded work reads (RecordedPosition).
  static constexpr std::int64_t kKept = 64;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  /// The same bytes on the device, there for work of any stream that is launched within kKept more calls.
  const std::byte* of(Context& context, std::span<const std::byte> bytes);

 private:
  struct Known {
    Array array;
    std::int64_t call = 0;       ///< the last that gave it
    std::int64_t recording = 0;  ///< RecordedPosition::era of work that is recorded and reads it; 0: of none
  };
  void make_room(Context& context, std::size_t bytes);

  std::map<std::string, Known, std::less<>> known_;
  std::size_t held_ = 0;
  std::int64_t calls_ = 0;
};

template <typename T>
const T* constants(Context& context, std::span<const T> values) {
  return reinterpret_cast<const T*>(context.state<Constants>().of(context, std::as_bytes(values)));
}

}  // namespace jigsaw::inline kernels::cuda
