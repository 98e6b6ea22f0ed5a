#include "files/full_disk.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace jigsaw::inline files {

std::string why_unwritable(const std::string& path, const std::string& otherwise) {
  constexpr unsigned long kBlocks = 4;  // which hold no file of ours
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  struct statvfs disk {};
  const bool known = ::statvfs(folder.empty() ? "." : folder.c_str(), &disk) == 0;
  return known && disk.f_bavail < kBlocks ? std::strerror(ENOSPC) : otherwise;
}

}  // namespace jigsaw::inline files
