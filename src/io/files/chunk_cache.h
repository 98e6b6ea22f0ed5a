#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/file.h"
#include "files/byte_buffer.h"
#include "files/hyperslab.h"
#include "files/node_chunks.h"

namespace jigsaw::inline files {

/// Decompressed chunks of which a hyperslab took a part, for the next one: the other levels, times or
/// channels of the same chunk. One for all files of the process, as memory is, and for all ranks in it; which
/// chunk is used next decides which are kept. Processes of a job on one machine have one together where they
/// can (files/node_chunks.h), so that what several of them need is decompressed once; what finds no place
/// there each process keeps for itself. Thread-safe.
///
/// It holds four times what the largest hyperslab so far needed at once, or what was asked for, for each
/// process; the processes together at most 1/32 of the memory here, and as much again of what finds no place.
class ChunkCache {
 public:
  using Chunk = NodeChunks::Chunk;
  /// Whether a chunk that another process makes is waited for. Whoever has to decompress what stands before
  /// it anyway does not.
  enum class Others { kAwaited, kNotAwaited };

  static ChunkCache& shared();
  /// 1/32 of the memory here.
  static std::size_t most_bytes();

  /// The chunk if it is kept, else null.
  std::shared_ptr<const Chunk> find(const ChunkKey& key, std::size_t bytes);
  /// The chunk, kept or made. Threads that need one at the same time may each make it.
  /// @param bytes    its length. @param at_once  that of all chunks that the hyperslab takes a part of.
  /// @param make     fills its memory; may throw.
  std::shared_ptr<const Chunk> get(const ChunkKey& key, std::size_t bytes, std::size_t at_once,
                                   const std::function<void(std::span<std::byte>)>& make,
                                   Others others = Others::kAwaited);
  /// Has room for so many bytes from now on.
  void make_room(std::size_t bytes);
  /// Forgets the chunks of a file; those that processes have together stay.
  void drop(std::uint64_t file);
  /// Bytes held now by this process alone.
  std::size_t bytes() const;

  /// A number of a file as it is, the same in all processes, until new_data().
  std::uint64_t file_key(const FileState& state) const;
  /// Files that are opened from now on have other numbers than before. Zarr's chunks are files that may have
  /// changed since others opened the store. @return  the number of the data, for the other processes' `data`.
  std::uint64_t new_data(std::uint64_t data = 0);

  /// This process is number `place` of so many on this machine that belong to the job. Once in a process.
  /// @param node  where they keep chunks together; null: each has its own.
  void share(int place, int processes, std::shared_ptr<NodeChunks> node);
  bool shares() const;
  int processes() const;
  /// In which order this process should read n things whose chunks take so many bytes together: in parts for
  /// which processes that share chunks have room, the same in all of them, each begun with another thing.
  /// 0 … n − 1 where it shares none, or `bytes` is 0.
  ///
  /// @param bytes  of all batches that the processes of this machine read at a time.
  std::vector<std::size_t> order(std::size_t n, std::size_t bytes) const;

 private:
  /// A chunk of this process.
  struct Own {
    ByteBuffer memory;
    Chunk bytes;
  };
  using Entry = std::pair<ChunkKey, std::shared_ptr<const Chunk>>;
  std::shared_ptr<NodeChunks> node() const;
  std::shared_ptr<const Chunk> find_own(const ChunkKey& key);
  void keep(const ChunkKey& key, std::shared_ptr<const Chunk> chunk);
  void erase(std::list<Entry>::iterator entry);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< used last first
  std::map<ChunkKey, std::list<Entry>::iterator> known_;
  std::size_t bytes_ = 0, asked_ = 0;
  std::uint64_t data_ = 0;
  int place_ = 0, processes_ = 1;
  std::shared_ptr<NodeChunks> node_;
};

/// An array that stands in a file as chunks, each made as a whole.
struct ChunkedArray {
  std::uint64_t file = 0;  ///< of ChunkCache::file_key()
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
