#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace jigsaw::inline files {

/// Which chunk of which file, the same in all processes.
struct ChunkKey {
  std::uint64_t file = 0;  ///< of ChunkCache::file_key()
  std::int64_t variable = 0, chunk = 0;
  auto operator<=>(const ChunkKey&) const = default;
};

/// Decompressed chunks for all processes of a job on one machine: whoever needs one first makes it, the
/// others take it from there. The oldest goes when a new one needs its room.
///
/// It lies in memory without a name (memfd_create(2)), which ends with the last process that has it: a job
/// that is killed leaves nothing behind. Thread-safe, and safe against the death of a process: who cannot
/// have a chunk here makes it for itself.
class NodeChunks : public std::enable_shared_from_this<NodeChunks> {
 public:
  /// Its bytes.
  using Chunk = std::span<const std::byte>;
  /// Where other processes of this machine and user find it.
  struct Address {
    std::int64_t process = 0, descriptor = 0;
    std::uint64_t token = 0;  ///< tells it from what else may stand there
  };

  /// New memory, which is taken from the system as it is needed.
  /// @param most      bytes of chunks that it holds in the end; raise_room() says of how many it makes use.
  /// @param patience  how long to wait for a chunk that another process makes.
  /// @return          null where the system has no such memory, or bounds what this process may map.
  static std::shared_ptr<NodeChunks> make(std::size_t most,
                                          std::chrono::milliseconds patience = std::chrono::seconds(10));
  /// What another process made. @return  null where it cannot be had, as from another container.
  static std::shared_ptr<NodeChunks> open(const Address& address,
                                          std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~NodeChunks();
  NodeChunks(const NodeChunks&) = delete;
  NodeChunks& operator=(const NodeChunks&) = delete;

  Address address() const;

  /// The bytes of a chunk, which stay where they are as long as the pointer lives; null when it is not here,
  /// or another process still makes it.
  std::shared_ptr<const Chunk> find(const ChunkKey& key, std::size_t bytes);
  /// The same, made if nobody has. Null where there is no room, or another process has not made it in time.
  /// @param wait  whether to wait for that at all.
  /// @param make  fills it, without locks held; may throw.
  std::shared_ptr<const Chunk> get(const ChunkKey& key, std::size_t bytes, bool wait,
                                   const std::function<void(std::span<std::byte>)>& make);
  /// Has room for so many bytes from now on, as far as there may be.
  void raise_room(std::size_t bytes);

 private:
  struct Header;
  struct Entry;
  class Lock;

  NodeChunks(int descriptor, void* memory, std::size_t bytes, std::chrono::milliseconds patience);
  static std::shared_ptr<NodeChunks> map(int descriptor, std::chrono::milliseconds patience);
  std::shared_ptr<const Chunk> pinned(std::uint64_t number);
  std::uint64_t number_of(const ChunkKey& key) const;
  std::uint64_t add(const ChunkKey& key, std::size_t bytes);
  bool evict();
  bool allocate(std::uint64_t bytes);
  Header& header() const { return *static_cast<Header*>(memory_); }
  Entry& entry(std::uint64_t number) const;
  std::byte* chunks() const;

  int descriptor_;
  void* memory_;
  std::size_t bytes_;
  std::chrono::milliseconds patience_;
};

}  // namespace jigsaw::inline files
