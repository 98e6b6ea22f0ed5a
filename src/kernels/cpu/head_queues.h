#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace jigsaw::cpu {

/// Heads of equal work, each of so many blocks, for threads. Every thread has a queue of heads, or shares
/// one. The last head of a queue is cut into parts that get shorter, and a thread whose queue is empty goes
/// on with another's, so that a thread that other programs slow down holds up the rest by little. Which parts
/// there are depends on the arguments only.
class HeadQueues {
 public:
  /// Blocks `begin` to `end` of a head.
  struct Item {
    std::int64_t head = 0, begin = 0, end = 0;
    std::int64_t cut_head = -1, part = 0;  ///< its number among the heads that are cut, −1 for a whole one
  };

  /// Of at least one head. Fixed: whole heads only, and no thread goes on with another's queue, for results
  /// that depend on who did what, so that they repeat.
  HeadQueues(std::int64_t heads, std::int64_t blocks, int threads, bool fixed)
      : heads_(heads),
        blocks_(blocks),
        fixed_(fixed),
        taken_(static_cast<std::size_t>(std::min<std::int64_t>(heads, threads))) {
    if (fixed || threads == 1) return;
    ranges_ = std::min((threads + queues() - 1) / queues(), blocks);
    while (levels_ < 5 && blocks / ranges_ >> levels_ > 0) ++levels_;
  }

  std::int64_t parts() const { return ranges_ * levels_; }
  std::int64_t cut_heads() const { return parts() > 1 ? queues() : 0; }
  std::int64_t head_of_cut(std::int64_t cut_head) const { return first_head(cut_head + 1) - 1; }

  /// The next item for `thread`; false when there is none left.
  bool take(int thread, Item& item) {
    if (fixed_) return thread < queues() && take_from(thread, item);
    for (std::int64_t i = 0; i < queues(); ++i) {
      if (take_from((thread + i) % queues(), item)) return true;
    }
    return false;
  }

 private:
  struct alignas(64) Counter {
    std::atomic<std::int64_t> value = 0;
  };

  std::int64_t queues() const { return static_cast<std::int64_t>(taken_.size()); }
  std::int64_t first_head(std::int64_t queue) const { return heads_ * queue / queues(); }

  bool take_from(std::int64_t queue, Item& item) {
    const std::int64_t first = first_head(queue), heads = first_head(queue + 1) - first;
    const std::int64_t whole = parts() > 1 ? heads - 1 : heads;
    const std::int64_t at = taken_[static_cast<std::size_t>(queue)].value++;
    if (at < whole) {
      item = {first + at, 0, blocks_, -1, 0};
      return true;
    }
    if (at - whole >= (heads - whole) * parts()) return false;
    item = part_of(queue, at - whole);
    return true;
  }

  /// The head is cut into ranges, and each of these into its first half, the first half of what is left, and
  /// so on.
  Item part_of(std::int64_t cut_head, std::int64_t part) const {
    const std::int64_t range = part % ranges_, level = part / ranges_;
    const std::int64_t end = blocks_ * (range + 1) / ranges_, length = end - blocks_ * range / ranges_;
    const std::int64_t left = level + 1 < levels_ ? length >> (level + 1) : 0;
    return {head_of_cut(cut_head), end - (length >> level), end - left, cut_head, part};
  }

  std::int64_t heads_, blocks_;
  bool fixed_;
  std::vector<Counter> taken_;  ///< items, from each queue
  std::int64_t ranges_ = 1, levels_ = 1;
};

}  // namespace jigsaw::cpu
