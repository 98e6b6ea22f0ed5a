#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/disk.h"
#include "base/heartbeat.h"
#include "base/text.h"

namespace jigsaw::inline base {
namespace {

/// What is read, written or synced in one go: a unit of work on the slowest disk.
constexpr std::size_t kUnitBytes = std::size_t{8} << 20;

[[noreturn]] void refuse_path(const char* what, const std::string& path, int error) {
  throw FileError(concat("cannot ", what, " ", path, ": ", std::generic_category().message(error)));
}

/// @param needed  bytes; 0: not known.
[[noreturn]] void refuse_to_write(const char* what, const std::string& path, int error,
                                  std::int64_t needed = 0) {
  refuse_output<FileError>(error, concat("cannot ", what, " ", path, ": ", reason_of(error, path, needed)));
}

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISDIR(mode)) return "a folder";
  return "a device";
}

std::string not_regular(const char* what, const std::string& path, mode_t mode) {
  return concat("cannot ", what, " ", path, ": it is ", kind_of(mode), ", not a regular file");
}

/// Under its private name, made anew.
File open_temporary(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw FileError(not_regular("replace", path, status.st_mode));
  }
  return fresh_file(private_name(path));
}

}  // namespace

FileState file_state(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse_path("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw FileError(not_regular("read", path, status.st_mode));
  return {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

std::string file_identity(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse_path("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw FileError(not_regular("read", path, status.st_mode));
  const auto text_of = [](const timespec& time) { return concat(time.tv_sec, ".", time.tv_nsec); };
  return concat(std::filesystem::absolute(path).lexically_normal().string(), " ", status.st_size, " ",
                status.st_ino, " ", text_of(status.st_mtim), " ", text_of(status.st_ctim));
}

bool is_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    refuse_path("read", path, errno);
  }
  if (!S_ISREG(status.st_mode)) throw FileError(not_regular("read", path, status.st_mode));
  return true;
}

File::File(std::string path, int flags) : path_(std::move(path)) {
  do {
    // To open a pipe would otherwise wait for its other end.
    descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0) {
    throw FileError(concat("cannot open ", path_, ": it is a symbolic link"));
  }
  if (descriptor_ < 0 && (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0) refuse_to_write("open", path_, errno);
  if (descriptor_ < 0) refuse("open");
  try {
    check_kind(flags);
  } catch (const FileError&) {
    ::close(descriptor_);
    throw;
  }
}

void File::check_kind(int flags) const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) refuse("open");
  if (S_ISREG(status.st_mode) || (flags & O_DIRECTORY) != 0) return;
  if (S_ISDIR(status.st_mode)) refuse_path("read", path_, EISDIR);
  throw FileError(not_regular("open", path_, status.st_mode));
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void File::refuse(const char* what) const {
  refuse_path(what, path_, errno);
}

std::int64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) refuse("read");
  return status.st_size;
}

void File::reserve(std::int64_t bytes) {
  if (bytes == 0) return;
  int error = 0;
  do {
    error = ::posix_fallocate(descriptor_, 0, bytes);
  } while (error == EINTR);
  if (error != 0 && error != EINVAL && error != EOPNOTSUPP) refuse_to_write("write", path_, error, bytes);
}

void File::write(std::span<const std::byte> bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kUnitBytes), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse_to_write("write", path_, errno);
    beat();
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

void File::read(std::span<std::byte> bytes, std::int64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), std::min(bytes.size(), kUnitBytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse("read");
    beat();
    if (got == 0) throw FileError(concat("cannot read ", path_, ": it ends after ", offset, " bytes"));
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

void File::truncate(std::int64_t bytes) {
  if (::ftruncate(descriptor_, bytes) != 0) refuse_to_write("write", path_, errno);
}

/// What was written goes to the disk unit by unit, so that a slow one is seen to work.
void File::sync() {
  const std::int64_t bytes = size(), unit = static_cast<std::int64_t>(kUnitBytes);
  constexpr unsigned kThrough =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (std::int64_t at = 0; at < bytes && bytes > unit; at += unit) {
    if (::sync_file_range(descriptor_, at, unit, kThrough) != 0) {
      if (errno == EIO || errno == ENOSPC || errno == EDQUOT) refuse_to_write("write", path_, errno);
      break;  // a file system that knows only the whole
    }
    beat();
  }
  if (::fsync(descriptor_) != 0) refuse_to_write("write", path_, errno);
  beat();
}

std::string read_text(const std::string& path, std::int64_t max_bytes) {
  const File file(path, O_RDONLY);
  const std::int64_t size = file.size();
  if (size > max_bytes) {
    throw FileError(concat("cannot read ", path, ": it is longer than ", human_bytes(max_bytes)));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

File fresh_file(const std::string& path) {
  ::unlink(path.c_str());
  return {path, O_RDWR | O_CREAT | O_EXCL};
}

Replacement::Replacement(std::string path) : path_(std::move(path)), file_(open_temporary(path_)) {
  other_writer(path_);
}

Replacement::~Replacement() {
  if (!committed_) ::unlink(file_.path().c_str());
}

void Replacement::commit() {
  file_.sync();
  rename_path(file_.path(), path_);
  committed_ = true;
  sync_folder(std::filesystem::path(path_).parent_path().string());
}

void write_text_atomically(const std::string& path, std::string_view text) {
  Replacement replacement(path, open_temporary(path));
  replacement.file().write(std::as_bytes(std::span(text)), 0);
  replacement.commit();
}

void rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) refuse_to_write("write", to, errno);
}

bool rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  // File systems that cannot do both at once (NFS, some FUSE).
  struct stat status {};
  if (::lstat(to.c_str(), &status) == 0) return false;
  rename_path(from, to);
  return true;
}

void sync_folder(const std::string& path) {
  File folder(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
  // Some network file systems cannot sync folders; there the rename itself is the server's promise.
  if (::fsync(folder.descriptor()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    refuse_to_write("write", path, errno);
  }
}

}  // namespace jigsaw::inline base
