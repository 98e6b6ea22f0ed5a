#include "base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/text.h"

namespace jigsaw::inline base {

namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

/// The number that a file begins with; none for "max" or where there is no file.
std::int64_t number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number && number > 0 ? number : kNone;
}

/// Of a group and those above it, up to where they are mounted.
std::int64_t least_upwards(const std::filesystem::path& mount, const std::string& group, const char* file) {
  std::int64_t least = kNone;
  std::filesystem::path below = std::filesystem::path(group).relative_path();
  while (true) {
    least = std::min(least, number_in(mount / below / file));
    if (below.empty()) return least;
    below = below.parent_path();
  }
}

}  // namespace

std::int64_t control_group_limit(const std::string& groups, const std::string& root) {
  std::int64_t least = kNone;
  for (const std::string& line : split(groups, '\n')) {
    // "0::/group" of version 2, "9:memory:/group" of version 1
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      group = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, least_upwards(root, group, "memory.max"));
    if (controllers == "memory") {
      const std::filesystem::path mount = std::filesystem::path(root) / "memory";
      least = std::min(least, least_upwards(mount, group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

std::int64_t memory_limit() {
  std::ifstream file("/proc/self/cgroup");
  const std::string groups{std::istreambuf_iterator<char>(file), {}};
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t machine = pages > 0 && page > 0 ? pages * page : kNone;
  return std::min(machine, control_group_limit(groups, "/sys/fs/cgroup"));
}

}  // namespace jigsaw::inline base
