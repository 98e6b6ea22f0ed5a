#include "base/pci_device.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "base/text.h"

namespace jigsaw::inline base {

namespace {

/// Without the blanks around it; "" where there is none.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.find_last_not_of(" \t\r");
  return end == std::string::npos ? "" : line.substr(0, end + 1);
}

/// First and last of each run in "0-7,16-23".
std::vector<std::pair<int, int>> core_runs(const std::string& cores) {
  std::vector<std::pair<int, int>> runs;
  for (const std::string& run : split(cores, ',')) {
    const std::size_t dash = run.find('-');
    const int first = std::atoi(run.c_str());
    runs.emplace_back(first, dash == std::string::npos ? first : std::atoi(run.c_str() + dash + 1));
  }
  return runs;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

PciDevice pci_device(const std::string& bus, const std::string& sys) {
  std::string name = bus;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string folder = concat(sys, "/bus/pci/devices/", name, "/");
  PciDevice device;
  if (const std::string node = first_line(folder + "numa_node"); is_number(node))
    device.numa_node = std::atoi(node.c_str());
  const std::string width = first_line(folder + "current_link_width"),
                    widest = first_line(folder + "max_link_width"),
                    fastest = first_line(folder + "max_link_speed");
  if (!is_number(width) || width == "0") return device;
  device.link = concat("x", width, is_number(widest) && widest != width ? concat(" of x", widest) : "");
  // "32.0 GT/s PCIe"
  const std::size_t unit = fastest.find(" GT/s");
  if (unit != std::string::npos) device.link += concat(", up to ", fastest.substr(0, unit), " GT/s");
  return device;
}

std::string driver_version(const std::string& module, const std::string& sys) {
  return first_line(concat(sys, "/module/", module, "/version"));
}

std::string allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "";
  const auto may = [&](int core) { return core < CPU_SETSIZE && CPU_ISSET(core, &set); };
  std::vector<std::string> runs;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!may(core)) continue;
    int last = core;
    while (may(last + 1)) ++last;
    runs.push_back(last == core ? concat(core) : concat(core, "-", last));
    core = last;
  }
  return join(runs, ",");
}

std::string node_cores(int node, const std::string& sys) {
  return first_line(concat(sys, "/devices/system/node/node", node, "/cpulist"));
}

bool share_cores(const std::string& cores, const std::string& others) {
  const std::vector<std::pair<int, int>> runs = core_runs(cores), other_runs = core_runs(others);
  return std::ranges::any_of(runs, [&](const auto& run) {
    return std::ranges::any_of(other_runs, [&](const auto& other) {
      return run.first <= other.second && other.first <= run.second;
    });
  });
}

}  // namespace jigsaw::inline base
