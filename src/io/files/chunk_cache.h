#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "files/byte_buffer.h"
#include "files/hyperslab.h"

namespace jigsaw::inline files {

/// Decompressed chunks of which a hyperslab took a part, for the next one: the other levels, times or
/// channels of the same chunk. One for all files of the process, as memory is, and for all ranks in it; which
/// chunk is used next decides which are kept. Thread-safe.
///
/// It holds four times what the largest hyperslab so far needed at once, or what was asked for, and at most
/// this process's share of 1/32 of the memory here.
class ChunkCache {
 public:
  struct Key {
    std::uint64_t file = 0;  ///< of new_file()
    std::int64_t variable = 0, chunk = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Chunk {
    ByteBuffer memory;
    std::span<const std::byte> bytes;
  };

  static ChunkCache& shared();
  /// A number that no other file has.
  std::uint64_t new_file();

  /// The chunk if it is kept, else null.
  std::shared_ptr<const Chunk> find(const Key& key);
  /// The chunk, kept or made. Threads that need one at the same time may each make it.
  /// @param bytes    its length. @param at_once  that of all chunks that the hyperslab takes a part of.
  /// @param make     fills its memory; may throw.
  std::shared_ptr<const Chunk> get(const Key& key, std::size_t bytes, std::size_t at_once,
                                   const std::function<void(std::span<std::byte>)>& make);
  /// Has room for so many bytes from now on.
  void make_room(std::size_t bytes);
  /// How many processes of the job are on this machine; one unless set.
  void set_processes(int processes);
  /// Forgets the chunks of a file.
  void drop(std::uint64_t file);
  /// Bytes held now.
  std::size_t bytes() const;

 private:
  using Entry = std::pair<Key, std::shared_ptr<const Chunk>>;
  void keep(const Key& key, std::shared_ptr<const Chunk> chunk, std::size_t at_once);
  void erase(std::list<Entry>::iterator entry);
  void raise_capacity(std::size_t bytes);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< used last first
  std::map<Key, std::list<Entry>::iterator> known_;
  std::size_t bytes_ = 0, capacity_ = 0;
  std::uint64_t files_ = 0;
  int processes_ = 1;
};

/// An array that stands in a file as chunks, each made as a whole.
struct ChunkedArray {
  std::uint64_t file = 0;  ///< of ChunkCache::new_file()
  std::int64_t variable = 0;
  Shape extents, chunks;
  std::int64_t size = 0;  ///< bytes of an element
};
/// Reads a hyperslab, which lies in the array and is not empty, row-major into `to`, from chunks: one of
/// which all is wanted is made for it alone, any other goes through the cache.
/// @param make  fills the memory of a chunk; may throw.
void read_by_chunks(const ChunkedArray& array, const Box& box, std::span<std::byte> to,
                    const std::function<void(const WantedChunk&, std::span<std::byte>)>& make);

}  // namespace jigsaw::inline files
