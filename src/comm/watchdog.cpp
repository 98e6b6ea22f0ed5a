#include "comm/watchdog.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/exit_file.h"
#include "base/file.h"
#include "base/text.h"

namespace jigsaw::inline comm {

namespace {

std::chrono::steady_clock::duration in_seconds(double seconds) {
  constexpr double kMost = 1e9;  // of what a clock can count
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kMost)));
}

constexpr std::int64_t kMostStatusBytes = 1 << 20;

/// What the names of its files begin with: "watchdog_3.txt", of rank 3.
constexpr std::string_view kBegin = "watchdog_";

/// Before the ordinal of a call in the second line of a status file.
constexpr std::string_view kIn = "in call ";

const char* name(CallLog::State state) {
  static constexpr std::array kNames = {"started", "waiting", "queued", "running", "done"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace

Watchdog::Watchdog(WatchdogOptions options, std::shared_ptr<const CallLog> log,
                   std::function<void(const std::string& report)> give_up)
    : options_(std::move(options)),
      log_(std::move(log)),
      give_up_(std::move(give_up)),
      patience_(in_seconds(options_.seconds), std::chrono::steady_clock::now()) {
  if (!options_.heartbeat) options_.heartbeat = std::make_shared<Heartbeat>();
  // Rank 0 alone makes what it also takes away, and nobody makes it again.
  if (options_.rank == 0 && !options_.folder.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(options_.folder, ignored);
  }
  if (!options_.folder.empty()) remove_left();
  if (options_.rank == 0 && options_.size > 1) {
    try {
      const File made(alive().string(), O_WRONLY | O_CREAT);
    } catch (const FileError&) {
      // Then nobody but the rank's own heartbeat counts.
    }
  }
  look();
  thread_ = std::thread(&Watchdog::watch, this);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
  std::error_code ignored;
  if (options_.rank == 0 && !options_.folder.empty()) std::filesystem::remove(alive(), ignored);
}

void Watchdog::follow(std::shared_ptr<const CallLog> log) {
  const std::lock_guard lock(mutex_);
  log_ = std::move(log);
}

void Watchdog::beat(std::int64_t step) {
  {
    const std::lock_guard lock(mutex_);
    step_ = step;
  }
  options_.heartbeat->beat();
}

/// The job's stamp: when `watchdog_alive` was touched. 0 where it is gone or not needed.
std::int64_t Watchdog::stamp() {
  struct stat status {};
  if (options_.size == 1) return 0;
  if (::stat(alive().c_str(), &status) != 0) {
    open_folder();
    if (::stat(alive().c_str(), &status) != 0) return 0;
  }
  return status.st_mtim.tv_sec * std::int64_t{1000000000} + status.st_mtim.tv_nsec;
}

/// Of the ranks that make progress only the first to look touches the file.
Patience::Verdict Watchdog::look() {
  const std::uint64_t own = options_.heartbeat->count();
  const Patience::Verdict verdict = patience_.look({std::chrono::steady_clock::now(), own, stamp()});
  if (verdict.rank_progressed && !verdict.job_progressed && options_.size > 1)
    ::utimensat(AT_FDCWD, alive().c_str(), nullptr, 0);  // a file that is gone is not made again
  return verdict;
}

void Watchdog::watch() {
  while (wait(options_.seconds / 20) != Wait::kEnd) {
    if (!look().spent || !speak()) continue;
    return;
  }
}

Watchdog::Wait Watchdog::wait(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, in_seconds(seconds), [this] { return stopped_; }) ? Wait::kEnd : Wait::kOver;
}

/// Until every rank has written its status, or the time of grace is over: a rank whose process is gone or
/// frozen never does.
Watchdog::Wait Watchdog::await_others() {
  const auto end = std::chrono::steady_clock::now() + in_seconds(options_.grace_seconds);
  for (int rank = 0; rank < options_.size; ++rank) {
    while (!has_spoken(rank) && std::chrono::steady_clock::now() < end) {
      if (wait(std::min(0.05, options_.grace_seconds)) == Wait::kEnd) return Wait::kEnd;
      if (!look().spent) return Wait::kProgress;
    }
  }
  return Wait::kOver;
}

/// Whether it has ended the job, or has itself to end.
bool Watchdog::speak() {
  if (!options_.folder.empty()) write_status();
  Wait waited = await_others();
  bool lowest = true;
  for (int rank = 0; rank < options_.rank; ++rank) lowest = lowest && !has_spoken(rank);
  const auto end = std::chrono::steady_clock::now() + in_seconds(options_.grace_seconds);
  while (waited == Wait::kOver && !lowest && std::chrono::steady_clock::now() < end) {
    waited = wait(std::min(0.05, options_.grace_seconds));
    if (waited == Wait::kOver && !look().spent) waited = Wait::kProgress;
  }
  if (waited == Wait::kEnd) return true;
  std::error_code ignored;
  if (waited == Wait::kProgress) {
    if (!options_.folder.empty()) std::filesystem::remove(file(options_.rank), ignored);
    return false;
  }
  if (!options_.folder.empty())
    std::filesystem::remove(alive(), ignored);  // the job ends without destructors
  const std::string said =
      concat("no progress for ", options_.seconds, " seconds: ", lowest ? report() : own_status().text);
  if (lowest && !options_.folder.empty()) keep_statuses(said);
  note_exit_code(static_cast<int>(ExitCode::kInternal));
  give_up_(said);
  return true;
}

Watchdog::Status Watchdog::own_status() const {
  const std::lock_guard lock(mutex_);
  const CallLog::Position position = log_->position();
  Status status{concat("rank ", options_.rank, step_ ? concat(" in step ", *step_) : "", " ", position.text),
                std::nullopt};
  if (position.arrived) status.call = position.ordinal;
  return status;
}

std::filesystem::path Watchdog::file(int rank) const {
  return options_.folder / concat(kBegin, rank, ".txt");
}

/// At most once in a second. NFS remembers that a file was not there for as long as what it knows of the
/// folder holds (acdirmin, 30 seconds), which is longer than the grace. Whoever opens the folder has it ask
/// the server (close-to-open).
void Watchdog::open_folder() {
  const auto now = std::chrono::steady_clock::now();
  if (now < folder_holds_until_) return;
  folder_holds_until_ = now + std::chrono::seconds(1);
  try {
    const File folder(options_.folder.string(), O_RDONLY | O_DIRECTORY);
  } catch (const FileError&) {
    // Then what is known of it has to do.
  }
}

bool Watchdog::has_spoken(int rank) {
  if (options_.folder.empty()) return true;
  open_folder();
  std::error_code unreadable;
  return std::filesystem::exists(file(rank), unreadable);
}

/// A status that cannot be written (a full disk) must not keep the job from ending.
void Watchdog::write_status() const {
  const std::string whole = file(options_.rank), beside = whole + ".part";
  const Status own = own_status();
  std::string text = concat(own.text, '\n', own.call ? concat(kIn, *own.call, " of the job") : "in no call",
                            "; the last calls:\n");
  std::unique_lock lock(mutex_);
  const std::shared_ptr<const CallLog> log = log_;
  lock.unlock();
  for (const CallLog::Entry& entry : log->last())
    text += concat(entry.ordinal, ' ', entry.describe(), ' ', name(entry.state), '\n');
  try {
    fresh_file(beside).write(std::as_bytes(std::span(text)), 0);
    rename_path(beside, whole);
  } catch (const FileError&) {
    // Then the others wait for it until the time of grace is over.
  }
}

/// What earlier starts left of this rank, and the first rank of those that are no more.
void Watchdog::remove_left() const {
  std::error_code ignored;
  std::filesystem::remove(file(options_.rank), ignored);
  if (options_.rank != 0) return;
  std::vector<std::filesystem::path> left;
  std::error_code unreadable;
  for (std::filesystem::directory_iterator it(options_.folder, unreadable), end; !unreadable && it != end;
       it.increment(unreadable)) {
    const std::string name = it->path().filename().string();
    int rank = 0;
    if (name.starts_with(kBegin) &&
        std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), rank).ec == std::errc() &&
        rank >= options_.size && it->path() == file(rank))
      left.push_back(it->path());
  }
  for (const std::filesystem::path& path : left) std::filesystem::remove(path, ignored);
}

