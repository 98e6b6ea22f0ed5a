#include "task/device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/host.h"
#include "base/pci_device.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "task/memory_need.h"

namespace jigsaw::inline task {

namespace {

/// Versions of cuDNN and NCCL from 9.0 and 2.9 on.
constexpr int kFirstByTenThousands = 10000;

/// "12.8" of 12080.
std::string version_text(int version) {
  return version == 0 ? "none" : concat(version / 1000, ".", version % 1000 / 10);
}

/// "NVIDIA's driver is loaded and CUDA_VISIBLE_DEVICES is \"3\"": why GPUs are to be there; "" where nothing
/// says so. An empty CUDA_VISIBLE_DEVICES alone hides them on purpose.
std::string why_expected(const GpuSigns& signs) {
  std::vector<std::string> reasons;
  if (!signs.allotted.empty()) reasons.push_back(signs.allotted);
  if (signs.driver) reasons.emplace_back("NVIDIA's driver is loaded");
  if (signs.visible && !(reasons.empty() && signs.visible->empty()))
    reasons.push_back(concat("CUDA_VISIBLE_DEVICES is \"", *signs.visible, "\""));
  return join(reasons, " and ");
}

/// Whether this process is to see no GPU.
bool hidden(const GpuSigns& signs) {
  return signs.visible && (signs.visible->empty() || *signs.visible == "-1");
}

/// What is wrong with the devices of all ranks; "" for nothing.
/// @param sees  what each rank does.
std::string unlike_devices(const std::vector<std::string>& kinds, const std::vector<std::string>& places,
                           const std::vector<std::string>& sees, const std::vector<std::string>& uuids,
                           bool shared, bool by_nccl) {
  std::map<std::string, std::size_t> users, of_gpu;
  for (std::size_t rank = 0; rank < kinds.size(); ++rank) {
    if (kinds[rank] != kinds[0]) {
      return concat(
          "ranks compute on unlike devices: rank 0 on ", kinds[0], ", rank ", rank, " on ", kinds[rank],
          "; start them where devices, drivers and libraries are alike, or set \"device\" to \"cpu\"");
    }
    if (shared || places[rank].empty()) continue;
    const auto [first, is_new] = users.emplace(uuids[rank].empty() ? places[rank] : uuids[rank], rank);
    if (!is_new) {
      return concat(
          std::ranges::count(sees, sees[rank]), " ranks see ", sees[rank], ", of which ranks ", first->second,
          " and ", rank, " would share the GPU ", places[rank],
          ": start one rank for each GPU that they see, or set \"device\" to \"cpu\" (to try things out, "
          "NCCL 2.30 and newer lets ranks share one with NCCL_MULTI_RANK_GPU_ENABLE=1 in all their "
          "environments)");
    }
    const auto [slice, is_first] = of_gpu.emplace(places[rank], rank);
    if (by_nccl && !is_first) {
      return concat("ranks ", slice->second, " and ", rank, " compute on slices of one GPU (MIG), ",
                    places[rank],
                    ", of which NCCL connects one alone: start one rank for each GPU, or build "
                    "with -DJIGSAW_NCCL=OFF");
    }
  }
  return "";
}

}  // namespace

PrecisionTypes types_of(Precision precision) {
  switch (precision) {
    case Precision::kFloat64:
      return {DType::kFloat64, DType::kFloat64};
    case Precision::kBfloat16:
      return {DType::kBfloat16, DType::kFloat32};
    case Precision::kFloat32:
      break;
  }
  return {DType::kFloat32, DType::kFloat32};
}

GpuSigns gpu_signs(const std::string& sys) {
  GpuSigns signs;
  const auto value_of = [](const char* variable) {
    const char* const given = std::getenv(variable);
    return std::string(given == nullptr ? "" : given);
  };
  // The last is a number of GPUs; the others are lists of their numbers, of which a step without GPUs has its
  // job's.
  const bool none = value_of("SLURM_STEP_GPUS").empty() && value_of("SLURM_GPUS_ON_NODE") == "0";
  for (const char* variable : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE"}) {
    const std::string value = value_of(variable);
    if (value.empty() || none) continue;
    signs.allotted = concat(variable, " is \"", value, "\"");
    break;
  }
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr)
    signs.visible = visible;
  signs.driver = !driver_version("nvidia", sys).empty();
  return signs;
}

