#include "base/stop_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace jigsaw::inline base {

namespace {

constexpr std::size_t kLongestPath = 4097;

struct Slot {
  enum State : std::uint8_t { kFree, kTaken, kNamed };
  std::atomic<State> state = kFree;
  std::array<char, kLongestPath> path{};
};
std::array<Slot, StopFile::kMost> slots;
static_assert(std::atomic<Slot::State>::is_always_lock_free, "a signal handler may read them");

}  // namespace

StopFile::StopFile(const std::string& path) {
  if (path.size() >= kLongestPath) return;
  for (int i = 0; i < kMost && slot_ < 0; ++i) {
    Slot::State free = Slot::kFree;
    if (slots[static_cast<std::size_t>(i)].state.compare_exchange_strong(free, Slot::kTaken)) slot_ = i;
  }
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  *std::ranges::copy(path, slot.path.begin()).out = 0;
  slot.state = Slot::kNamed;
}

StopFile::~StopFile() {
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  // One that a signal is about to remove stays as it is.
  Slot::State named = Slot::kNamed;
  if (slot.state.compare_exchange_strong(named, Slot::kTaken)) slot.state = Slot::kFree;
}

void remove_stop_files() {
  for (Slot& slot : slots) {
    Slot::State named = Slot::kNamed;
    if (slot.state.compare_exchange_strong(named, Slot::kTaken)) ::unlink(slot.path.data());
  }
}

}  // namespace jigsaw::inline base
