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
  if (source_.apart()) return allocate_apart(bytes);
  const std::size_t wanted = rounded(bytes, kAlignment);
  const auto fit = free_.lower_bound({wanted, nullptr});
  const auto block = fit != free_.end() ? blocks_.find(fit->second) : grow(wanted);
  std::byte* memory = block->first;
  split(block, wanted);
  free_.erase({wanted, memory});
  block->second.free = false;
  if (noted_ != nullptr) noted_->add(memory, memory + wanted);
  return memory;
}

/// The block in which an address lies.
Heap::Blocks::iterator Heap::block_with(std::byte* address) {
  return std::prev(blocks_.upper_bound(address));
}

/// A free block becomes two: its first bytes and the rest, if there is one.
void Heap::split(Blocks::iterator block, std::size_t bytes) {
  const std::size_t rest = block->second.bytes - bytes;
  if (rest == 0) return;
  free_.erase({block->second.bytes, block->first});
  block->second.bytes = bytes;
  free_.insert({bytes, block->first});
  blocks_.emplace(block->first + bytes, Block{rest, true, false});
  free_.insert({rest, block->first + bytes});
}

bool Heap::has(std::size_t bytes) const {
  return free_.lower_bound({rounded(bytes, kAlignment), nullptr}) != free_.end();
}

bool Heap::keep(const MemoryRanges& ranges) {
  for (const auto& [begin, end] : kept_.ends()) {
    for (auto block = block_with(begin); block != blocks_.end() && block->first < end; ++block)
      if (block->second.kept) block = put_free(block);
  }
  kept_ = ranges;
  bool all = true;
  for (const auto& [begin, end] : kept_.ends()) all = keep_free_parts(begin, end) && all;
  return all;
}

bool Heap::keep_free_parts(std::byte* begin, std::byte* end) {
  bool all = true;
  for (auto block = block_with(begin); block != blocks_.end() && block->first < end; ++block) {
    if (!block->second.free) {
      all = false;
      continue;
    }
    if (block->first < begin) {
      split(block, static_cast<std::size_t>(begin - block->first));
      continue;
    }
    split(block, std::min(block->second.bytes, static_cast<std::size_t>(end - block->first)));
    free_.erase({block->second.bytes, block->first});
    block->second.free = false;
    block->second.kept = true;
  }
  return all;
}

std::byte* Heap::allocate_apart(std::size_t bytes) {
  std::byte* const memory = source_.allocate(bytes);
  blocks_.emplace(memory, Block{bytes, false, true});
  held_ += bytes;
  return memory;
}

void Heap::release(std::byte* memory) noexcept {
  const auto block = blocks_.find(memory);
  if (source_.apart()) {
    source_.given_back(memory, block->second.bytes);
    held_ -= block->second.bytes;
    blocks_.erase(block);
    return;
  }
  source_.given_back(memory, block->second.bytes);
  if (kept_.contain(memory)) {
    block->second.kept = true;
  } else {
    put_free(block);
  }
}

std::size_t Heap::largest() const {
  const std::size_t hole = free_.empty() ? 0 : free_.rbegin()->first;
  const std::size_t more = source_.left() / kRegionUnit * kRegionUnit;
  return source_.apart() ? source_.left() : std::max(hole, more >= region_ ? tail() + more : 0);
}

/// Free bytes that join the next region.
std::size_t Heap::tail() const {
  if (!source_.joins() || blocks_.empty()) return 0;
  const auto& [begin, last] = *blocks_.rbegin();
  return last.free && begin + last.bytes == end_ ? last.bytes : 0;
}

/// A free block of at least `bytes` at the end; only what its free tail lacks is asked for.
Heap::Blocks::iterator Heap::grow(std::size_t bytes) {
  std::size_t tail = this->tail();
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
  block->second.kept = false;
  if (const auto next = std::next(block); next != blocks_.end() && joins(block, next))
    block = join(block, next);
  if (block != blocks_.begin() && joins(std::prev(block), block)) block = join(std::prev(block), block);
  free_.insert({block->second.bytes, block->first});
  return block;
}

}  // namespace jigsaw::inline array
