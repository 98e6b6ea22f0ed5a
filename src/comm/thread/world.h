#pragma once
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm/thread/round.h"
#include "comm/thread/run_ranks.h"

namespace jigsaw {

/// What all ranks of a run_ranks() share: one lock, and the first failure. All waiting happens here, so that
/// a failure or the end of a rank wakes everyone.
class World {
 public:
  using Lock = std::unique_lock<std::mutex>;

  World(int ranks, const ThreadOptions& options)
      : options_(options),
        ended_(static_cast<std::size_t>(ranks), false),
        sent_(static_cast<std::size_t>(ranks)) {}

  const ThreadOptions& options() const { return options_; }
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
    const auto limit = Round::Clock::now() + std::chrono::duration_cast<Round::Clock::duration>(
                                                 std::chrono::duration<double>(options_.time_limit_seconds));
    return wait_until(lock, changed, limit, condition);
  }
  /// When what a rank starts to send now has arrived.
  Round::Clock::time_point transfer(const Lock&, int rank, double bytes);
  /// Waits until this moment; throws when the job fails.
  void sleep(Lock& lock, std::condition_variable& changed, Round::Clock::time_point until) {
    wait_until(lock, changed, until, [] { return false; });
  }

 private:
  /// Each call has a condition of its own, so that its end wakes those who wait for it and not hundreds of
  /// other ranks; a failure, or the end of a rank, wakes all that are known here.
  template <typename F>
  bool wait_until(Lock& lock, std::condition_variable& changed, Round::Clock::time_point limit, F condition) {
    const auto known = waited_for_.insert(&changed);
    const bool in_time = changed.wait_until(lock, limit, [&] { return failed_ || condition(); });
    waited_for_.erase(known);
    check(lock);
    return in_time;
  }
  void wake_all();

  ThreadOptions options_;
  std::mutex mutex_;
  std::multiset<std::condition_variable*> waited_for_;
  bool failed_ = false;
  std::string reason_;
  std::vector<bool> ended_;
  std::vector<Round::Clock::time_point> sent_;  ///< by rank: when its last call has gone out
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

}  // namespace jigsaw
