#include "io/checkpoint/disk_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <filesystem>
#include <mutex>

#include "support/temporary_folder.h"

// The system's calls.
extern "C" {
int __real_open(const char* path, int flags, ...);
int __real_fsync(int descriptor);
int __real_rename(const char* from, const char* to);
}

namespace jigsaw::testing {
namespace {

namespace fs = std::filesystem;

ino_t inode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

/// A disk that remembers by inode, as disks do, so that a name may come to mean another file.
class Disk {
 public:
  Disk(std::string root, bool syncs) : root_(std::move(root)), syncs_(syncs) {}
  ~Disk() {
    for (const int held : held_) ::close(held);
  }

  void opened(int descriptor, const std::string& path) { paths_[descriptor] = path; }

  void synced(int descriptor) {
    const auto found = paths_.find(descriptor);
    if (found == paths_.end() || !is_ours(found->second)) return;
    const std::string& path = found->second;
    if (syncs_) remember(path);
    events_.push_back({"sync " + name_of(path), survivors()});
  }
  void renamed(const std::string& from, const std::string& to) {
    if (!is_ours(from)) return;
    events_.push_back({"rename " + name_of(from) + " " + name_of(to), survivors()});
  }

  std::vector<DiskEvent> events_;

 private:
  bool is_ours(const std::string& path) const { return path.starts_with(root_); }
  std::string name_of(const std::string& path) const {
    return path == root_ ? "." : path.substr(root_.size() + 1);
  }

  void remember(const std::string& path) {
    hold(path);
    const ino_t inode = inode_of(path);
    if (!fs::is_directory(path)) {
      contents_[inode] = text_of(path);
      return;
    }
    std::map<std::string, ino_t>& names = folders_[inode];
    names.clear();
    for (const auto& entry : fs::directory_iterator(path)) {
      hold(entry.path());
      names[entry.path().filename()] = inode_of(entry.path());
      if (entry.is_directory()) folders_.try_emplace(inode_of(entry.path()));
    }
  }
  /// As long as it is open, its inode is not used again.
  void hold(const std::string& path) { held_.push_back(__real_open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

  Survivors survivors() const {
    Survivors result;
    add_synced(inode_of(root_), "", result.synced);
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      std::optional<std::string>& text = result.names_early[name_of(entry.path())];
      if (!entry.is_directory()) text = content_of(inode_of(entry.path()));
    }
    return result;
  }
  void add_synced(ino_t folder, const std::string& prefix, Tree& tree) const {
    const auto names = folders_.find(folder);
    if (names == folders_.end()) return;
    for (const auto& [name, inode] : names->second) {
      if (folders_.contains(inode)) {
        tree[prefix + name] = std::nullopt;
        add_synced(inode, prefix + name + "/", tree);
      } else {
        tree[prefix + name] = content_of(inode);
      }
    }
  }
  std::string content_of(ino_t inode) const {
    const auto found = contents_.find(inode);
    return found == contents_.end() ? "" : found->second;
  }

  std::string root_;
  bool syncs_;
  std::map<int, std::string> paths_;  ///< of descriptors
  std::map<ino_t, std::string> contents_;
  std::map<ino_t, std::map<std::string, ino_t>> folders_;
  std::vector<int> held_;
};

std::mutex mutex;
std::optional<Disk> disk;

}  // namespace

DiskRecorder::DiskRecorder(const std::string& folder, bool syncs) {
  const std::lock_guard lock(mutex);
  disk.emplace(folder, syncs);
}

DiskRecorder::~DiskRecorder() {
  const std::lock_guard lock(mutex);
  disk.reset();
}

const std::vector<DiskEvent>& DiskRecorder::events() const {
  return disk->events_;
}

void plant(const Tree& tree, const std::string& folder) {
  fs::create_directories(folder);
  for (const auto& [name, text] : tree) {
    if (text) {
      put_text(folder + "/" + name, *text);
    } else {
      fs::create_directories(folder + "/" + name);
    }
  }
}

}  // namespace jigsaw::testing

// What the linker puts in place of the system's calls in all objects of this program, and the calls
// themselves.
extern "C" {
int __wrap_open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  const int descriptor = __real_open(path, flags, mode);
  const std::lock_guard lock(jigsaw::testing::mutex);
  if (descriptor >= 0 && jigsaw::testing::disk) jigsaw::testing::disk->opened(descriptor, path);
  return descriptor;
}

int __wrap_fsync(int descriptor) {
  const std::lock_guard lock(jigsaw::testing::mutex);
  const int result = __real_fsync(descriptor);
  if (result == 0 && jigsaw::testing::disk) jigsaw::testing::disk->synced(descriptor);
  return result;
}

int __wrap_rename(const char* from, const char* to) {
  const std::lock_guard lock(jigsaw::testing::mutex);
  const int result = __real_rename(from, to);
  if (result == 0 && jigsaw::testing::disk) jigsaw::testing::disk->renamed(from, to);
  return result;
}
}
