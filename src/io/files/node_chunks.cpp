#include "files/node_chunks.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/text.h"

namespace jigsaw::inline files {

namespace {

constexpr std::uint64_t kEntries = 1 << 17, kPage = 4096;
/// The memory grows by this much at least.
constexpr std::uint64_t kGrowth = std::uint64_t{16} << 20;
/// Between two looks at a chunk that another process makes: at first, and at most.
constexpr std::chrono::microseconds kPause{100}, kLongPause{5000};
/// The memory's name, and what /proc makes of it, where "(deleted)" follows.
constexpr const char *kName = "jigsaw-chunks", *kLink = "/memfd:jigsaw-chunks";

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

std::uint64_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit = {};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : 0;
}

/// Takes memory for a part of the file; false when the system has none.
bool has_memory(int descriptor, std::uint64_t begin, std::uint64_t bytes) {
  int status = EINTR;
  for (int tries = 0; status == EINTR && tries < 100; ++tries)
    status = ::posix_fallocate(descriptor, static_cast<off_t>(begin), static_cast<off_t>(bytes));
  return status == 0;
}

std::size_t bucket_of(const ChunkKey& key) {
  std::uint64_t mixed = key.file ^ static_cast<std::uint64_t>(key.variable) * 0x9e3779b97f4a7c15U ^
                        static_cast<std::uint64_t>(key.chunk) * 0xc2b2ae3d27d4eb4fU;
  mixed ^= mixed >> 32;
  mixed *= 0xd6e8feb86659fd93U;
  return (mixed ^ mixed >> 32) % kEntries;
}

}  // namespace

/// Entries have numbers from 1 on in the order in which they were made, and stand at number % kEntries. Those
/// below `first` are gone. Of each bucket the newest is known, and of each entry the one before it there.
struct NodeChunks::Entry {
  /// Of one that was given up its maker may still write, if it lives: it stays, and is found by nobody.
  enum class State : std::int32_t { kMaking, kReady, kFailed, kGivenUp };

  ChunkKey key;
  std::uint64_t begin = 0, bytes = 0, before = 0;
  State state = State::kMaking;
  std::int32_t readers = 0;
};

struct NodeChunks::Header {
  std::uint64_t token = 0, most = 0;
  pthread_mutex_t mutex = {};
  bool damaged = false;  ///< a process died while it changed this
  std::uint64_t room = 0, allocated = 0;
  std::uint64_t next = 0;  ///< where the next chunk goes: chunks follow each other, and begin again at 0
  std::uint64_t first = 1, end = 1;
  std::array<std::uint64_t, kEntries> newest = {};
  std::array<Entry, kEntries> entries = {};
};