ChosenDevice choose_device(DeviceChoice device, const TrainOptions& train, const CudaMachine& machine,
                           const GpuSigns& signs) {
  const bool may_use_cuda = machine.built && train.precision != Precision::kFloat64;
  if (device == DeviceChoice::kCpu) return {};
  const std::string processor =
      concat("the processor computes", train.tf32 ? "; train.tf32 has no effect" : "");
  std::string expected = why_expected(signs);
  if (device == DeviceChoice::kAuto && !may_use_cuda) {
    if (machine.built || train.precision == Precision::kFloat64 || expected.empty() || hidden(signs))
      return {false, train.tf32 ? processor : ""};
    return {false,
            concat("this build has no CUDA kernels: ", processor, ", though ", expected,
                   "; build with -DJIGSAW_CUDA=ON (docs/building.md), or set \"device\" to \"cpu\""),
            true};
  }
  if (!machine.built) {
    throw ConfigError(
        "\"device\" is \"cuda\", and this build has no CUDA kernels: set it to \"cpu\", or build with "
        "-DJIGSAW_CUDA=ON");
  }
  if (machine.driver_too_old()) {
    throw ConfigError(concat("the driver of this machine's GPUs is for CUDA ", version_text(machine.driver),
                             ", and this program needs ", version_text(machine.runtime),
                             ": update the driver, or set \"device\" to \"cpu\""));
  }
  if (!machine.failure.empty()) {
    throw ConfigError(concat("the GPUs of this machine cannot be used: ", machine.failure,
                             "; set \"device\" to \"cpu\" to run without"));
  }
  if (machine.devices > 0) return {true, ""};
  if (!expected.empty()) {
    expected +=
        " (a container wants --gpus or --nv, CUDA_VISIBLE_DEVICES may name what is not here, and a GPU "
        "in MIG mode has to have instances)";
  }
  if (device == DeviceChoice::kCuda) {
    throw ConfigError(
        concat("\"device\" is \"cuda\", and there is no GPU that this program can use (driver for CUDA: ",
               version_text(machine.driver), ")", expected.empty() ? "" : ", though " + expected,
               ": set it to \"cpu\" to run without"));
  }
  if (!signs.allotted.empty()) {
    throw ConfigError(
        concat("this program sees no GPU, though ", expected, "; set \"device\" to \"cpu\" to run without"));
  }
  if (expected.empty()) return {false, concat("no GPU here: ", processor)};
  return {false, concat("no GPU here: ", processor, ", though ", expected), true};
}

std::string library_version(int version) {
  const int unit = version < kFirstByTenThousands ? 1000 : 10000;
  return concat(version / unit, ".", version % unit / 100, ".", version % 100);
}

bool may_share_gpus(const NcclLibrary& nccl) {
  constexpr int kLeast = 23000;
  const char* const enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return nccl.built && nccl.version >= kLeast && enabled != nullptr && std::string_view(enabled) == "1";
}

std::string unfit_library(const CudnnLibrary& cudnn, const NcclLibrary& nccl) {
  constexpr int kLeastNccl =
      22602;  // older ones crash where communicators that do not block take turns: nccl#1605
  if (cudnn.built && (cudnn.version < kFirstByTenThousands || cudnn.version / 10000 != cudnn.built_for)) {
    return concat("cuDNN ", cudnn.built_for, " is needed, and the library here is ",
                  library_version(cudnn.version),
                  ": name another by LD_LIBRARY_PATH, or set \"device\" to \"cpu\"");
  }
  // Older ones have 3-D convolutions in TensorFloat-32 whose results are wrong (9.10.2 to 9.15, PyTorch
  // #167024), and attention whose gradient reads workspace that nobody has written (before 9.18,
  // TransformerEngine #2186).
  constexpr int kLeastCudnn = 91800;
  if (cudnn.built && cudnn.version < kLeastCudnn) {
    return concat("cuDNN ", library_version(kLeastCudnn), " or newer is needed, and the library here is ",
                  library_version(cudnn.version),
                  ": name another by LD_LIBRARY_PATH, or set \"device\" to \"cpu\"");
  }
  if (cudnn.built && cudnn.for_cuda != cudnn.cuda) {
    return concat("cuDNN for CUDA ", cudnn.cuda, " is needed, and the library here, ",
                  library_version(cudnn.version), ", is for CUDA ", cudnn.for_cuda,
                  ": name another by LD_LIBRARY_PATH, or set \"device\" to \"cpu\"");
  }
  if (nccl.built && nccl.version < kLeastNccl) {
    return concat("NCCL ", library_version(kLeastNccl), " or newer is needed, and the library here is ",
                  library_version(nccl.version),
                  ": name another by LD_LIBRARY_PATH, or set \"device\" to \"cpu\"");
  }
  return "";
}

std::vector<std::string> visible_gpus() {
  std::vector<std::string> uuids(static_cast<std::size_t>(cuda_device_count()));
  for (std::size_t gpu = 0; gpu < uuids.size(); ++gpu) uuids[gpu] = cuda_device(static_cast<int>(gpu)).uuid;
  return uuids;
}

