#include "files/full_disk.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "support/error_of.h"

namespace jigsaw {
namespace full_disk_test {

/// That of /proc has no room at all.
TEST(FullDisk, IsTheReasonWhereThereIsNoRoom) {
  if (!std::filesystem::is_directory("/proc/self")) GTEST_SKIP() << "no /proc";
  const auto error_of = [](int number, const std::string& path) {
    errno = number;
    return testing::error_of<>([&] { refuse_unwritten(path, "HDF5 fails"); });
  };
  EXPECT_EQ(
      error_of(0, "/proc/file.nc"),
      "/proc/file.nc cannot be written: No space left on device: the file system of /proc has 0 B of 0 B "
      "free");
  EXPECT_EQ(error_of(0, ::testing::TempDir() + "file.nc"),
            ::testing::TempDir() + "file.nc cannot be written: HDF5 fails");
  EXPECT_EQ(error_of(EDQUOT, "/tmp/file.nc"), "/tmp/file.nc cannot be written: Disk quota exceeded");
  errno = EROFS;
  EXPECT_THROW(refuse_unwritten("/tmp/file.nc", "HDF5 fails"), DiskError);
  errno = EACCES;
  EXPECT_THROW(refuse_unwritten(::testing::TempDir() + "file.nc", "HDF5 fails"), DataError);
}

}  // namespace full_disk_test
}  // namespace jigsaw
