#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "array/memory_ranges.h"
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
  /// The most that allocate() would give, with all that the source has left.
  std::size_t largest() const;
  /// Whether allocate() would need no further region.
  bool has(std::size_t bytes) const;
  /// Reserves these ranges, in place of those reserved before, so that allocate() does not give them: at once
  /// where they are free, the rest when it is released. @return  whether all of it is free.
  bool keep(const MemoryRanges& ranges);
  /// Adds to it what allocate() gives from now on; null: stops that.
  void note_in(MemoryRanges* noted) { noted_ = noted; }
  /// All regions together.
  std::size_t held_bytes() const { return held_; }

 private:
  struct Block {
    std::size_t bytes;
    bool free;          ///< allocate() may give it
    bool first;         ///< of its region: never joins the block before it
    bool kept = false;  ///< nobody uses it, and allocate() may not give it
  };
  using Blocks = std::map<std::byte*, Block>;

  std::byte* allocate_apart(std::size_t bytes);
  std::size_t tail() const;
  Blocks::iterator grow(std::size_t bytes);
  Blocks::iterator join(Blocks::iterator left, Blocks::iterator right);
  Blocks::iterator put_free(Blocks::iterator block);
  void split(Blocks::iterator block, std::size_t bytes);
  Blocks::iterator block_with(std::byte* address);
  bool keep_free_parts(std::byte* begin, std::byte* end);

  MemorySource& source_;
  std::size_t region_;
  Blocks blocks_;
  std::set<std::pair<std::size_t, std::byte*>> free_;
  std::byte* end_ = nullptr;  ///< of the last region
  std::size_t held_ = 0;
  MemoryRanges kept_;
  MemoryRanges* noted_ = nullptr;
};

}  // namespace jigsaw::inline array
