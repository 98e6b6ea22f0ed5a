#include "files/chunk_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/memory.h"
#include "base/text.h"

namespace jigsaw::inline files {

std::size_t ChunkCache::most_bytes() {
  static const std::int64_t memory = memory_limit();
  return static_cast<std::size_t>(memory / 32);
}

ChunkCache& ChunkCache::shared() {
  static ChunkCache cache;
  return cache;
}

std::shared_ptr<const ChunkCache::Chunk> ChunkCache::find(const Key& key) {
  if (const auto shared = node()) return shared->find(key);
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().second;
}

std::shared_ptr<const ChunkCache::Chunk> ChunkCache::get(
    const Key& key, std::size_t bytes, std::size_t at_once,
    const std::function<void(std::span<std::byte>)>& make) {
  const auto shared = node();
  if (shared) {
    make_room(4 * at_once);
    if (auto chunk = shared->get(key, bytes, make)) return chunk;
  } else if (std::shared_ptr<const Chunk> known = find(key)) {
    return known;
  }
  const auto own = std::make_shared<Own>();
  const std::span<std::byte> memory = own->memory.take(bytes);
  make(memory);
  own->bytes = memory;
  std::shared_ptr<const Chunk> chunk(own, &own->bytes);
  if (!shared) keep(key, chunk, at_once);
  return chunk;
}

void ChunkCache::keep(const Key& key, std::shared_ptr<const Chunk> chunk, std::size_t at_once) {
  const std::lock_guard lock(mutex_);
  raise_capacity(4 * at_once);
  if (known_.contains(key)) return;  // another thread was faster
  bytes_ += chunk->size();
  entries_.emplace_front(key, std::move(chunk));
  known_[key] = entries_.begin();
  while (bytes_ > capacity_ && entries_.size() > 1) erase(std::prev(entries_.end()));
}

void ChunkCache::make_room(std::size_t bytes) {
  if (const auto shared = node()) {
    const std::lock_guard lock(mutex_);
    // What one needs all may need, each of other files.
    if (bytes > capacity_) shared->raise_room(bytes * static_cast<std::size_t>(processes_));
    capacity_ = std::max(capacity_, bytes);
    return;
  }
  const std::lock_guard lock(mutex_);
  raise_capacity(bytes);
}

void ChunkCache::share(int place, int processes, std::shared_ptr<NodeChunks> node) {
  const std::lock_guard lock(mutex_);
  place_ = place;
  processes_ = processes;
  if (!node || node_) return;
  node->raise_room(capacity_ * static_cast<std::size_t>(processes_));
  node_ = std::move(node);
}

std::shared_ptr<NodeChunks> ChunkCache::node() const {
  const std::lock_guard lock(mutex_);
  return node_;
}

std::size_t ChunkCache::first_of(std::size_t n) const {
  const std::lock_guard lock(mutex_);
  return node_ ? n * static_cast<std::size_t>(place_) / static_cast<std::size_t>(processes_) : 0;
}

/// Under the lock.
void ChunkCache::raise_capacity(std::size_t bytes) {
  const std::size_t most = most_bytes() / static_cast<std::size_t>(processes_);
  capacity_ = std::max(capacity_, std::min(bytes, most));
}

void ChunkCache::drop(std::uint64_t file) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->first.file == file) erase(entry);
    entry = next;
  }
}

std::size_t ChunkCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void ChunkCache::erase(std::list<Entry>::iterator entry) {
  bytes_ -= entry->second->size();
  known_.erase(entry->first);
  entries_.erase(entry);
}

std::uint64_t file_key(const std::string& path) {
  struct stat state = {};
  ::stat(path.c_str(), &state);
  std::error_code none;
  return stable_hash(concat(std::filesystem::weakly_canonical(path, none).string(), " ", state.st_dev, " ",
                            state.st_ino, " ", state.st_size, " ", state.st_mtim.tv_sec, " ",
                            state.st_mtim.tv_nsec));
}

void read_by_chunks(const ChunkedArray& array, const Box& box, std::span<std::byte> to,
                    const std::function<void(const WantedChunk&, std::span<std::byte>)>& make) {
  static thread_local ByteBuffer scratch;
  const auto bytes = static_cast<std::size_t>(array.chunks.count() * array.size);
  const std::size_t at_once = bytes * static_cast<std::size_t>(chunks_of(box, array.chunks).extent.count());
  for_each_chunk(array.extents, array.chunks, box, [&](const WantedChunk& chunk) {
    if (!chunk.whole) {
      const auto kept = ChunkCache::shared().get({array.file, array.variable, chunk.number}, bytes, at_once,
                                                 [&](std::span<std::byte> memory) { make(chunk, memory); });
      return copy_shared(*kept, chunk.box, to, box, array.size);
    }
    const std::span<std::byte> memory = scratch.take(bytes);
    make(chunk, memory);
    copy_shared(memory, chunk.box, to, box, array.size);
  });
}

}  // namespace jigsaw::inline files
