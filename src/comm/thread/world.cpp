#include "comm/thread/world.h"

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
  changed_.notify_all();
}

void World::end(const Lock&, int rank) {
  ended_[static_cast<std::size_t>(rank)] = true;
  changed_.notify_all();
}

void World::sleep(Lock& lock, Round::Clock::time_point until) {
  changed_.wait_until(lock, until, [&] { return failed_; });
  check(lock);
}

}  // namespace jigsaw
