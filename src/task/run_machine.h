#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "parallel/machine.h"

namespace jigsaw::inline task {

/// What the ranks of a run do, where it is given rather than measured.
struct MachineOptions {
  struct Link {
    double bytes_per_second = 0;
    double latency_seconds = 0;
  };
  double flops_per_second = 0;
  double memory_bytes_per_second = 0;
  std::vector<Link> links;  ///< one for all mesh axes, or one for each: data, domain…, tensor
};
void declare(Keys<MachineOptions::Link>& keys);
void declare(Keys<MachineOptions>& keys);

/// @throws ConfigError  naming machine.links, when they are neither one nor as many as the mesh has axes.
void require_links(const MachineOptions& options, int axes);

/// As given; else as an earlier run on this mesh with as many threads measured it; else measured now, and
/// written for the next. Collective. Nothing of it counts as the model's traffic or work.
///
/// @param products  what the run's products are formed of.
/// @param path  of the file that keeps the measurement: {"mesh": …, "threads": …, "machine": MachineOptions},
///              with "products" unless they are of float32, and of GPUs with "device", "ranks_per_node" and
///              "tf32". One that cannot be read is measured anew, and one that cannot be written is no error.
/// @throws ConfigError  as require_links() does.
Machine machine_of_run(const std::optional<MachineOptions>& given, const Rank& rank, DType products,
                       int ranks_per_node, const std::string& path);

}  // namespace jigsaw::inline task
