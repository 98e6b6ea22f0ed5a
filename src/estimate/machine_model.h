#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/machine.h"
#include "task/configuration.h"

namespace jigsaw::inline estimate {

/// The part of a rank's memory that arrays may take; the rest is for the process itself and for workspaces
/// inside kernels.
inline constexpr double kUsableMemory = 0.9;

/// A kind of machine, by which runs on it are estimated: what a rank attains of it, not what data sheets say.
/// Consecutive ranks share a node.
struct MachineModel {
  std::string name = "given";
  Device device = Device::kCpu;      ///< by whose constants blocks are planned (cost_model())
  double flops_per_second = 0;       ///< of products in float32
  double flops_per_second_tf32 = 0;  ///< with train.tf32; 0: as float32
  double flops_per_second_bf16 = 0;  ///< in bfloat16; 0: as float32
  double flops_per_second_fp64 = 0;  ///< in float64; 0: half of float32
  double memory_bytes_per_second = 0;
  double memory_bytes = 0;           ///< of a rank; 0: not known
  double read_bytes_per_second = 0;  ///< of files, by each rank while all read; 0: reading is not counted
  int ranks_per_node = 1;
  std::optional<MachineOptions::Link> node_link;  ///< between ranks of a node; none: as between nodes
  /// Between nodes: one, or as measured on a mesh, one for each of its axes.
  std::vector<MachineOptions::Link> links;

  /// The constants of a mesh's ranks: axes within a node have its links.
  Machine on(const MeshShape& mesh, const TrainOptions& train) const;
  /// The constants by which a run there plans its blocks.
  CostModel costs(const TrainOptions& train) const;
  /// Bytes that the arrays of one of `ranks` ranks may take, on a GPU without NCCL's own memory; 0: not
  /// known.
  std::int64_t usable_memory(int ranks) const;
};
void declare(Keys<MachineModel>& keys);

/// The preset by which plans are made where nothing says another: "cpu-node", for GPUs "h100".
const char* default_machine(Device device);
/// The names that machine_model() knows: "cpu-node" and those of known_gpus().
std::vector<std::string> machine_presets();

/// A preset, or else a file: of MachineModel's keys, or a run's machine.json.
/// @throws ConfigError
MachineModel machine_model(const std::string& name_or_file);
/// The section `machine` of a configuration, of which `device` computes.
MachineModel machine_model(const MachineOptions& options, Device device);

}  // namespace jigsaw::inline estimate
