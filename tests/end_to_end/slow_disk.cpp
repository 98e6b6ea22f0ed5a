// In a jigsaw-train for tests: JIGSAW_SLOW_DISK="RANK:SECONDS:FILE" makes every MiB that this rank reads,
// writes or syncs below a folder `checkpoints` take so many seconds, on a clock of the run's own that FILE
// holds (SlowDisk). The clock is moved on in steps, and at each step whoever moves it lets every watchdog
// whose wait is over look, so that nothing depends on how fast this machine is.
// JIGSAW_DEADLY_FILE=NAME ends every process that opens a file whose path has this in it.
#include "end_to_end/slow_disk.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

// The system's calls, of which the linker gives the program those below (--wrap).
using Clock = std::chrono::steady_clock;
extern "C" {
Clock::time_point __real__ZNSt6chrono3_V212steady_clock3nowEv();
int __real_pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
int __real_open(const char* path, int flags, ...);
ssize_t __real_pwrite(int descriptor, const void* bytes, size_t count, off_t offset);
ssize_t __real_pread(int descriptor, void* bytes, size_t count, off_t offset);
int __real_fsync(int descriptor);
int __real_sync_file_range(int descriptor, off_t offset, off_t count, unsigned flags);
}

namespace jigsaw::e2e {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// What waits for longer is a watchdog: nothing else in the program waits for minutes.
constexpr std::int64_t kWatchdogWaits = 1000 * kSecond;
/// Of the clock, in which it is moved: less than a watchdog waits.
constexpr std::int64_t kStep = 500 * kSecond;
/// Between two looks at the clock, in real time. Longer than the time stamps of files are apart.
constexpr std::int64_t kPoll = kSecond / 100;
/// For hangs only, in looks.
constexpr int kMostLooks = 60'000;
constexpr std::int64_t kUnitBytes = std::int64_t{8} << 20;

struct Settings {
  SlowDisk* disk = nullptr;
  int rank = 0;
  double seconds_per_byte = 0;
};

Settings read_settings() {
  Settings settings;
  const char* text = std::getenv("JIGSAW_SLOW_DISK");
  int slow = 0;
  double seconds = 0;
  char path[512] = "";
  if (text == nullptr || std::sscanf(text, "%d:%lf:%511s", &slow, &seconds, path) != 3) return settings;
  const int file = __real_open(path, O_RDWR | O_CREAT, 0666);
  if (file < 0 || ::ftruncate(file, sizeof(SlowDisk)) != 0) std::abort();
  void* memory = ::mmap(nullptr, sizeof(SlowDisk), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) std::abort();
  ::close(file);
  settings.disk = static_cast<SlowDisk*>(memory);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  settings.rank = rank == nullptr ? 0 : std::atoi(rank);
  if (settings.rank == slow) settings.seconds_per_byte = seconds / (1 << 20);
  return settings;
}

const Settings& settings() {
  static const Settings the_settings = read_settings();
  return the_settings;
}

/// Descriptors of files that are slow.
std::array<std::atomic<bool>, 4096> slow_files;

bool is_slow(int descriptor) {
  return descriptor >= 0 && static_cast<std::size_t>(descriptor) < slow_files.size() &&
         slow_files[static_cast<std::size_t>(descriptor)] && settings().seconds_per_byte > 0;
}

std::int64_t real_now() {
  return __real__ZNSt6chrono3_V212steady_clock3nowEv().time_since_epoch().count();
}

timespec to_timespec(std::int64_t nanoseconds) {
  return {nanoseconds / kSecond, nanoseconds % kSecond};
}

void poll_once() {
  const timespec time = to_timespec(kPoll);
  ::nanosleep(&time, nullptr);
}

/// Whether a watchdog has yet to look at what the clock shows.
bool anybody_is_late(const SlowDisk& disk) {
  const std::int64_t now = real_now() + disk.ahead;
  return std::any_of(std::begin(disk.watches), std::end(disk.watches), [&](const auto& each) {
    const std::int64_t until = each;
    return until < 0 || (until > 0 && until <= now);
  });
}

/// The disk works on so many bytes.
void spend(std::int64_t bytes, std::atomic<std::int64_t> SlowDisk::*on) {
  SlowDisk& disk = *settings().disk;
  const auto all = static_cast<std::int64_t>(static_cast<double>(bytes) * settings().seconds_per_byte *
                                             static_cast<double>(kSecond));
  disk.*on += all;
  for (std::int64_t left = all; left > 0; left -= kStep) {
    disk.ahead += std::min(left, kStep);
    for (int look = 0; look < kMostLooks && anybody_is_late(disk); ++look) poll_once();
  }
}

/// Waits as the program asked, but on the run's clock.
int watch(pthread_cond_t* changed, pthread_mutex_t* mutex, std::int64_t until) {
  SlowDisk& disk = *settings().disk;
  std::atomic<std::int64_t>& watches = disk.watches[settings().rank];
  watches = until;
  while (real_now() + disk.ahead < until) {
    const timespec soon = to_timespec(real_now() + kPoll);
    if (__real_pthread_cond_clockwait(changed, mutex, CLOCK_MONOTONIC, &soon) == 0) {
      watches = 0;
      return 0;
    }
  }
  watches = -1;
  return ETIMEDOUT;
}

}  // namespace
}  // namespace jigsaw::e2e

