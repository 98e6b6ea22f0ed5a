#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/host.h"
#include "base/text.h"

namespace jigsaw::inline base {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 255;

/// Where numbers of processes mean what they mean here: the machine's name, in a container with numbers of
/// its own with that of its name space.
std::string own_machine() {
  constexpr const char* kOfMachines = "pid:[4026531836]";
  std::error_code unknown;
  const std::string space = fs::read_symlink("/proc/self/ns/pid", unknown).string();
  std::string name = host_name();
  std::erase_if(name,
                [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; });
  if (!unknown && space != kOfMachines) {
    std::string digits = space;
    std::erase_if(digits, [](unsigned char c) { return std::isdigit(c) == 0; });
    name += "." + digits;
  }
  return name;
}

/// What private names of this file that processes of this machine have begin with: "x.nc.tmp-node12-".
std::string private_begin(const std::string& name) {
  std::string end = concat(".tmp-", own_machine(), "-");
  constexpr std::size_t kDigits = 24;  // of the process, and of what stands beside it
  return name.substr(0, kLongestName - std::min(kLongestName, end.size() + kDigits)) + end;
}

bool lives(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

/// The process of a name behind its beginning: "4711", "4711.raw"; 0: none.
pid_t process_of(std::string_view rest) {
  long number = 0;
  std::size_t digits = 0;
  for (; digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits])) != 0; ++digits) {
    if (digits > 9) return 0;
    number = 10 * number + (rest[digits] - '0');
  }
  const bool ends = digits == rest.size() || rest[digits] == '.';
  return digits > 0 && ends ? static_cast<pid_t>(number) : 0;
}

std::string folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

}  // namespace

std::string private_name(const std::string& path) {
  const fs::path whole = path;
  return (whole.parent_path() / concat(private_begin(whole.filename().string()), ::getpid())).string();
}

std::string other_writer(const std::string& path) {
  const std::string begin = private_begin(fs::path(path).filename().string());
  std::string found;
  std::error_code unreadable, ignored;
  for (fs::directory_iterator it(folder_of(path), unreadable), end; !unreadable && it != end;
       it.increment(unreadable)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(begin)) continue;
    const pid_t process = process_of(std::string_view(name).substr(begin.size()));
    if (process == 0 || process == ::getpid()) continue;
    if (lives(process)) {
      found = concat("process ", process);
    } else if (!fs::is_directory(it->symlink_status(ignored))) {
      fs::remove(it->path(), ignored);
    }
  }
  return found;
}

void remove_left(const std::string& folder) noexcept try {
  const std::string middle = concat(".tmp-", own_machine(), "-");
  std::error_code unreadable, ignored;
  for (fs::directory_iterator it(folder, unreadable), end; !unreadable && it != end;
       it.increment(unreadable)) {
    const std::string name = it->path().filename().string();
    const std::size_t at = name.rfind(middle);
    if (at == std::string::npos || at == 0) continue;
    const pid_t process = process_of(std::string_view(name).substr(at + middle.size()));
    if (process != 0 && !lives(process) && it->is_regular_file(ignored)) fs::remove(it->path(), ignored);
  }
} catch (const std::exception&) {
  // They are in nobody's way.
}

}  // namespace jigsaw::inline base
