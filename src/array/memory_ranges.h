#pragma once
#include <cstddef>
#include <map>

namespace jigsaw::inline array {

/// Ranges of addresses, of which no two touch.
class MemoryRanges {
 public:
  void add(std::byte* begin, std::byte* end);
  void add(const MemoryRanges& others);
  bool contain(std::byte* address) const;
  /// By their begins.
  const std::map<std::byte*, std::byte*>& ends() const { return ends_; }
  bool operator==(const MemoryRanges&) const = default;

 private:
  std::map<std::byte*, std::byte*> ends_;
};

}  // namespace jigsaw::inline array
