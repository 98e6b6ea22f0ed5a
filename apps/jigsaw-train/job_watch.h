#pragma once
#include <atomic>
#include <memory>
#include <optional>

#include "base/scratch_folder.h"
#include "comm/communicator.h"
#include "comm/watchdog.h"

namespace jigsaw {

/// Ends a job in which no rank makes progress (comm/watchdog.h), with a line on stderr and exit code 1. Its
/// files stand in a folder of its own in the working folder, jigsaw-watchdog.XXXXXX, which goes with it, also
/// where a signal ends the process; after a hang it stays. A rank that is alone needs none.
class JobWatch {
 public:
  /// Collective. Nothing watches where ranks share no working folder, or may not write there.
  /// @param world    by which the ranks talk until follow().
  /// @param seconds  Configuration::watchdog_seconds, above 0.
  JobWatch(Communicator& world, double seconds);
  ~JobWatch();
  /// From now on the ranks talk by this communicator, which outlives it.
  void follow(Communicator& world);
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

 private:
  std::atomic<Communicator*> world_;
  std::optional<ScratchFolder> folder_;  ///< of rank 0
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace jigsaw
