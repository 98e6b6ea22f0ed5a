#include "base/pci_device.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>

#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

class PciDevices : public ::testing::Test {
 protected:
  void tell(const std::string& file, const std::string& line) const {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / file;
    std::filesystem::create_directories(path.parent_path());
    testing::put_text(path, line + "\n");
  }
  testing::TemporaryFolder folder_;
};

TEST_F(PciDevices, AreAsLinuxTells) {
  const std::string gpu = "bus/pci/devices/0000:1b:00.0/";
  tell(gpu + "numa_node", "1");
  tell(gpu + "current_link_width", "8");
  tell(gpu + "max_link_width", "16");
  tell(gpu + "max_link_speed", "32.0 GT/s PCIe");
  const PciDevice found = pci_device("0000:1B:00.0", folder_.path());
  EXPECT_EQ(found.numa_node, 1);
  EXPECT_EQ(found.link, "x8 of x16, up to 32.0 GT/s");
  tell(gpu + "current_link_width", "16");
  EXPECT_EQ(pci_device("0000:1b:00.0", folder_.path()).link, "x16, up to 32.0 GT/s");
}

/// Virtual machines say −1, 255 or "Unknown", or have no such files.
TEST_F(PciDevices, MayBeUnknown) {
  const std::string gpu = "bus/pci/devices/0000:00:05.0/";
  tell(gpu + "numa_node", "-1");
  tell(gpu + "current_link_width", "0");
  tell(gpu + "max_link_speed", "Unknown");
  for (const char* bus : {"0000:00:05.0", "0000:00:06.0", ""}) {
    EXPECT_EQ(pci_device(bus, folder_.path()).numa_node, -1) << bus;
    EXPECT_EQ(pci_device(bus, folder_.path()).link, "") << bus;
  }
  EXPECT_EQ(driver_version("nvidia", folder_.path()), "");
  tell("module/nvidia/version", "580.65.06");
  EXPECT_EQ(driver_version("nvidia", folder_.path()), "580.65.06");
}

TEST_F(PciDevices, HaveCoresBesideThem) {
  EXPECT_EQ(node_cores(1, folder_.path()), "");
  tell("devices/system/node/node1/cpulist", "8-15,24-31");
  EXPECT_EQ(node_cores(1, folder_.path()), "8-15,24-31");
  for (const char* cores : {"15", "0-8", "0-3,31", "9-10", "0-63"})
    EXPECT_TRUE(share_cores(cores, "8-15,24-31")) << cores;
  for (const char* cores : {"7", "0-7,16-23", "32"}) EXPECT_FALSE(share_cores(cores, "8-15,24-31")) << cores;
}

TEST(AllowedCores, AreThoseOfTheProcess) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) GTEST_SKIP() << "the process may not choose its cores";
  EXPECT_EQ(allowed_cores(), std::to_string(first));
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace jigsaw
