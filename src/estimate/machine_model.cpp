#include "estimate/machine_model.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "estimate/gpus.h"
#include "task/device.h"
#include "task/memory_need.h"

namespace jigsaw::inline estimate {

void declare(Keys<MachineModel>& keys) {
  using M = MachineModel;
  keys.add("name", &M::name).doc("What people call it.");
  keys.choice("device", &M::device,
              {{"cpu", Device::kCpu, "Processors."}, {"cuda", Device::kCuda, "NVIDIA GPUs."}})
      .doc("What a rank computes on: by whose constants blocks are planned.");
  keys.add("flops_per_second", &M::flops_per_second)
      .required()
      .above(0)
      .doc("Floating-point operations per second of a rank's products in float32.");
  keys.add("flops_per_second_tf32", &M::flops_per_second_tf32)
      .at_least(0)
      .doc("The same as TensorFloat-32 (train.tf32); 0: as in float32.");
  keys.add("flops_per_second_bf16", &M::flops_per_second_bf16)
      .at_least(0)
      .doc("The same in bfloat16; 0: as in float32.");
  keys.add("flops_per_second_fp64", &M::flops_per_second_fp64)
      .at_least(0)
      .doc("The same in float64; 0: half of float32.");
  keys.add("memory_bytes_per_second", &M::memory_bytes_per_second)
      .required()
      .above(0)
      .doc("Bytes per second that a rank moves through memory.");
  keys.add("memory_bytes", &M::memory_bytes).at_least(0).doc("Memory of a rank; 0: not known.");
  keys.add("read_bytes_per_second", &M::read_bytes_per_second)
      .at_least(0)
      .doc("Bytes per second that each rank reads from files while all do; 0: not counted.");
  keys.add("ranks_per_node", &M::ranks_per_node).at_least(1).doc("Consecutive ranks that share a node.");
  keys.add("node_link", &M::node_link).doc("What carries messages between ranks of a node; null: as links.");
  keys.add("links", &M::links)
      .required()
      .not_empty()
      .doc("What carries messages: one for all, or one for each mesh axis: data, domain, tensor.");
}

Machine MachineModel::on(const MeshShape& mesh, const TrainOptions& train) const {
  Machine machine;
  machine.flops_per_second = flops_per_second;
  if (train.precision == Precision::kFloat32 && train.tf32 && flops_per_second_tf32 > 0)
    machine.flops_per_second = flops_per_second_tf32;
  if (train.precision == Precision::kBfloat16 && flops_per_second_bf16 > 0)
    machine.flops_per_second = flops_per_second_bf16;
  if (train.precision == Precision::kFloat64)
    machine.flops_per_second = flops_per_second_fp64 > 0 ? flops_per_second_fp64 : flops_per_second / 2;
  machine.memory_bytes_per_second = memory_bytes_per_second;
  const AxisSet in_node = axes_within_nodes(mesh, ranks_per_node);
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const bool by_axis = links.size() == static_cast<std::size_t>(mesh.axes);
    MachineOptions::Link link = links[by_axis ? a : 0];
    if (node_link && contains(in_node, axis)) link = *node_link;
    machine.links[a] = {link.bytes_per_second, link.latency_seconds};
  }
  if (node_link) {
    machine.node = {node_link->bytes_per_second, node_link->latency_seconds};
    machine.ranks_per_node = ranks_per_node;
  }
  machine.two_levels_from = costs(train).two_levels_from;
  return machine;
}

CostModel MachineModel::costs(const TrainOptions& train) const {
  return cost_model(device, types_of(train.precision).compute, ranks_per_node, train.tf32);
}

std::int64_t MachineModel::usable_memory(int ranks) const {
  const auto all = static_cast<std::int64_t>(memory_bytes);
  const std::int64_t nccl = device == Device::kCuda
                                ? nccl_bytes(std::min(ranks, ranks_per_node) - 1, ranks > ranks_per_node, all)
                                : 0;
  return static_cast<std::int64_t>(kUsableMemory * static_cast<double>(all - nccl));
}

namespace {

constexpr const char* kCpuNode = "cpu-node";

/// Of a cluster of processors: the constants by which plans are made (CostModel), a rank being a socket.
MachineModel cpu_node() {
  return {.name = kCpuNode,
          .flops_per_second = CostModel().flops_per_second,
          .memory_bytes_per_second = CostModel().memory_bytes_per_second,
          .memory_bytes = 128e9,
          .read_bytes_per_second = 2.5e8,
          .ranks_per_node = 2,
          .node_link = MachineOptions::Link{2e10, 2e-6},
          .links = {{CostModel().network.bytes_per_second, CostModel().network.latency_seconds}}};
}

/// Along axes of one rank nothing was measured, and a mesh of other sizes has ranks there: they have the
/// slowest of the others.
void fill_unmeasured(std::vector<MachineOptions::Link>& links) {
  const auto measured = [](const MachineOptions::Link& link) { return link.bytes_per_second > 1; };
  const auto slowest = std::min_element(links.begin(), links.end(), [&](const auto& a, const auto& b) {
    return std::pair(!measured(a), a.bytes_per_second) < std::pair(!measured(b), b.bytes_per_second);
  });
  const MachineOptions::Link link = *slowest;
  if (!measured(link))
    throw ConfigError(
        "it was measured on one rank, and so without links between ranks; measure them on two or more, with "
        "mpirun -n 2 jigsaw-train plan --calibrate FILE, or give them in its links");
  for (MachineOptions::Link& each : links) each = measured(each) ? each : link;
}

}  // namespace

const char* default_machine(Device device) {
  return device == Device::kCpu ? kCpuNode : known_gpus().front().name.c_str();
}

std::vector<std::string> machine_presets() {
  std::vector<std::string> names = {kCpuNode};
  for (const MachineModel& gpu : known_gpus()) names.push_back(gpu.name);
  return names;
}

MachineModel machine_model(const MachineOptions& options, Device device) {
  MachineModel model;
  model.device = device;
  // Of what shares a node links by axis say nothing.
  model.ranks_per_node = device == Device::kCpu ? 1 : machine_model(default_machine(device)).ranks_per_node;
  model.flops_per_second = options.flops_per_second;
  model.flops_per_second_fp64 = options.flops_per_second;
  model.memory_bytes_per_second = options.memory_bytes_per_second;
  model.links = options.links;
  return model;
}

MachineModel machine_model(const std::string& name_or_file) {
  if (name_or_file == kCpuNode) return cpu_node();
  for (const MachineModel& gpu : known_gpus()) {
    if (gpu.name == name_or_file) return gpu;
  }
  const std::vector<std::string> names = machine_presets();
  std::error_code unreadable;
  if (!std::filesystem::exists(name_or_file, unreadable)) {
    throw ConfigError(concat("--machine \"", name_or_file, "\" is neither a file nor one of ",
                             join(names, ", "), did_you_mean(name_or_file, names)));
  }
  Json json = load_config(name_or_file, "machine");
  try {
    if (!json.contains("machine")) return parse<MachineModel>(json, "the machine");
    const bool of_gpus = json.value("device", "") == "cuda";
    MachineModel model = machine_model(parse<MachineOptions>(json.at("machine"), "machine"),
                                       of_gpus ? Device::kCuda : Device::kCpu);
    model.ranks_per_node = json.value("ranks_per_node", model.ranks_per_node);
    model.name = "measured";
    fill_unmeasured(model.links);
    return model;
  } catch (const ConfigError& error) {
    throw ConfigError(concat("--machine ", name_or_file, ": ", error.what()));
  }
}

}  // namespace jigsaw::inline estimate