/// What all ranks wrote, in one file that later starts leave alone.
void Watchdog::keep_statuses(const std::string& report) const {
  std::string text = report + "\n", time = utc_stamp(true);
  std::ranges::replace(time, ':', '-');
  for (int rank = 0; rank < options_.size; ++rank) {
    try {
      text += concat('\n', read_text(file(rank).string(), kMostStatusBytes));
    } catch (const FileError&) {
      text += concat("\nrank ", rank, " says nothing\n");
    }
  }
  try {
    write_text_atomically((options_.folder / concat(kBegin, time, ".txt")).string(), text);
  } catch (const FileError&) {
    // Then those of the ranks have to do.
  }
}

namespace {

/// "rank 3", "ranks 0 to 2, 5".
std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t first = 0, end = 0; first < ranks.size(); first = end) {
    for (end = first + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;) ++end;
    if (end - first == 2) --end;
    parts.push_back(end - first == 1 ? concat(ranks[first]) : concat(ranks[first], " to ", ranks[end - 1]));
  }
  return concat(ranks.size() == 1 ? "rank " : "ranks ", join(parts, ", "));
}

/// Places of a report, for one line is to be read: of thousands of ranks most are at the same ones.
constexpr std::size_t kMostPlaces = 16;

/// "rank 0 in step 41 waits in …; each of ranks 1 to 63 says nothing": ranks of one place together.
std::string places_text(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::vector<int>>> places;
  std::map<std::string, std::size_t> known;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    const auto rank = static_cast<int>(r);
    const std::string begin = concat("rank ", rank, " ");
    const std::string place = texts[r].starts_with(begin) ? texts[r].substr(begin.size()) : texts[r];
    const auto [at, anew] = known.emplace(place, places.size());
    if (anew) places.emplace_back(place, std::vector<int>());
    places[at->second].second.push_back(rank);
  }
  std::vector<std::string> parts;
  std::vector<int> others;
  for (const auto& [place, ranks] : places) {
    if (parts.size() == kMostPlaces) {
      others.insert(others.end(), ranks.begin(), ranks.end());
    } else {
      parts.push_back(concat(ranks.size() > 1 ? "each of " : "", ranks_text(ranks), " ", place));
    }
  }
  if (!others.empty()) parts.push_back(concat(counted(std::ssize(others), "other rank"), " elsewhere"));
  return join(parts, "; ");
}

}  // namespace

