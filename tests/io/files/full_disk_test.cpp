#include "files/full_disk.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace jigsaw {
namespace full_disk_test {

/// That of /proc has no room at all.
TEST(FullDisk, IsTheReasonWhereThereIsNoRoom) {
  if (!std::filesystem::is_directory("/proc/self")) GTEST_SKIP() << "no /proc";
  EXPECT_EQ(why_unwritable("/proc/file.nc", "Permission denied"), "No space left on device");
  EXPECT_EQ(why_unwritable(::testing::TempDir() + "file.nc", "Permission denied"), "Permission denied");
  EXPECT_EQ(why_unwritable("/no/such/folder/file.nc", "HDF5 fails"), "HDF5 fails");
}

}  // namespace full_disk_test
}  // namespace jigsaw
