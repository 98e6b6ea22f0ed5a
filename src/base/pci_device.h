#pragma once
#include <string>

namespace jigsaw::inline base {

/// Where a PCI device sits, as Linux tells; what it does not tell is "" or −1.
struct PciDevice {
  std::string link;    ///< "x16, up to 32.0 GT/s", "x8 of x16, up to 16.0 GT/s": it slows down while idle
  int numa_node = -1;  ///< whose cores and memory are next to it
};
/// @param bus  its address, "0000:1B:00.0".
/// @param sys  where Linux tells of devices.
PciDevice pci_device(const std::string& bus, const std::string& sys = "/sys");

/// The version of a driver that is loaded, such as that of "nvidia"; "" where Linux tells none.
std::string driver_version(const std::string& module, const std::string& sys = "/sys");

/// The cores that this process may run on: "0-7,16-23".
std::string allowed_cores();
/// The cores of a NUMA node, in the same way; "" where Linux tells none.
std::string node_cores(int node, const std::string& sys = "/sys");
/// Whether two such lists have a core in common.
bool share_cores(const std::string& cores, const std::string& others);

}  // namespace jigsaw::inline base
