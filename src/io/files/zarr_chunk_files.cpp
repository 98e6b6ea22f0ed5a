#include "files/zarr_chunk_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

namespace fs = std::filesystem;

/// Disks have clocks of their own; so many seconds are not told apart.
constexpr std::int64_t kClocks = 60;

std::size_t digest_of(const std::string& text) {
  return std::hash<std::string>()(text);
}

std::size_t digest_of(const FileState& state) {
  return digest_of(concat(state.device, " ", state.inode, " ", state.bytes, " ", state.seconds, " ",
                          state.nanoseconds)) |
         1U;
}

}  // namespace

ZarrChunkFiles::ZarrChunkFiles(std::string store, External external)
    : store_(std::move(store)), external_(external), opened_(std::time(nullptr)) {
  std::error_code error;
  root_ = fs::canonical(store_, error);
  if (error) throw DataError(concat("cannot read ", store_, ": ", error.message()));
}

bool ZarrChunkFiles::has(const std::string& name) const {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(name, error).type();
  if (type == fs::file_type::not_found) return false;
  if (type == fs::file_type::none) throw DataError(concat("cannot read ", name, ": ", error.message()));
  if (external_ == External::kFollowed) return true;
  {
    const std::lock_guard lock(mutex_);
    if (known_.contains(digest_of(name))) return true;
  }
  const fs::path found = fs::canonical(name, error);
  if (error) throw DataError(concat("cannot read ", name, ": ", error.message()));
  if (std::mismatch(root_.begin(), root_.end(), found.begin(), found.end()).first != root_.end())
    throw DataError(concat("cannot read ", name, ": ", refusal_of_other_file(found.string())));
  return true;
}

/// Of one that was not read before. A stamp that was set beyond the disk's own clock, as by what unpacks an
/// archive, tells nothing, now and later.
bool ZarrChunkFiles::written_since_opened(const std::string& name) const {
  struct stat status {};
  return ::stat(name.c_str(), &status) == 0 && status.st_mtim.tv_sec > opened_ + kClocks &&
         status.st_mtim.tv_sec <= status.st_ctim.tv_sec + 2 * kClocks;
}

void ZarrChunkFiles::check_unchanged(const std::string& name, bool was_there) {
  const auto refuse = [&](const char* how) {
    throw DataError(concat(store_, " was changed while the run was reading it: ", name, how,
                           "; start again when it stays as it is"));
  };
  std::size_t now = 0;
  if (was_there) {
    try {
      now = digest_of(file_state(name));
    } catch (const FileError& error) {
      throw DataError(concat(error.what(), "; it was there when the run opened it"));
    }
  }
  const std::lock_guard lock(mutex_);
  const auto [entry, fresh] = known_.try_emplace(digest_of(name), now);
  const std::size_t before = entry->second;
  const bool written = fresh && was_there && written_since_opened(name);
  if (before != 0 && now == 0) refuse(" is gone");
  if (before == 0 && now != 0) refuse(" was not there before");
  if (before != now || written) refuse(" was written to");
}

}  // namespace jigsaw::inline files
