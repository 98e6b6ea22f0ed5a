#pragma once
#include <atomic>
#include <cstdint>

namespace jigsaw::e2e {

/// What the ranks of a run with a slow disk share, in a file that all of them map; zeros at first. The
/// seconds of their monotonic clocks pass as ever, and `ahead` besides, so that a disk that takes days does
/// so at once.
struct SlowDisk {
  static constexpr int kMostRanks = 8;

  std::atomic<std::int64_t> ahead;                ///< nanoseconds
  std::atomic<std::int64_t> wrote, read;          ///< nanoseconds of the slow rank's disk
  std::atomic<std::int64_t> watches[kMostRanks];  ///< until when a rank's watchdog waits, on this clock; 0:
                                                  ///< it does not, -1: it looks at what was done
};

}  // namespace jigsaw::e2e
