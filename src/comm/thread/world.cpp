#include "comm/thread/world.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline comm {

void World::check(const Lock&) const {
  if (failed_) throw CommError(concat("a call ended because ", reason_));
}

void World::fail(const Lock&, const std::string& reason) {
  if (failed_) return;
  failed_ = true;
  reason_ = reason;
  wake_all();
}

void World::end(const Lock&, int rank) {
  ended_[static_cast<std::size_t>(rank)] = true;
  wake_all();
}

double World::now(int rank, const Tally& tally) {
  if (clock_ != nullptr) return clock_->compute(rank, tally);
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void World::wake_all() {
  for (auto waiter = waited_for_.begin(); waiter != waited_for_.end();
       waiter = waited_for_.upper_bound(*waiter))
    (*waiter)->notify_all();
}

World::Transfer World::start(const Lock&, int rank, const Tally& tally, const Call& call,
                             const std::string& group, double bytes) {
  double& free = free_[static_cast<std::size_t>(rank)];
  free = std::max(free, now(rank, tally));
  const double seconds = options_.bytes_per_second > 0 ? bytes / options_.bytes_per_second : 0;
  free += seconds;
  Transfer transfer{free + options_.latency_seconds};
  if (clock_ != nullptr)
    transfer.number =
        clock_->start(rank, concat(call.describe(), " on ", group), bytes, seconds, call.result_purpose);
  return transfer;
}

bool World::is_past(const Lock&, int rank, const Tally& tally, double moment) {
  return moment <= now(rank, tally);
}

void World::wait_for(Lock& lock, std::condition_variable& changed, int rank, const Tally& tally,
                     const Transfer& transfer, double moment) {
  const double seconds = moment - now(rank, tally);
  if (clock_ != nullptr) return clock_->wait(rank, transfer.number, moment);
  if (seconds <= 0) return;
  const auto until =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
  wait_until(lock, changed, until, [] { return false; });
}

void World::end_time(const Lock&, int rank, const Tally& tally) {
  now(rank, tally);
}

}  // namespace jigsaw::inline comm
