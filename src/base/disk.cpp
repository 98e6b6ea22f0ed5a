#include "base/disk.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/text.h"

namespace jigsaw::inline base {
namespace {

/// The nearest folder above a file that is there.
std::filesystem::path folder_above(const std::string& path) {
  std::error_code unreadable;
  std::filesystem::path folder = std::filesystem::absolute(path, unreadable).lexically_normal().parent_path();
  while (folder.has_relative_path() && !std::filesystem::is_directory(folder, unreadable))
    folder = folder.parent_path();
  return folder;
}

std::int64_t bytes_of(std::uint64_t blocks, const struct statvfs& disk) {
  return static_cast<std::int64_t>(blocks * disk.f_frsize);
}

}  // namespace

bool is_of_disk(int error) {
  constexpr std::array kOfDisk = {ENOSPC, EDQUOT, EFBIG,  EROFS,    EIO,
                                  ENXIO,  ENODEV, ESTALE, ENOTCONN, ETIMEDOUT};
  return std::ranges::find(kOfDisk, error) != kOfDisk.end();
}

bool is_of_disk(const std::error_code& error) {
  const bool of_system =
      error.category() == std::generic_category() || error.category() == std::system_category();
  return of_system && is_of_disk(error.value());
}

bool is_of_disk(const Error& error) {
  return error.code() == ExitCode::kCheckpoint;
}

std::string reason_of(int error, const std::string& path, std::int64_t needed) {
  std::string words = std::generic_category().message(error);
  if (error != ENOSPC) return words;
  const std::string folder = folder_above(path).string();
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return words;
  if (disk.f_files > 0 && disk.f_favail == 0) {
    return concat(words, ": the file system of ", folder, " takes no more files than the ",
                  static_cast<std::int64_t>(disk.f_files), " that it has");
  }
  return concat(words, ": the file system of ", folder, " has ", human_bytes(bytes_of(disk.f_bavail, disk)),
                " of ", human_bytes(bytes_of(disk.f_blocks, disk)), " free",
                needed > 0 ? concat(", and ", human_bytes(needed), " are needed") : "");
}

int disk_error_behind(const std::string& path) {
  constexpr unsigned long kBlocks = 4;  // which hold no file of ours
  const int error = errno;
  if (is_of_disk(error)) return error;
  struct statvfs disk {};
  const bool known = ::statvfs(folder_above(path).c_str(), &disk) == 0;
  return known && disk.f_bavail < kBlocks ? ENOSPC : 0;
}

}  // namespace jigsaw::inline base
