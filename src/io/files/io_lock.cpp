#include "files/io_lock.h"

#include <hdf5.h>

#include <cerrno>

namespace jigsaw::inline files {

std::unique_lock<std::mutex> lock_io() {
  // The libraries keep their state per process, so the lock that guards it has to live there too.
  static std::mutex mutex;
  std::unique_lock lock(mutex);
  // HDF5 prints every error to stderr unless told not to, by each thread: errors are ours to report.
  static thread_local const bool silent = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  static_cast<void>(silent);
  errno = 0;  // so that an error's cause is that of the call that follows (disk_error_behind())
  return lock;
}

void leave_failed_files_alone() {
  H5dont_atexit();
}

}  // namespace jigsaw::inline files
