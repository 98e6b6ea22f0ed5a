#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "array/memory_source.h"

namespace jigsaw::inline array {

/// Blocks of any size out of a source's regions: best fit, free neighbours join, so that memory freed by
/// activations serves gradients. The bookkeeping stands beside the memory, which may be a device's. Not
/// thread-safe.
class Heap {
 public:
  /// @param region  regions are at least so large, a multiple of 2 MiB.
  Heap(MemorySource& source, std::size_t region) : source_(source), region_(region) {}

  /// Aligned to 256 bytes.
  std::byte* allocate(std::size_t bytes);
  void release(std::byte* memory) noexcept;
  /// All regions together.
  std::size_t held_bytes() const { return held_; }

 private:
  struct Block {
    std::size_t bytes;
    bool free;
    bool first;  ///< of its region: never joins the block before it
  };
  using Blocks = std::map<std::byte*, Block>;

  Blocks::iterator grow(std::size_t bytes);
  Blocks::iterator join(Blocks::iterator left, Blocks::iterator right);
  Blocks::iterator put_free(Blocks::iterator block);

  MemorySource& source_;
  std::size_t region_;
  Blocks blocks_;
  std::set<std::pair<std::size_t, std::byte*>> free_;
  std::byte* end_ = nullptr;  ///< of the last region
  std::size_t held_ = 0;
};

}  // namespace jigsaw::inline array
