#include "estimate/gpus.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "kernels/cuda_context.h"
#include "kernels/cuda_links.h"

namespace jigsaw::inline estimate {

namespace {

/// Rates in TFLOP/s, TB/s and GB/s (one way, of a rank while all send), memory in GB as the driver tells it.
struct Gpu {
  const char* name;
  const char* driver_name;  ///< how that begins, behind "NVIDIA "
  double bf16, tf32, fp32;
  double memory_rate, memory;
  double node_link, network, pcie;
  int per_node;
};

constexpr Gpu kGpus[] = {
    {"h100", "H100", 450, 250, 50, 2.7, 85.0, 350, 45, 40, 8},
    {"h100-nvl", "H100 NVL", 380, 190, 45, 3.1, 99.0, 40, 22, 40, 4},
    {"h100-pcie", "H100 PCIe", 340, 170, 38, 1.6, 85.0, 40, 22, 40, 4},
    {"h200", "H200", 450, 250, 50, 3.8, 150.0, 350, 45, 40, 8},
    {"b200", "B200", 1000, 500, 56, 6.4, 191.0, 700, 45, 40, 8},
    {"gh200", "GH200", 450, 250, 50, 3.2, 101.0, 350, 22, 40, 4},
    {"a100-40", "A100-SXM4-40GB", 160, 80, 14.5, 1.25, 42.3, 230, 22, 20, 8},
    {"a100-pcie-40", "A100-PCIE-40GB", 160, 80, 14.5, 1.25, 42.3, 20, 11, 20, 4},
    {"a100-pcie-80", "A100 80GB PCIe", 160, 80, 14.5, 1.55, 85.0, 20, 11, 20, 4},
    {"a100-80", "A100", 160, 80, 14.5, 1.6, 85.0, 230, 22, 20, 8},
    {"l40s", "L40S", 165, 83, 69, 0.69, 47.6, 20, 11, 20, 4},
    {"a40", "A40", 68, 34, 28, 0.56, 47.6, 20, 11, 20, 4},
    {"rtx4090", "GeForce RTX 4090", 75, 62, 62, 0.8, 25.2, 10, 11, 10, 2},
};

MachineModel model_of(const Gpu& gpu) {
  // Of a call, from where it is issued to its end, as in cost_model().
  constexpr double kNodeLatency = 1.5e-5, kNetworkLatency = 2e-5, kRead = 1e9;
  return {.name = gpu.name,
          .device = Device::kCuda,
          .flops_per_second = 1e12 * gpu.fp32,
          .flops_per_second_tf32 = 1e12 * gpu.tf32,
          .flops_per_second_bf16 = 1e12 * gpu.bf16,
          .memory_bytes_per_second = 1e12 * gpu.memory_rate,
          .memory_bytes = 1e9 * gpu.memory,
          .read_bytes_per_second = kRead,
          .ranks_per_node = gpu.per_node,
          .node_link = MachineOptions::Link{1e9 * gpu.node_link, kNodeLatency},
          .links = {{1e9 * gpu.network, kNetworkLatency}}};
}

/// Whose name the driver's begins with, the longest such; null: not known.
const Gpu* find_gpu(std::string_view driver_name) {
  constexpr std::string_view kMaker = "NVIDIA ";
  if (driver_name.starts_with(kMaker)) driver_name.remove_prefix(kMaker.size());
  const Gpu* found = nullptr;
  const auto length = [](const Gpu* gpu) { return std::string_view(gpu->driver_name).size(); };
  for (const Gpu& gpu : kGpus) {
    if (driver_name.starts_with(gpu.driver_name) && (found == nullptr || length(&gpu) > length(found)))
      found = &gpu;
  }
  return found;
}

double pcie_bytes_per_second(const std::string& driver_name) {
  const Gpu* const gpu = find_gpu(driver_name);
  return 1e9 * (gpu != nullptr ? *gpu : kGpus[0]).pcie;
}

/// Of a slice "1g.10gb" of a GPU: the sevenths of its multiprocessors, and its memory.
void take_slice(std::string_view name, MachineModel& model) {
  constexpr std::string_view kMark = " MIG ";
  constexpr double kParts = 7;
  const std::size_t at = name.find(kMark);
  if (at == std::string_view::npos) return;
  int parts = 0, gigabytes = 0;
  const std::string slice(name.substr(at + kMark.size()));
  if (std::sscanf(slice.c_str(), "%dg.%dgb", &parts, &gigabytes) != 2) return;
  model.name += " " + slice;
  for (double* rate : {&model.flops_per_second, &model.flops_per_second_tf32, &model.flops_per_second_bf16,
                       &model.memory_bytes_per_second})
    *rate *= parts / kParts;
  model.memory_bytes = 1e9 * gigabytes;
}

}  // namespace

const std::vector<MachineModel>& known_gpus() {
  static const std::vector<MachineModel> all = [] {
    std::vector<MachineModel> models;
    std::ranges::transform(kGpus, std::back_inserter(models), model_of);
    return models;
  }();
  return all;
}

MachineModel gpu_machine(const std::string& driver_name) {
  if (const Gpu* const gpu = find_gpu(driver_name)) {
    MachineModel model = model_of(*gpu);
    take_slice(driver_name, model);
    return model;
  }
  MachineModel model = model_of(kGpus[0]);
  model.name = concat(model.name, ", for \"", driver_name, "\" is not known");
  return model;
}

MachineModel machine_of_gpus_here() {
  const CudaDevice own = current_cuda_device();
  MachineModel model = gpu_machine(own.name);
  double& between = model.node_link->bytes_per_second;
  for (int peer = 0; peer < cuda_device_count(); ++peer) {
    if (peer != own.number && peer_link(own.number, peer) != PeerLink::kNvlink)
      between = std::min(between, pcie_bytes_per_second(own.name));
  }
  return model;
}

}  // namespace jigsaw::inline estimate
