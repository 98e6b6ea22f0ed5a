#include "comm/thread/world.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw {

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

Round::Clock::time_point World::transfer(const Lock&, int rank, double bytes) {
  const auto seconds = [](double value) {
    return std::chrono::duration_cast<Round::Clock::duration>(std::chrono::duration<double>(value));
  };
  Round::Clock::time_point& sent = sent_[static_cast<std::size_t>(rank)];
  sent = std::max(sent, Round::Clock::now());
  if (options_.bytes_per_second > 0) sent += seconds(bytes / options_.bytes_per_second);
  return sent + seconds(options_.latency_seconds);
}

void World::wake_all() {
  for (auto waiter = waited_for_.begin(); waiter != waited_for_.end();
       waiter = waited_for_.upper_bound(*waiter))
    (*waiter)->notify_all();
}

}  // namespace jigsaw