extern "C" {

using jigsaw::e2e::SlowDisk;

Clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  const Clock::time_point now = __real__ZNSt6chrono3_V212steady_clock3nowEv();
  const SlowDisk* disk = jigsaw::e2e::settings().disk;
  return disk == nullptr ? now : now + std::chrono::nanoseconds(disk->ahead);
}

int __wrap_pthread_cond_clockwait(pthread_cond_t* changed, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
  using namespace jigsaw::e2e;
  const SlowDisk* disk = settings().disk;
  if (disk == nullptr || clock != CLOCK_MONOTONIC)
    return __real_pthread_cond_clockwait(changed, mutex, clock, until);
  const std::int64_t end = until->tv_sec * kSecond + until->tv_nsec, ahead = disk->ahead;
  if (end - ahead - real_now() > kWatchdogWaits) return watch(changed, mutex, end);
  // In parts, each of which looks like a spurious wake-up: one that is lost (glibc bug 25847) must not last
  // as long as the whole.
  const std::int64_t part = real_now() + kSecond / 5;
  const timespec real = to_timespec(std::min(end - ahead, part));
  const int status = __real_pthread_cond_clockwait(changed, mutex, clock, &real);
  return status == ETIMEDOUT && part < end - ahead ? 0 : status;
}

int __wrap_open(const char* path, int flags, ...) {
  const char* deadly = std::getenv("JIGSAW_DEADLY_FILE");
  if (deadly != nullptr && std::strstr(path, deadly) != nullptr) ::raise(SIGKILL);
  va_list more;
  va_start(more, flags);
  const int descriptor = __real_open(path, flags, va_arg(more, int));
  va_end(more);
  if (descriptor >= 0 && static_cast<std::size_t>(descriptor) < jigsaw::e2e::slow_files.size()) {
    jigsaw::e2e::slow_files[static_cast<std::size_t>(descriptor)] =
        std::strstr(path, "/checkpoints/") != nullptr;
  }
  return descriptor;
}

ssize_t __wrap_pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  const ssize_t done = __real_pwrite(descriptor, bytes, count, offset);
  if (done > 0 && jigsaw::e2e::is_slow(descriptor)) jigsaw::e2e::spend(done, &SlowDisk::wrote);
  return done;
}

ssize_t __wrap_pread(int descriptor, void* bytes, size_t count, off_t offset) {
  const ssize_t done = __real_pread(descriptor, bytes, count, offset);
  if (done > 0 && jigsaw::e2e::is_slow(descriptor)) jigsaw::e2e::spend(done, &SlowDisk::read);
  return done;
}

int __wrap_sync_file_range(int descriptor, off_t offset, off_t count, unsigned flags) {
  if (jigsaw::e2e::is_slow(descriptor)) jigsaw::e2e::spend(count, &SlowDisk::wrote);
  return __real_sync_file_range(descriptor, offset, count, flags);
}

/// Of what is left, which the program syncs in one go only where it is little.
int __wrap_fsync(int descriptor) {
  struct stat status {};
  if (jigsaw::e2e::is_slow(descriptor) && ::fstat(descriptor, &status) == 0) {
    jigsaw::e2e::spend(std::min<std::int64_t>(status.st_size, jigsaw::e2e::kUnitBytes), &SlowDisk::wrote);
  }
  return __real_fsync(descriptor);
}
}
