#pragma once
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/call_log.h"

namespace jigsaw::inline comm {

struct WatchdogOptions {
  double seconds = 600;          ///< without progress, until it speaks
  double grace_seconds = 10;     ///< at most, for the other ranks' files to appear
  std::filesystem::path folder;  ///< made if needed; a file system that all ranks see
  int rank = 0;
  int size = 1;
};

/// A thread beside each rank that ends a job which hangs. When beat() was not called for the given time, not
/// counting time in which this process did not run at all (it was stopped, or the machine slept), the rank's
/// status, where it waits and its last calls, is written to FOLDER/watchdog_RANK.txt. Then the lowest rank
/// that has written one reads all of them and passes to `give_up` a report of who waits where; other ranks
/// follow with their own status once it had time to. `give_up` runs on the watchdog's thread, once, and is
/// expected to end the job (Communicator::abort).
class Watchdog {
 public:
  Watchdog(WatchdogOptions options, std::shared_ptr<const CallLog> log,
           std::function<void(const std::string& report)> give_up);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Progress was made: the rank has come to this step.
  void beat(std::int64_t step);

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  bool sleep(double seconds);
  bool await_others();
  void speak();
  std::string status() const;
  std::filesystem::path file(int rank) const;
  void write_status() const;
  std::vector<std::string> headlines() const;

  WatchdogOptions options_;
  std::shared_ptr<const CallLog> log_;
  std::function<void(const std::string&)> give_up_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::int64_t step_ = 0;
  Clock::time_point last_beat_ = Clock::now();
  std::thread thread_;
};

}  // namespace jigsaw::inline comm
