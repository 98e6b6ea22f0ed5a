#include "base/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace jigsaw::inline base {

void LineFile::open() {
  if (file_) return;
  file_.emplace(path_, O_RDWR | O_CREAT);
  size_ = file_->size();
}

bool LineFile::append(std::string_view line) {
  open();
  const bool followed = follow();
  try {
    file_->write(std::as_bytes(std::span(line)), size_);
  } catch (const FileError&) {
    file_->truncate(size_);
    throw;
  }
  size_ += static_cast<std::int64_t>(line.size());
  return followed;
}

LineFile::~LineFile() {
  if (!missing_since_) return;
  try {
    make_anew();
  } catch (const FileError&) {
    // It was removed, after all.
  }
}

/// Sees that the open file is the one of this name. Where that cannot be it goes on in the one that is open.
/// @return  whether it goes on in another one from now on
bool LineFile::follow() {
  struct stat own {
  }, there{};
  if (::fstat(file_->descriptor(), &own) != 0) return false;
  if (::stat(path_.c_str(), &there) == 0) {
    missing_since_.reset();
    const bool same = own.st_dev == there.st_dev && own.st_ino == there.st_ino;
    if (same || !S_ISREG(there.st_mode)) return false;
    file_.emplace(path_, O_RDWR);
    size_ = file_->size();
    return true;
  }
  if (errno != ENOENT) return false;
  const double now = clock_();
  if (!missing_since_) missing_since_ = now;
  return now - *missing_since_ >= kSecondsUntilAnew && make_anew();
}

/// With all lines so far, unless its folder is gone.
bool LineFile::make_anew() {
  const std::size_t folder = path_.rfind('/');
  if (folder != std::string::npos && ::access(path_.substr(0, folder + 1).c_str(), W_OK) != 0) return false;
  constexpr std::int64_t kAtOnce = 1 << 20;
  File anew(path_, O_RDWR | O_CREAT | O_EXCL);
  try {
    std::vector<std::byte> lines(static_cast<std::size_t>(std::min(kAtOnce, size_)));
    for (std::int64_t at = 0; at < size_; at += std::ssize(lines)) {
      const std::span part(lines.data(),
                           static_cast<std::size_t>(std::min(std::ssize(lines) + at, size_) - at));
      file_->read(part, at);
      anew.write(part, at);
    }
  } catch (const FileError&) {
    ::unlink(path_.c_str());  // half of it would be taken for all
    throw;
  }
  file_ = std::move(anew);
  missing_since_.reset();
  return true;
}

}  // namespace jigsaw::inline base
