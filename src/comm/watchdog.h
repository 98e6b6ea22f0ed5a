#pragma once
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/heartbeat.h"
#include "comm/call_log.h"
#include "comm/patience.h"

namespace jigsaw::inline comm {

struct WatchdogOptions {
  double seconds = 600;          ///< without progress until it reports
  double grace_seconds = 10;     ///< at most, for the other ranks' files to appear
  std::filesystem::path folder;  ///< rank 0 makes it; a file system that all ranks see; "" for a rank alone
  int rank = 0;
  int size = 1;
  /// Of the rank; null: beat() alone counts.
  std::shared_ptr<Heartbeat> heartbeat = nullptr;
};

/// A thread beside each rank that ends a job which hangs, that is, in which no rank makes progress for the
/// given time. A rank makes progress with every unit of its work (base/heartbeat.h). While any does, it
/// touches FOLDER/watchdog_alive now and then, so that ranks which wait for a slow one know. When none does,
/// each rank writes its status, where it waits and its last calls, to FOLDER/watchdog_RANK.txt. Then the
/// lowest rank that has written one reads all of them, keeps them in one file, FOLDER/watchdog_TIME.txt, and
/// passes to `give_up` a report of who waits where and who has not arrived; if it does not, the others do so
/// later with their own status. The next start removes the files of ranks, of however many there were, and
/// not that one. If there is progress meanwhile the files are removed, and the run goes on. `give_up` runs on
/// the watchdog's thread, once, and is expected to end the job (Communicator::abort).
class Watchdog {
 public:
  Watchdog(WatchdogOptions options, std::shared_ptr<const CallLog> log,
           std::function<void(const std::string& report)> give_up);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// What stands in its folder while it watches several ranks.
  static std::filesystem::path alive_file(const std::filesystem::path& folder) {
    return folder / "watchdog_alive";
  }

  /// From now on the rank's calls stand in this log.
  void follow(std::shared_ptr<const CallLog> log);
  /// Progress was made: the rank has come to this step.
  void beat(std::int64_t step);

 private:
  /// How a wait ended: nothing happened, there was progress, or the watchdog is to end.
  enum class Wait : std::uint8_t { kOver, kProgress, kEnd };

  void watch();
  Wait wait(double seconds);
  Patience::Verdict look();
  std::int64_t stamp();
  Wait await_others();
  bool speak();
  /// Where a rank stands.
  struct Status {
    std::string text;
    std::optional<std::int64_t> call;  ///< CallLog::Position::ordinal of that which it is in
  };
  Status own_status() const;
  Status written_status(int rank) const;
  std::filesystem::path file(int rank) const;
  void open_folder();
  bool has_spoken(int rank);
  std::filesystem::path alive() const { return alive_file(options_.folder); }
  void write_status() const;
  void keep_statuses(const std::string& report) const;
  void remove_left() const;
  std::string report() const;

  WatchdogOptions options_;
  std::shared_ptr<const CallLog> log_;
  std::function<void(const std::string&)> give_up_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::optional<std::int64_t> step_;  ///< of those that beat() told
  Patience patience_;
  std::chrono::steady_clock::time_point folder_holds_until_{};  ///< then it is opened again
  std::thread thread_;
};

}  // namespace jigsaw::inline comm
