#include "base/heartbeat.h"

#include <utility>

namespace jigsaw::inline base {
namespace {

/// Ranks may be threads of one process, so that what belongs to a rank belongs to its threads.
thread_local std::shared_ptr<Heartbeat> current;

}  // namespace

WorksFor::WorksFor(std::shared_ptr<Heartbeat> heartbeat)
    : before_(std::exchange(current, std::move(heartbeat))) {}

WorksFor::~WorksFor() {
  current = std::move(before_);
}

std::shared_ptr<Heartbeat> current_heartbeat() {
  return current;
}

void beat() {
  if (current) current->beat();
}

}  // namespace jigsaw::inline base
