#pragma once
#include <string>
#include <vector>

#include "estimate/machine_model.h"

namespace jigsaw::inline estimate {

/// A mesh with machines along `data` and the ranks of each along `tensor`; all ranks along `tensor` where
/// machines have different numbers of them. Collective.
Mesh mesh_of_machines(Communicator& world);

/// What the ranks of a job do, measured while all do it: products in float32, bfloat16 and float64, memory,
/// messages (where there are several machines between them and within one, else within alone, which then
/// stands for both; of GPUs what carries their collectives), and reading these files, whose pages are first
/// dropped from the cache as far as the system lets one. float64 is measured on processors alone. Takes some
/// seconds. Collective.
///
/// @param files  of which each rank reads a share of at most 256 MiB; none: reading is not measured.
MachineModel calibrate(Communicator& world, const std::vector<std::string>& files);

/// calibrate(), written to a file that `--machine` takes, by rank 0. Collective.
/// @throws ConfigError  when it cannot be written, or something else is there.
MachineModel calibrate_to(const std::string& path, Communicator& world,
                          const std::vector<std::string>& files);

}  // namespace jigsaw::inline estimate