/// Holds the mutex, unless what it guards cannot be relied upon.
class NodeChunks::Lock {
 public:
  explicit Lock(Header& header) : header_(header) { take(); }
  ~Lock() { release(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  explicit operator bool() const { return held_ && !header_.damaged; }
  void take() {
    const int status = pthread_mutex_lock(&header_.mutex);
    held_ = status == 0 || status == EOWNERDEAD;
    if (status != EOWNERDEAD) return;
    header_.damaged = true;
    pthread_mutex_consistent(&header_.mutex);
  }
  void release() {
    if (held_) pthread_mutex_unlock(&header_.mutex);
    held_ = false;
  }

 private:
  Header& header_;
  bool held_ = false;
};

std::shared_ptr<NodeChunks> NodeChunks::make(std::size_t most, std::chrono::milliseconds patience) {
  // The file has its length from the start, and memory where it is written to. A process that may not have
  // files so long would be ended by a signal; of one whose addresses are bounded this would be the lot.
  const std::uint64_t all = whole_pages(sizeof(Header)) + whole_pages(most);
  if (limit_of(RLIMIT_FSIZE) < all || limit_of(RLIMIT_AS) != RLIM_INFINITY) return nullptr;
  const int descriptor = ::memfd_create(kName, MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  if (::ftruncate(descriptor, static_cast<off_t>(all)) != 0 || !has_memory(descriptor, 0, sizeof(Header))) {
    ::close(descriptor);
    return nullptr;
  }
  auto made = map(descriptor, patience);
  if (!made) return nullptr;
  Header& header = *new (made->memory_) Header;
  if (::getrandom(&header.token, sizeof header.token, 0) != sizeof header.token) return nullptr;
  header.most = whole_pages(most);
  pthread_mutexattr_t attributes;
  const bool good = pthread_mutexattr_init(&attributes) == 0 &&
                    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                    pthread_mutex_init(&header.mutex, &attributes) == 0;
  pthread_mutexattr_destroy(&attributes);
  return good ? made : nullptr;
}

std::shared_ptr<NodeChunks> NodeChunks::open(const Address& address, std::chrono::milliseconds patience) {
  const std::string path = concat("/proc/", address.process, "/fd/", address.descriptor);
  std::error_code none;
  if (!std::filesystem::read_symlink(path, none).string().starts_with(kLink)) return nullptr;
  if (limit_of(RLIMIT_AS) != RLIM_INFINITY) return nullptr;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return nullptr;
  struct stat state = {};
  if (::fstat(descriptor, &state) != 0 || !S_ISREG(state.st_mode) ||
      std::cmp_less(state.st_size, whole_pages(sizeof(Header)))) {
    ::close(descriptor);
    return nullptr;
  }
  auto opened = map(descriptor, patience);
  const bool same = opened && opened->header().token == address.token &&
                    opened->bytes_ == whole_pages(sizeof(Header)) + opened->header().most;
  return same ? opened : nullptr;
}

/// Owns the descriptor from here on.
std::shared_ptr<NodeChunks> NodeChunks::map(int descriptor, std::chrono::milliseconds patience) {
  struct stat state = {};
  ::fstat(descriptor, &state);
  const auto bytes = static_cast<std::size_t>(state.st_size);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) {
    ::close(descriptor);
    return nullptr;
  }
  return std::shared_ptr<NodeChunks>(new NodeChunks(descriptor, memory, bytes, patience));
}

NodeChunks::NodeChunks(int descriptor, void* memory, std::size_t bytes, std::chrono::milliseconds patience)
    : descriptor_(descriptor), memory_(memory), bytes_(bytes), patience_(patience) {}

NodeChunks::~NodeChunks() {
  ::munmap(memory_, bytes_);
  ::close(descriptor_);
}

NodeChunks::Address NodeChunks::address() const {
  return {::getpid(), descriptor_, header().token};
}

NodeChunks::Entry& NodeChunks::entry(std::uint64_t number) const {
  return header().entries[number % kEntries];
}

std::byte* NodeChunks::chunks() const {
  return static_cast<std::byte*>(memory_) + whole_pages(sizeof(Header));
}

std::shared_ptr<const NodeChunks::Chunk> NodeChunks::find(const ChunkKey& key, std::size_t bytes) {
  const Lock lock(header());
  const std::uint64_t number = lock ? number_of(key) : 0;
  if (number == 0 || entry(number).state != Entry::State::kReady || entry(number).bytes != bytes)
    return nullptr;
  return pinned(number);
}

std::shared_ptr<const NodeChunks::Chunk> NodeChunks::get(
    const ChunkKey& key, std::size_t bytes, bool wait,
    const std::function<void(std::span<std::byte>)>& make) {
  const auto until = std::chrono::steady_clock::now() + patience_;
  auto pause = kPause;
  Lock lock(header());
  std::uint64_t number = lock ? number_of(key) : 0;
  while (number != 0 && entry(number).state == Entry::State::kMaking) {
    if (!wait) return nullptr;
    if (std::chrono::steady_clock::now() > until) {
      entry(number).state = Entry::State::kGivenUp;  // nobody else waits for it
      return nullptr;
    }
    lock.release();
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongPause);
    lock.take();
    number = lock ? number_of(key) : 0;
  }
  if (!lock) return nullptr;
  if (number != 0) return entry(number).bytes == bytes ? pinned(number) : nullptr;
  number = add(key, bytes);
  if (number == 0) return nullptr;
  std::shared_ptr<const Chunk> chunk;
  const auto end_as = [&](Entry::State state) {
    lock.take();
    if (lock) entry(number).state = state;
    lock.release();
  };
  try {
    chunk = pinned(number);
    lock.release();
    make({chunks() + entry(number).begin, bytes});
  } catch (...) {
    lock.release();
    end_as(Entry::State::kFailed);
    throw;
  }
  end_as(Entry::State::kReady);
  return chunk;
}

void NodeChunks::raise_room(std::size_t bytes) {
  const Lock lock(header());
  if (lock) header().room = std::max(header().room, std::min(whole_pages(bytes), header().most));
}

// Below: under the lock.

/// It stays until the pointer is gone.
std::shared_ptr<const NodeChunks::Chunk> NodeChunks::pinned(std::uint64_t number) {
  struct Pin {
    Pin(std::shared_ptr<NodeChunks> owner, std::uint64_t entry, Chunk chunk)
        : node(std::move(owner)), number(entry), bytes(chunk) {}
    ~Pin() {
      const Lock lock(node->header());
      if (lock) --node->entry(number).readers;
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

    std::shared_ptr<NodeChunks> node;
    std::uint64_t number;
    Chunk bytes;
  };
  Entry& of = entry(number);
  auto pin = std::make_shared<Pin>(shared_from_this(), number, std::span(chunks() + of.begin, of.bytes));
  ++of.readers;
  return {pin, &pin->bytes};
}

/// 0 where it is not here.
std::uint64_t NodeChunks::number_of(const ChunkKey& key) const {
  std::uint64_t number = header().newest[bucket_of(key)];
  while (number >= header().first) {
    const Entry& candidate = entry(number);
    const bool may_come = candidate.state == Entry::State::kMaking || candidate.state == Entry::State::kReady;
    if (candidate.key == key && may_come) return number;
    number = candidate.before;
  }
  return 0;
}

/// An entry that is being made; 0 where there is no room for it.
std::uint64_t NodeChunks::add(const ChunkKey& key, std::size_t bytes) {
  Header& all = header();
  const std::uint64_t size = std::max(whole_pages(bytes), kPage);
  if (size > all.room) return 0;
  if (all.end - all.first == kEntries && !evict()) return 0;
  std::uint64_t begin = all.next;
  if (begin + size > all.room) {
    // The oldest lie between here and where the last round ended.
    while (all.first < all.end && entry(all.first).begin >= begin)
      if (!evict()) return 0;
    begin = all.next = 0;
  }
  while (all.first < all.end && entry(all.first).begin < begin + size &&
         begin < entry(all.first).begin + whole_pages(entry(all.first).bytes))
    if (!evict()) return 0;
  if (!allocate(begin + size)) return 0;
  const std::uint64_t number = all.end++;
  std::uint64_t& newest = all.newest[bucket_of(key)];
  entry(number) = {key, begin, bytes, newest, Entry::State::kMaking, 0};
  newest = number;
  all.next = begin + size;
  return number;
}

/// The oldest; not one that is read or made.
bool NodeChunks::evict() {
  const Entry& oldest = entry(header().first);
  if (oldest.readers > 0) return false;  // whoever makes it reads it, too
  ++header().first;
  return true;
}

/// Memory for the first so many bytes of chunks; where the system has no more, what there is must do.
bool NodeChunks::allocate(std::uint64_t bytes) {
  Header& all = header();
  if (bytes <= all.allocated) return true;
  const std::uint64_t more = std::min(std::max(bytes - all.allocated, kGrowth), all.most - all.allocated);
  if (!has_memory(descriptor_, whole_pages(sizeof(Header)) + all.allocated, more)) {
    all.room = all.allocated;
    return false;
  }
  all.allocated += more;
  return true;
}

}  // namespace jigsaw::inline files
