#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace jigsaw::inline kernels::cpu {

/// Heads of equal work, each of so many blocks, in a queue for each thread. A thread whose queue is empty
/// goes on with another's, and the last head of a queue is cut into parts that get shorter, so that a thread
/// that other programs slow down holds up the rest by little. Heads that threads cannot share evenly are cut
/// into equal parts. Which parts there are depends on the arguments only.
class HeadQueues {
 public:
  /// Blocks `begin` to `end` of a head.
  struct Item {
    std::int64_t head = 0, begin = 0, end = 0;
    std::int64_t cut_head = -1, part = 0;  ///< its number among the heads that are cut, −1 for a whole one
  };

  /// kKeep is for results that depend on who did what, so that they repeat: no thread goes on with another's
  /// queue.
  enum class Threads : std::uint8_t { kHelp, kKeep };

  HeadQueues(std::int64_t heads, std::int64_t blocks, int threads, Threads how)
      : blocks_(blocks), help_(how == Threads::kHelp), taken_(static_cast<std::size_t>(threads)) {
    whole_ = threads == 1 ? heads : !help_ ? 0 : std::max<std::int64_t>(0, heads / threads - 1);
    last_ = heads - whole_ * threads;
    if (help_ && last_ == threads) {
      // As many parts as heads and threads at most, which bounds what is kept for each.
      const std::int64_t most = std::min<std::int64_t>(5, 1 + heads / threads);
      while (halvings_ + 1 < most && blocks >> (halvings_ + 1) > 0) ++halvings_;
    } else {
      double least = 0;
      for (std::int64_t n = 1; n <= std::min<std::int64_t>(threads, blocks); ++n) {
        const std::int64_t items = (last_ * n + threads - 1) / threads;  // of the busiest thread
        const double work = static_cast<double>(items) / static_cast<double>(n);
        if (n > 1 && work >= 0.9 * least) continue;
        ranges_ = n, least = work;
      }
    }
  }

  std::int64_t parts() const { return ranges_ + halvings_; }
  std::int64_t cut_heads() const { return parts() > 1 ? last_ : 0; }
  std::int64_t head_of_cut(std::int64_t cut_head) const { return whole_ * queues() + cut_head; }

  /// The next item for `thread`; false when there is none left.
  bool take(int thread, Item& item) {
    for (std::int64_t i = 0; i < (help_ ? queues() : 1); ++i) {
      if (take_from((thread + i) % queues(), item)) return true;
    }
    return false;
  }

 private:
  struct alignas(64) Counter {
    std::atomic<std::int64_t> value = 0;
  };

  std::int64_t queues() const { return static_cast<std::int64_t>(taken_.size()); }

  /// First whole heads, then a share of the items of the last ones.
  bool take_from(std::int64_t queue, Item& item) {
    const std::int64_t at = taken_[static_cast<std::size_t>(queue)].value++;
    if (at < whole_) {
      item = {queue * whole_ + at, 0, blocks_};
      return true;
    }
    const std::int64_t items = last_ * parts(), n = items * queue / queues() + at - whole_;
    if (n >= items * (queue + 1) / queues()) return false;
    item = part_of(n / parts(), n % parts());
    return true;
  }

  Item part_of(std::int64_t cut_head, std::int64_t part) const {
    const std::int64_t head = head_of_cut(cut_head);
    if (parts() == 1) return {head, 0, blocks_};
    if (halvings_ == 0) {
      return {head, blocks_ * part / ranges_, blocks_ * (part + 1) / ranges_, cut_head, part};
    }
    // The first half, the first half of what is left, and so on, and at last what is left.
    const std::int64_t left = part < halvings_ ? blocks_ >> (part + 1) : 0;
    return {head, blocks_ - (blocks_ >> part), blocks_ - left, cut_head, part};
  }

  std::int64_t blocks_;
  bool help_;
  std::vector<Counter> taken_;         ///< items, from each queue
  std::int64_t whole_ = 0, last_ = 0;  ///< heads of each queue that are not cut, and the others of all queues
  std::int64_t ranges_ = 1, halvings_ = 0;
};

}  // namespace jigsaw::inline kernels::cpu
