#include "array/heap.h"

#include <algorithm>
#include <iterator>

namespace jigsaw::inline array {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kRegionUnit = std::size_t{2} << 20;

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

}  // namespace

std::byte* Heap::allocate(std::size_t bytes) {
  const std::size_t wanted = rounded(bytes, kAlignment);
  const auto fit = free_.lower_bound({wanted, nullptr});
  const auto block = fit != free_.end() ? blocks_.find(fit->second) : grow(wanted);
  std::byte* memory = block->first;
  free_.erase({block->second.bytes, memory});
  if (const std::size_t rest = block->second.bytes - wanted; rest > 0) {
    blocks_.emplace(memory + wanted, Block{rest, true, false});
    free_.insert({rest, memory + wanted});
  }
  block->second.bytes = wanted;
  block->second.free = false;
  return memory;
}

void Heap::release(std::byte* memory) noexcept {
  const auto block = blocks_.find(memory);
  source_.given_back(memory, block->second.bytes);
  put_free(block);
}

/// A free block of at least `bytes` at the end; only what its free tail lacks is asked for.
Heap::Blocks::iterator Heap::grow(std::size_t bytes) {
  std::size_t tail = 0;
  if (source_.joins() && !blocks_.empty()) {
    const auto& [begin, last] = *blocks_.rbegin();
    if (last.free && begin + last.bytes == end_) tail = last.bytes;
  }
  for (;;) {
    const std::size_t asked = std::max(region_, rounded(bytes - tail, kRegionUnit));
    std::byte* memory = source_.allocate(asked);
    held_ += asked;
    const bool first = !source_.joins() || memory != end_;
    end_ = memory + asked;
    const auto block = put_free(blocks_.emplace(memory, Block{asked, true, first}).first);
    if (block->second.bytes >= bytes) return block;
    tail = 0;  // the region lies elsewhere
  }
}

Heap::Blocks::iterator Heap::join(Blocks::iterator left, Blocks::iterator right) {
  free_.erase({left->second.bytes, left->first});
  free_.erase({right->second.bytes, right->first});
  left->second.bytes += right->second.bytes;
  blocks_.erase(right);
  return left;
}

Heap::Blocks::iterator Heap::put_free(Blocks::iterator block) {
  const auto joins = [](const auto& left, const auto& right) {
    return left->second.free && right->second.free && !right->second.first &&
           left->first + left->second.bytes == right->first;
  };
  block->second.free = true;
  if (const auto next = std::next(block); next != blocks_.end() && joins(block, next))
    block = join(block, next);
  if (block != blocks_.begin() && joins(std::prev(block), block)) block = join(std::prev(block), block);
  free_.insert({block->second.bytes, block->first});
  return block;
}

}  // namespace jigsaw::inline array
