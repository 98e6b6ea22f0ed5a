#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "layers/model.h"
#include "task/configuration.h"
#include "task/device.h"

namespace jigsaw::inline task {

/// Bytes that a rank takes at least: what is counted is there in any plan. In double, for what a
/// configuration asks for need not be a number of bytes that any machine has.
struct MemoryNeed {
  double state = 0;        ///< parameters; in training their gradients, and what the optimizer keeps of them
  double activations = 0;  ///< what stands between blocks: of forecasts the largest; in training the batch,
                           ///< too, and of all blocks and leads, kept for backward
};

/// @param samples  over all ranks, that run at a time, each with all members of the ensemble.
/// @param trains   whether there is a backward and an update, or forecasts alone.
MemoryNeed least_memory(const Model& model, const Mesh& mesh, const Configuration& configuration,
                        PrecisionTypes types, std::int64_t samples, bool trains = true);

/// Memory for arrays, and who shares it.
struct MemoryRoom {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  int ranks = 1;
  bool of_device = false;    ///< a GPU's, not the machine's
  std::int64_t of_nccl = 0;  ///< of a rank's share: nccl_bytes()

  /// For a rank's arrays.
  double share() const { return static_cast<double>(bytes) / ranks - static_cast<double>(of_nccl); }
};

/// Where the arrays of these ranks stand: on the machine (or in its control group) that has the least, or
/// on a GPU, each on its own if not all may share them (require_like_devices()). Without bound for ranks that
/// are only planned for. Collective.
MemoryRoom memory_room(Communicator& world);

/// What NCCL takes of a rank's share of a GPU as it connects the rank to others, about: half of the share at
/// most.
/// @param near  how many others are on its machine.
/// @param far   whether there are any on other machines.
std::int64_t nccl_bytes(int near, bool far, std::int64_t share);

/// @throws ConfigError  that names the keys and what would fit, when the room is too small.
void check_memory(const MemoryNeed& need, const Configuration& configuration, const MemoryRoom& room,
                  bool trains = true);

/// What is to be warned of when a step, as it is planned, holds more than a rank's part of the room; "" when
/// it does not. A warning, for a plan is no measurement.
/// @param bytes  the most that a rank holds at one moment.
std::string memory_warning(double bytes, const Configuration& configuration, const MemoryRoom& room);

/// The most ranks that run on one machine. Collective.
int ranks_on_a_machine(Communicator& world);

/// How many consecutive ranks share a machine, wherever one begins to count: the most of which each group
/// lies on one. Collective.
int ranks_per_node(Communicator& world);
/// The same of ranks whose machines have these names.
int ranks_per_node(const std::vector<std::string>& machines);

}  // namespace jigsaw::inline task
