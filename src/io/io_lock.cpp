#include "io/io_lock.h"

namespace jigsaw {

std::unique_lock<std::mutex> lock_io() {
  // The libraries keep their state per process, so the lock that guards it has to live there too.
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

}  // namespace jigsaw
