#include "array/memory_ranges.h"

#include <algorithm>
#include <iterator>

namespace jigsaw::inline array {

void MemoryRanges::add(std::byte* begin, std::byte* end) {
  auto next = ends_.upper_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != ends_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ends_.erase(next);
  }
  ends_.emplace(begin, end);
}

bool MemoryRanges::contain(std::byte* address) const {
  const auto after = ends_.upper_bound(address);
  return after != ends_.begin() && address < std::prev(after)->second;
}

void MemoryRanges::add(const MemoryRanges& others) {
  for (const auto& [begin, end] : others.ends_) add(begin, end);
}

}  // namespace jigsaw::inline array
