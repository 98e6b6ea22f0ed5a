#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace jigsaw::testing {

/// What a folder holds: texts of files and, without one, folders, by their paths in it.
using Tree = std::map<std::string, std::optional<std::string>>;

/// What would be on the disk if the machine died.
struct Survivors {
  /// Of names and of bytes only what was synced.
  Tree synced;
  /// All names as they are now, for a file system may write names early; of bytes what was synced.
  Tree names_early;
};

/// One call of the program that matters after the machine dies, and what would be there after it.
struct DiskEvent {
  std::string call;  ///< "sync checkpoints/latest", "rename a b", by paths in the folder
  Survivors after;
};

/// While it lives, notes what this process syncs and renames below a folder. The program that uses it is
/// linked with --wrap=open, --wrap=fsync and --wrap=rename. One at a time.
class DiskRecorder {
 public:
  /// @param syncs  false: a disk that forgets to sync and says that it did.
  explicit DiskRecorder(const std::string& folder, bool syncs = true);
  ~DiskRecorder();
  DiskRecorder(const DiskRecorder&) = delete;
  DiskRecorder& operator=(const DiskRecorder&) = delete;

  const std::vector<DiskEvent>& events() const;
};

/// Writes a tree into a new folder.
void plant(const Tree& tree, const std::string& folder);

}  // namespace jigsaw::testing
