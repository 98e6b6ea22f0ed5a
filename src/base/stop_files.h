#pragma once
#include <string>

namespace jigsaw::inline base {

/// While it lives, a file that a signal which ends this process takes along: what is not whole yet. A file
/// whose name is longer than 4096 bytes, or one beside kMost others, stays.
class StopFile {
 public:
  static constexpr int kMost = 32;

  explicit StopFile(const std::string& path);
  ~StopFile();
  StopFile(const StopFile&) = delete;
  StopFile& operator=(const StopFile&) = delete;

 private:
  int slot_ = -1;
};

/// Removes them, by what a signal handler may call.
void remove_stop_files();

}  // namespace jigsaw::inline base
