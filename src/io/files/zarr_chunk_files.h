#pragma once
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/file.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

/// The files of a store that hold chunks, of whose state the store's metadata tells nothing: each is in the
/// store, and stays what it was when it was first read. Thread-safe.
class ZarrChunkFiles {
 public:
  /// @param store  its folder, as it is now.
  ZarrChunkFiles(std::string store, External external);

  /// Whether there is a file of this name. @throws DataError  when it, or a folder above it, is a link that
  /// leads out of the store, unless such are followed.
  bool has(const std::string& name) const;
  /// Called when a file was read, or was not there to be read. @throws DataError  when it was changed, made
  /// or removed since the first call, or written to since the store was opened.
  void check_unchanged(const std::string& name, bool was_there);

 private:
  bool written_since_opened(const std::string& name) const;

  std::string store_;
  std::filesystem::path root_;  ///< of the store, without links
  External external_;
  std::int64_t opened_;  ///< seconds since 1970
  mutable std::mutex mutex_;
  /// Digests of states by those of names, for a store may have millions of chunks; 0: it was not there.
  std::unordered_map<std::size_t, std::size_t> known_;
};

}  // namespace jigsaw::inline files
