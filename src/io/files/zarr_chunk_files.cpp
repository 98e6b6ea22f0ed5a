#include "files/zarr_chunk_files.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

namespace fs = std::filesystem;

/// Disks have clocks of their own; so many seconds are not told apart.
constexpr std::int64_t kClocks = 2;

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

/// A stamp of the future, of a file that came from elsewhere, tells nothing.
bool ZarrChunkFiles::written_since_opened(const FileState& state) const {
  return state.seconds > opened_ + kClocks && state.seconds <= std::time(nullptr) + kClocks;
}

void ZarrChunkFiles::check_unchanged(const std::string& name, bool was_there) {
  const auto refuse = [&](const char* how) {
    throw DataError(concat(store_, " was changed while the run was reading it: ", name, how,
                           "; start again when it stays as it is"));
  };
  std::size_t now = 0;
  bool written = false;
  if (was_there) {
    try {
      const FileState state = file_state(name);
      now = digest_of(state);
      written = written_since_opened(state);
    } catch (const FileError& error) {
      throw DataError(concat(error.what(), "; it was there when the run opened it"));
    }
  }
  const std::lock_guard lock(mutex_);
  const std::size_t before = known_.try_emplace(digest_of(name), now).first->second;
  if (before != 0 && now == 0) refuse(" is gone");
  if (before == 0 && now != 0) refuse(" was not there before");
  if (before != now || written) refuse(" was written to");
}

}  // namespace jigsaw::inline files
