#include "files/chunk_cache.h"

#include <algorithm>
#include <iterator>

#include "base/memory.h"

namespace jigsaw::inline files {

ChunkCache& ChunkCache::shared() {
  static ChunkCache cache;
  return cache;
}

std::uint64_t ChunkCache::new_file() {
  const std::lock_guard lock(mutex_);
  return ++files_;
}

std::shared_ptr<const ChunkCache::Chunk> ChunkCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().second;
}

std::shared_ptr<const ChunkCache::Chunk> ChunkCache::get(
    const Key& key, std::size_t bytes, std::size_t at_once,
    const std::function<void(std::span<std::byte>)>& make) {
  if (std::shared_ptr<const Chunk> known = find(key)) return known;
  auto chunk = std::make_shared<Chunk>();
  const std::span<std::byte> memory = chunk->memory.take(bytes);
  make(memory);
  chunk->bytes = memory;
  keep(key, chunk, at_once);
  return chunk;
}

void ChunkCache::keep(const Key& key, std::shared_ptr<const Chunk> chunk, std::size_t at_once) {
  const std::lock_guard lock(mutex_);
  raise_capacity(4 * at_once);
  if (known_.contains(key)) return;  // another thread was faster
  bytes_ += chunk->bytes.size();
  entries_.emplace_front(key, std::move(chunk));
  known_[key] = entries_.begin();
  while (bytes_ > capacity_ && entries_.size() > 1) erase(std::prev(entries_.end()));
}

void ChunkCache::set_processes(int processes) {
  const std::lock_guard lock(mutex_);
  processes_ = processes;
}

void ChunkCache::make_room(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  raise_capacity(bytes);
}

/// Under the lock.
void ChunkCache::raise_capacity(std::size_t bytes) {
  static const std::int64_t memory = memory_limit();
  const auto most = static_cast<std::size_t>(memory / 32 / processes_);
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
  bytes_ -= entry->second->bytes.size();
  known_.erase(entry->first);
  entries_.erase(entry);
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
      return copy_shared(kept->bytes, chunk.box, to, box, array.size);
    }
    const std::span<std::byte> memory = scratch.take(bytes);
    make(chunk, memory);
    copy_shared(memory, chunk.box, to, box, array.size);
  });
}

}  // namespace jigsaw::inline files
