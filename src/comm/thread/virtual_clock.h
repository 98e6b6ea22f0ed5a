#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "array/context.h"
#include "comm/call.h"
#include "comm/thread/run_ranks.h"

namespace jigsaw::inline comm {

/// The time of ranks that are threads, counted rather than measured: kernels last what the rank's Tally says
/// of their FLOPs and bytes at given rates, transfers what ThreadOptions says, and waiting goes on to the
/// moment when the last of them has arrived. Nothing else takes time, and neither the machine nor its load
/// matter: a step lasts longer than its products or its transfers only by the order of its starts and waits.
///
/// Read between runs; while ranks run it is their world's, under its lock.
class VirtualClock {
 public:
  struct Rates {
    double flops_per_second = 1e11;
    double memory_bytes_per_second = 1e10;
  };

  /// One call of a rank, in seconds since the beginning.
  struct Call {
    std::string name;  ///< "all_gather #17 of 4096 fp32 on tensor"
    double bytes = 0;  ///< that pass the rank's link: the larger of what goes out and what comes in
    Purpose purpose = Purpose::kActivations;  ///< of the result
    double started = 0;                       ///< by this rank
    double arrived = 0;                       ///< here, when all ranks had started it
    double waited = 0;                        ///< when this rank turned to it
    double computed = 0;                      ///< seconds of kernels between start and wait
    bool finished = false;                    ///< waited for

    double stalled() const { return arrived > waited ? arrived - waited : 0; }
    std::string to_string() const;
  };

  struct RankTime {
    double now = 0;       ///< since the beginning
    double computed = 0;  ///< of which in kernels
    double stalled = 0;   ///< of which waiting for transfers
    double link = 0;      ///< during which its link was busy
    std::vector<Call> calls;
  };

  VirtualClock(int ranks, const Rates& rates)
      : rates_(rates), times_(static_cast<std::size_t>(ranks)), counted_(times_.size()) {}

  const RankTime& of(int rank) const { return times_[static_cast<std::size_t>(rank)]; }
  /// When the last rank has ended.
  double seconds() const;
  /// The calls of all ranks for which one waited longest, for people.
  std::string longest_waits(std::size_t count) const;

  // For the ranks' world.

  /// Kernels ran: what was counted since the last time. The rank's time then.
  double compute(int rank, const Tally& tally);
  /// A call begins; its number.
  std::size_t start(int rank, std::string name, double bytes, double link_seconds, Purpose purpose);
  /// The rank waits for it until it has arrived.
  void wait(int rank, std::size_t number, double arrived);

 private:
  Rates rates_;
  std::vector<RankTime> times_;
  std::vector<Tally> counted_;
};

/// The same as run_ranks() in the clock's time: the latency and bandwidth of `options` are counted, too. On
/// meta arrays nothing is moved.
void run_ranks(int ranks, const ThreadOptions& options, VirtualClock& clock,
               const std::function<Context(int rank)>& make_context,
               const std::function<void(Communicator&)>& body);

}  // namespace jigsaw::inline comm
