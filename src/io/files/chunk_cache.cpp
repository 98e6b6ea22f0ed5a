#include "files/chunk_cache.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

#include "base/memory.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

/// Of the numbers from 0 to 1, one for each place, so that any neighbours lie far apart (van der Corput).
double spread(int place) {
  double result = 0, part = 0.5;
  for (; place > 0; place /= 2, part /= 2) result += place % 2 * part;
  return result;
}

}  // namespace

ChunkCache& ChunkCache::shared() {
  static ChunkCache cache;
  return cache;
}

std::size_t ChunkCache::most_bytes() {
  static const std::int64_t memory = memory_limit();
  return static_cast<std::size_t>(memory / 32);
}

std::shared_ptr<const ChunkCache::Chunk> ChunkCache::find(const ChunkKey& key, std::size_t bytes) {
  if (const auto together = node()) {
    if (auto chunk = together->find(key, bytes)) return chunk;
  }
  return find_own(key);
}

std::shared_ptr<const ChunkCache::Chunk> ChunkCache::find_own(const ChunkKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().second;
}

std::shared_ptr<const ChunkCache::Chunk> ChunkCache::get(
    const ChunkKey& key, std::size_t bytes, std::size_t at_once,
    const std::function<void(std::span<std::byte>)>& make, Others others) {
  make_room(4 * at_once);
  if (const auto together = node()) {
    if (auto chunk = together->get(key, bytes, others == Others::kAwaited, make)) return chunk;
  }
  if (auto known = find_own(key)) return known;
  const auto own = std::make_shared<Own>();
  const std::span<std::byte> memory = own->memory.take(bytes);
  make(memory);
  own->bytes = memory;
  std::shared_ptr<const Chunk> chunk(own, &own->bytes);
  keep(key, chunk);
  return chunk;
}

void ChunkCache::keep(const ChunkKey& key, std::shared_ptr<const Chunk> chunk) {
  const std::lock_guard lock(mutex_);
  if (known_.contains(key)) return;  // another thread was faster
  bytes_ += chunk->size();
  entries_.emplace_front(key, std::move(chunk));
  known_[key] = entries_.begin();
  const std::size_t capacity = std::min(asked_, most_bytes() / static_cast<std::size_t>(processes_));
  while (bytes_ > capacity && entries_.size() > 1) erase(std::prev(entries_.end()));
}

void ChunkCache::make_room(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes <= asked_) return;
  asked_ = bytes;
  // What one needs all may need, each of other files.
  if (node_) node_->raise_room(asked_ * static_cast<std::size_t>(processes_));
}

void ChunkCache::share(int place, int processes, std::shared_ptr<NodeChunks> node) {
  const std::lock_guard lock(mutex_);
  place_ = place;
  processes_ = processes;
  node_ = std::move(node);
  if (node_) node_->raise_room(asked_ * static_cast<std::size_t>(processes_));
}

std::shared_ptr<NodeChunks> ChunkCache::node() const {
  const std::lock_guard lock(mutex_);
  return node_;
}

bool ChunkCache::shares() const {
  return node() != nullptr;
}

int ChunkCache::processes() const {
  const std::lock_guard lock(mutex_);
  return processes_;
}

std::vector<std::size_t> ChunkCache::order(std::size_t n, std::size_t bytes) const {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), 0U);
  const std::lock_guard lock(mutex_);
  if (!node_ || bytes == 0) return all;
  // Of two batches that a process reads at a time, and with one process a part ahead of another.
  constexpr std::size_t kPartsKept = 4;
  node_->raise_room(kPartsKept * bytes);
  // A power of two, so that processes whose pieces differ by little have the same parts.
  const std::size_t parts =
      std::min(std::bit_ceil((kPartsKept * bytes + most_bytes() - 1) / most_bytes()), n);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = n * i / parts, end = n * (i + 1) / parts;
    const auto first = static_cast<std::size_t>(static_cast<double>(end - begin) * spread(place_));
    std::rotate(&all[begin], &all[begin + first], all.data() + end);
  }
  return all;
}

std::uint64_t ChunkCache::file_key(const FileState& state) const {
  const std::lock_guard lock(mutex_);
  return stable_hash(concat(data_, " ", state.device, " ", state.inode, " ", state.bytes, " ", state.seconds,
                            " ", state.nanoseconds));
}

std::uint64_t ChunkCache::new_data(std::uint64_t data) {
  const std::lock_guard lock(mutex_);
  data_ = data != 0 ? data : data_ + 1;
  return data_;
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