/// What another rank wrote.
Watchdog::Status Watchdog::written_status(int rank) const {
  Status status{concat("rank ", rank, " says nothing"), std::nullopt};
  try {
    std::istringstream text(read_text(file(rank).string(), kMostStatusBytes));
    std::string place;
    if (std::getline(text, status.text) && std::getline(text, place) && place.starts_with(kIn))
      status.call = std::strtoll(place.c_str() + kIn.size(), nullptr, 10);
  } catch (const FileError&) {
    // It has written nothing.
  }
  return status;
}

/// Where all ranks are, and which of them the others wait for: those in no call, since they may hold back
/// what others wait for in earlier calls; if there are none, those that have come least far, since all ranks
/// make the same calls in one order. None where all are in the same call: then the network does not carry it.
std::string Watchdog::report() const {
  std::vector<std::string> texts;
  std::vector<int> outside;
  std::map<std::int64_t, std::vector<int>> in_call;
  for (int rank = 0; rank < options_.size; ++rank) {
    const Status status = rank == options_.rank ? own_status() : written_status(rank);
    texts.push_back(status.text);
    (status.call ? in_call[*status.call] : outside).push_back(rank);
  }
  std::string report = places_text(texts);
  if (options_.size == 1 || in_call.empty()) return report;
  if (outside.empty() && in_call.size() == 1) return report + "; all ranks have arrived";
  return report + "; not arrived: " + ranks_text(outside.empty() ? in_call.begin()->second : outside);
}

}  // namespace jigsaw::inline comm
