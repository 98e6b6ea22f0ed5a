#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/error.h"

namespace jigsaw::testing::fake_cuda {

/// What is noted of each kUnit bytes of the memory that is watched; zeros at first.
template <typename Note, std::size_t kUnit>
class Shadow {
 public:
  void watch(const void* base, std::size_t bytes) {
    void* const notes = mmap(nullptr, mapped(bytes), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(notes != MAP_FAILED, "there is no room to watch the memory of a fake device");
    ranges_[reinterpret_cast<std::uintptr_t>(base)] = {bytes, static_cast<Note*>(notes)};
    find_bounds();
  }
  void forget(const void* base) {
    const auto found = ranges_.find(reinterpret_cast<std::uintptr_t>(base));
    if (found == ranges_.end()) return;
    munmap(found->second.notes, mapped(found->second.bytes));
    ranges_.erase(found);
    find_bounds();
  }

  /// Whether the address may be watched, at little cost.
  bool may_hold(std::uintptr_t at) const { return at - low_ < extent_; }
  /// Calls look(note) for what is noted of these bytes, as far as they are watched.
  template <typename Look>
  void each(std::uintptr_t at, std::size_t bytes, const Look& look) {
    if (at - last_base_ >= last_.bytes && !find(at)) return;
    const std::size_t first = at - last_base_, end = std::min(first + bytes, last_.bytes);
    for (std::size_t unit = first / kUnit; unit * kUnit < end; ++unit) look(last_.notes[unit]);
  }

 private:
  struct Range {
    std::size_t bytes = 0;
    Note* notes = nullptr;
  };

  /// The range that holds the address, as the last one.
  bool find(std::uintptr_t at) {
    auto after = ranges_.upper_bound(at);
    if (after == ranges_.begin()) return false;
    --after;
    if (at - after->first >= after->second.bytes) return false;
    last_base_ = after->first;
    last_ = after->second;
    return true;
  }
  static std::size_t mapped(std::size_t bytes) { return (bytes / kUnit + 1) * sizeof(Note); }
  void find_bounds() {
    last_ = {};
    low_ = ranges_.empty() ? 0 : ranges_.begin()->first;
    extent_ = ranges_.empty() ? 0 : ranges_.rbegin()->first + ranges_.rbegin()->second.bytes - low_;
  }

  std::map<std::uintptr_t, Range> ranges_;
  std::uintptr_t low_ = 0, extent_ = 0;  ///< of all ranges
  std::uintptr_t last_base_ = 0;
  Range last_ = {};  ///< in which something was looked for last
};

}  // namespace jigsaw::testing::fake_cuda