std::vector<int> chosen_gpus(const std::vector<std::string>& machines,
                             const std::vector<std::vector<std::string>>& seen) {
  std::map<std::string, std::size_t> ranks_on;
  std::set<std::string> taken;  // containers of one machine may have names of their own
  // Who sees fewer takes first.
  std::vector<std::size_t> ranks(seen.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  std::ranges::stable_sort(ranks, {}, [&](std::size_t rank) { return seen[rank].size(); });
  std::vector<int> chosen(seen.size());
  for (const std::size_t rank : ranks) {
    std::size_t& here = ranks_on[machines[rank]];
    const std::vector<std::string>& gpus = seen[rank];
    const auto is_free = [&](const std::string& uuid) { return taken.insert(uuid).second; };
    const auto own = std::ranges::find_if(gpus, is_free);
    const auto index = own != gpus.end() ? static_cast<std::size_t>(own - gpus.begin())
                                         : here % std::max<std::size_t>(gpus.size(), 1);
    chosen[rank] = static_cast<int>(index);
    ++here;
  }
  return chosen;
}

int choose_gpu(Communicator& world, const std::vector<std::string>& seen) {
  const std::vector<std::string> names = world.gather_text(host_name()),
                                 lists = world.gather_text(join(seen, "\n"));
  std::vector<std::vector<std::string>> all;
  for (const std::string& list : lists)
    all.push_back(list.empty() ? std::vector<std::string>() : split(list, '\n'));
  std::vector<std::string> chosen;
  for (const int gpu : chosen_gpus(names, all)) chosen.push_back(std::to_string(gpu));
  return std::stoi(world.scatter_text(std::move(chosen)));
}

Context make_context(DeviceChoice device, const TrainOptions& train, int threads, int gpu,
                     ChosenDevice* chosen_device, Carrier carrier) {
  const CudaMachine machine = device == DeviceChoice::kCpu ? CudaMachine{} : cuda_machine();
  const ChosenDevice chosen = choose_device(device, train, machine, gpu_signs());
  if (chosen_device != nullptr) *chosen_device = chosen;
  if (chosen.cuda) {
    const std::string failure =
        unfit_library(cudnn_library(), carrier == Carrier::kNccl ? nccl_library() : NcclLibrary());
    if (!failure.empty()) throw ConfigError(failure);
    Context context = make_cuda_context(gpu % machine.devices, carrier == Carrier::kMpi);
    context.set_tf32(train.tf32);
    context.set_deterministic(train.deterministic);
    context.set_host_threads(threads);  // which add what other ranks send by way of the host
    return context;
  }
  return Context::make_host(train.precision == Precision::kFloat64 ? Backend::kReference : Backend::kCpu,
                            threads);
}

CostModel plan_costs(Communicator& world, int ranks, const TrainOptions& train) {
  const Device device = world.context().device();
  const DType type = types_of(train.precision).compute;
  if (device != Device::kCuda) return cost_model(device, type, 1);
  const int sharing = ranks == world.size() ? ranks_per_node(world) : cuda_machine().devices;
  return cost_model(device, type, sharing, train.tf32);
}

std::unique_ptr<Communicator> connect_devices(std::unique_ptr<Communicator> mpi, Reduction reduction) {
  if (mpi->context().backend() != Backend::kCuda || !nccl_library().built || mpi->size() == 1) return mpi;
  const NcclOptions options{.fast_reduction = reduction == Reduction::kFast,
                            .ranks_per_node = ranks_per_node(*mpi)};
  return make_nccl_communicator(std::move(mpi), options);
}

RankDevice rank_device(const Context& context) {
  if (context.backend() != Backend::kCuda) return {"the processor", ""};
  const CudaMachine machine = cuda_machine();
  const CudaDevice device = current_cuda_device();
  const CudnnLibrary cudnn = cudnn_library();
  const NcclLibrary nccl = nccl_library();
  return {concat(device.name, " (compute capability ", device.major, ".", device.minor, ", driver for CUDA ",
                 version_text(machine.driver), ", program built with ", version_text(machine.runtime),
                 cudnn.built ? ", cuDNN " + library_version(cudnn.version) : "",
                 nccl.built ? ", NCCL " + library_version(nccl.version) : "", ")"),
          concat(device.bus, " of ", host_name()), may_share_gpus(nccl),
          concat(counted(machine.devices, "GPU"), " on ", host_name()), device.uuid};
}

void require_like_devices(Communicator& world, const RankDevice& mine, Carrier carrier) {
  const std::vector<std::string> kinds = world.gather_text(mine.kind), places = world.gather_text(mine.place),
                                 sees = world.gather_text(mine.sees), uuids = world.gather_text(mine.uuid);
  const bool shared = world.all_reduce(std::vector{mine.shared ? 1.0 : 0.0}, ReduceOp::kMin)[0] > 0;
  const std::string failure = agreed_failure(
      world, world.rank() == 0 ? unlike_devices(kinds, places, sees, uuids, shared, carrier == Carrier::kNccl)
                               : std::string());
  if (!failure.empty()) throw ConfigError(failure);
}

}  // namespace jigsaw::inline task
