#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm/thread/round.h"
#include "comm/thread/run_ranks.h"
#include "comm/thread/virtual_clock.h"

namespace jigsaw::inline comm {

/// What all ranks of a run_ranks() share: one lock, and the first failure. All waiting happens here, so that
/// a failure or the end of a rank wakes everyone.
class World {
 public:
  using Lock = std::unique_lock<std::mutex>;

  World(int ranks, const ThreadOptions& options, VirtualClock* clock)
      : options_(options),
        clock_(clock),
        ended_(static_cast<std::size_t>(ranks), false),
        free_(static_cast<std::size_t>(ranks), 0.0) {}

  const ThreadOptions& options() const { return options_; }
  /// Null where time is that of the wall.
  VirtualClock* clock() const { return clock_; }
  Lock lock() { return Lock(mutex_); }

  /// Throws CommError when the job has failed. Holds the lock, as all below do.
  void check(const Lock&) const;
  /// From now on every call throws CommError, unless it has failed before.
  void fail(const Lock&, const std::string& reason);
  void end(const Lock&, int rank);
  bool has_ended(const Lock&, int rank) const { return ended_[static_cast<std::size_t>(rank)]; }

  /// Waits until `condition` holds, looking whenever `changed` is told; throws when the job fails. False at
  /// the time limit.
  template <typename F>
  bool wait(Lock& lock, std::condition_variable& changed, F condition) {
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                               std::chrono::duration<double>(options_.time_limit_seconds));
    return wait_until(lock, changed, limit, condition);
  }

  /// A rank starts to send and receive.
  struct Transfer {
    double sent = 0;         ///< when it has passed the rank's link, and the latency
    std::size_t number = 0;  ///< of the call on the virtual clock
  };
  Transfer start(const Lock&, int rank, const Tally& tally, const Call& call, const std::string& group,
                 double bytes);
  /// Whether the rank's time has passed this moment.
  bool is_past(const Lock&, int rank, const Tally& tally, double moment);
  /// The rank waits for a transfer until this moment; throws when the job fails.
  void wait_for(Lock& lock, std::condition_variable& changed, int rank, const Tally& tally,
                const Transfer& transfer, double moment);
  /// It ends.
  void end_time(const Lock&, int rank, const Tally& tally);

 private:
  /// Each call has a condition of its own, so that its end wakes those who wait for it and not hundreds of
  /// other ranks; a failure, or the end of a rank, wakes all that are known here.
  template <typename F>
  bool wait_until(Lock& lock, std::condition_variable& changed, std::chrono::steady_clock::time_point limit,
                  F condition) {
    const auto known = waited_for_.insert(&changed);
    const bool in_time = changed.wait_until(lock, limit, [&] { return failed_ || condition(); });
    waited_for_.erase(known);
    check(lock);
    return in_time;
  }
  void wake_all();
  /// A rank's seconds since some moment.
  double now(int rank, const Tally& tally);

  ThreadOptions options_;
  VirtualClock* clock_;
  std::mutex mutex_;
  std::multiset<std::condition_variable*> waited_for_;
  bool failed_ = false;
  std::string reason_;
  std::vector<bool> ended_;
  std::vector<double> free_;  ///< by rank: when its link has served all calls
};

/// The ranks of one communicator: the calls under way, by sequence, and the groups being split off.
struct Group {
  Group(std::vector<int> world_ranks, std::string group_label)
      : members(std::move(world_ranks)), label(std::move(group_label)) {}

  std::vector<int> members;  ///< ranks of the world
  std::string label;
  std::map<std::int64_t, std::shared_ptr<Round>> rounds;
  struct Child {
    std::shared_ptr<Group> group;
    std::size_t joined = 0;
  };
  std::map<std::pair<std::int64_t, std::vector<int>>, Child> children;
};

}  // namespace jigsaw::inline comm
