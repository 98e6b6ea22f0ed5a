#include "comm/watchdog.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/text.h"

namespace jigsaw::inline comm {

namespace {

std::chrono::steady_clock::duration in_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

const char* name(CallLog::State state) {
  return state == CallLog::State::kStarted   ? "started"
         : state == CallLog::State::kWaiting ? "waiting"
                                             : "done";
}

}  // namespace

Watchdog::Watchdog(WatchdogOptions options, std::shared_ptr<const CallLog> log,
                   std::function<void(const std::string& report)> give_up)
    : options_(std::move(options)), log_(std::move(log)), give_up_(std::move(give_up)) {
  std::error_code ignored;
  std::filesystem::remove(file(options_.rank), ignored);  // of an earlier run
  thread_ = std::thread(&Watchdog::watch, this);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::beat(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  last_beat_ = Clock::now();
}

/// In short waits: one that lasted far too long was no wait but a stop of the whole process, and a rank that
/// wakes from one, perhaps into a job that others have given up, has as much time again.
void Watchdog::watch() {
  const Clock::duration patience = in_seconds(options_.seconds), slice = patience / 20;
  {
    std::unique_lock lock(mutex_);
    for (Clock::time_point now = Clock::now(); now < last_beat_ + patience;) {
      if (changed_.wait_until(lock, std::min(now + slice, last_beat_ + patience),
                              [this] { return stopped_; })) {
        return;
      }
      const Clock::time_point before = std::exchange(now, Clock::now());
      if (now - before > 10 * slice) last_beat_ = now;
    }
  }
  speak();
}

/// False when the rank has come to its end meanwhile.
bool Watchdog::sleep(double seconds) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, in_seconds(seconds), [this] { return stopped_; });
}

/// Until every rank has written its status, or the time of grace is over: a rank whose process is gone or
/// frozen never does. False when the rank has come to its end meanwhile.
bool Watchdog::await_others() {
  const Clock::time_point end = Clock::now() + in_seconds(options_.grace_seconds);
  for (int rank = 0; rank < options_.size; ++rank) {
    while (!std::filesystem::exists(file(rank)) && Clock::now() < end) {
      if (!sleep(std::min(0.05, options_.grace_seconds))) return false;
    }
  }
  return true;
}

void Watchdog::speak() {
  write_status();
  if (!await_others()) return;
  bool lowest = true;
  for (int rank = 0; rank < options_.rank; ++rank) lowest = lowest && !std::filesystem::exists(file(rank));
  if (lowest) {
    give_up_(concat("no progress for ", options_.seconds, " seconds: ", join(headlines(), "; ")));
  } else if (sleep(options_.grace_seconds)) {
    give_up_(concat("no progress for ", options_.seconds, " seconds: ", status()));
  }
}

/// The first line of a status file.
std::string Watchdog::status() const {
  const std::lock_guard lock(mutex_);
  return concat("rank ", options_.rank, " in step ", step_, " ", log_->position());
}

std::filesystem::path Watchdog::file(int rank) const {
  return options_.folder / concat("watchdog_", rank, ".txt");
}

/// A status that cannot be written (a full disk) must not keep the job from ending.
void Watchdog::write_status() const {
  std::error_code ignored;
  std::filesystem::create_directories(options_.folder, ignored);
  const std::filesystem::path whole = file(options_.rank);
  const std::filesystem::path beside = whole.string() + ".part";
  std::ofstream out(beside);
  out << status() << "\nlast calls:\n";
  for (const CallLog::Entry& entry : log_->last()) {
    out << entry.number << ' ' << entry.describe() << ' ' << name(entry.state) << '\n';
  }
  out.close();
  std::filesystem::rename(beside, whole, ignored);
}

std::vector<std::string> Watchdog::headlines() const {
  std::vector<std::string> lines;
  for (int rank = 0; rank < options_.size; ++rank) {
    std::ifstream in(file(rank));
    std::string line;
    lines.push_back(std::getline(in, line) ? line : concat("rank ", rank, " says nothing"));
  }
  return lines;
}

}  // namespace jigsaw::inline comm
