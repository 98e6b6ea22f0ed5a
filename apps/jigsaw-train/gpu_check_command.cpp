#include <cmath>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "array/transfer.h"
#include "base/error.h"
#include "base/pci_device.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "config/config.h"
#include "estimate/calibration.h"
#include "estimate/gpus.h"
#include "job.h"
#include "kernels/contraction.h"
#include "kernels/cuda_context.h"
#include "kernels/cuda_links.h"
#include "kernels/pointwise.h"
#include "nccl/nccl_communicator.h"
#include "parallel/collective_check.h"
#include "parallel/machine.h"
#include "task/device.h"
#include "task/memory_need.h"
#include "version.h"

namespace jigsaw {

namespace {

constexpr std::int64_t kCopied = std::int64_t{1} << 22;  ///< float32 numbers, 16 MiB

struct GpuCheckArguments {
  ConfigArguments configuration;
  std::string mesh;  ///< as in a configuration; empty: the machines, and the ranks of each
};

/// "12.3 GB/s", "456 TFLOP/s": a rate with three digits.
std::string rate_text(double rate, const std::string& unit) {
  constexpr double kRounded = 999.5;  // has four digits
  const char* prefix = " G";
  rate /= 1e9;
  for (const char* larger : {" T", " P"}) {
    if (rate < kRounded) break;
    rate /= 1e3;
    prefix = larger;
  }
  std::ostringstream text;
  text << std::setprecision(3) << rate << prefix << unit;
  return text.str();
}

std::string microseconds_text(double seconds) {
  return concat(std::round(1e7 * seconds) / 10, " µs");
}

/// What is wrong with numbers that the host knows; "" for nothing.
std::string wrong_numbers(const Rank& rank, const std::string& what, const Array& array,
                          const std::function<double(std::int64_t)>& wanted) {
  const std::vector<double> found = download_values(rank.context, array);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double right = wanted(static_cast<std::int64_t>(i));
    if (found[i] != right) return concat(what, " gives ", found[i], " in place of ", right, " as number ", i);
  }
  return "";
}

Array numbers(const Rank& rank, const Shape& shape, DType type,
              const std::function<double(std::int64_t)>& number) {
  std::vector<double> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = number(static_cast<std::int64_t>(i));
  return constant(rank.context, shape, type, values);
}

/// A product of whole numbers, by cuBLASLt.
std::string wrong_product(const Rank& rank, DType type) {
  constexpr std::int64_t kRows = 96, kSummed = 64, kColumns = 80;
  const auto a = [](std::int64_t i) { return static_cast<double>(5 * i % 7 - 3); };
  const auto b = [](std::int64_t i) { return static_cast<double>(3 * i % 11 - 5); };
  const Array product =
      contract(rank.context, ContractionSpec::parse("mk,nk->mn"), numbers(rank, {kRows, kSummed}, type, a),
               numbers(rank, {kColumns, kSummed}, type, b), DType::kFloat32);
  return wrong_numbers(rank, concat("a product in ", name(type)), product, [&](std::int64_t i) {
    double sum = 0;
    for (std::int64_t k = 0; k < kSummed; ++k)
      sum += a(i / kColumns * kSummed + k) * b(i % kColumns * kSummed + k);
    return sum;
  });
}

/// A sum of two arrays, by a kernel of the program.
std::string wrong_sum(const Rank& rank) {
  constexpr std::int64_t kCount = 10007;
  const auto number = [](std::int64_t i) { return static_cast<double>(i); };
  Array into = numbers(rank, {kCount}, DType::kFloat32, number);
  accumulate(rank.context, into, numbers(rank, {kCount}, DType::kFloat32, number));
  return wrong_numbers(rank, "a sum of arrays", into,
                       [](std::int64_t i) { return static_cast<double>(2 * i); });
}

/// Between the memories of host and device, as batches go up and checkpoints come down.
struct CopyRates {
  double up = 0, down = 0;
  std::string wrong;
};
CopyRates copy_rates(const Rank& rank) {
  constexpr int kTries = 4;
  constexpr double kBytes = 4.0 * kCopied;
  const auto number = [](std::int64_t i) { return static_cast<double>(i); };  // float32 has all of them
  std::vector<double> all(kCopied);
  std::iota(all.begin(), all.end(), 0.0);
  const Array host = constant(rank.context.host(), {kCopied}, DType::kFloat32, all);
  Array device = filled(rank.context, {kCopied}, DType::kFloat32, 0.0, Purpose::kWorkspace);
  const Context locked(Backend::kReference, rank.context.runtime()->page_locked(), 1);
  const Array page_locked(locked, {kCopied}, DType::kFloat32, Purpose::kWorkspace);
  CopyRates rates;
  rates.up = kBytes / seconds_of(rank, kTries, [&] { upload_into(rank.context, host, device); });
  rates.down =
      kBytes / seconds_of(rank, kTries, [&] { start_download_into(rank.context, device, page_locked); });
  rates.wrong = wrong_numbers(rank, "a copy to the GPU and back", device, number);
  return rates;
}

/// The same Error on all ranks where one has something to say.
void require_right(Communicator& world, const std::string& wrong) {
  together(world, [&] {
    if (!wrong.empty()) fail(wrong);
  });
}

/// "; NVLink to GPUs 1, 2; host memory to GPU 3" of those that this rank sees.
std::string peers_text(int device) {
  std::string text;
  for (const auto& [link, by] : {std::pair{PeerLink::kNvlink, "NVLink"}, std::pair{PeerLink::kPcie, "PCIe"},
                                 std::pair{PeerLink::kHost, "host memory"}}) {
    std::vector<int> peers;
    for (int peer = 0; peer < cuda_device_count(); ++peer) {
      if (peer != device && peer_link(device, peer) == link) peers.push_back(peer);
    }
    if (!peers.empty()) text += concat("; ", by, " to GPU", peers.size() > 1 ? "s " : " ", join(peers, ", "));
  }
  return text;
}

/// What this rank has: a line for people.
std::string rank_text(const Job& job) {
  const CudaDevice gpu = current_cuda_device();
  const PciDevice place = pci_device(gpu.bus);
  const std::string cores = allowed_cores();
  return concat(job.device.place, "  ", job.device.kind, ", ", human_bytes(free_device_bytes()), " of ",
                human_bytes(gpu.bytes), " free", place.link.empty() ? "" : ", PCIe " + place.link,
                place.numa_node < 0 ? "" : concat(", NUMA node ", place.numa_node),
                cores.empty() ? "" : "; cores " + cores, peers_text(gpu.number));
}

void tell_libraries(Log& log) {
  const CudaMachine machine = cuda_machine();
  for (const auto& [name, version] : versions()) log.info(concat(name, " ", version));
  const std::string driver = driver_version("nvidia");
  log.info(concat("driver ", driver.empty() ? "" : driver + ", ", "for CUDA ", machine.driver / 1000, ".",
                  machine.driver % 1000 / 10, " (", machine.runtime / 1000, ".0 or newer needed)"));
  log.info(concat("cuBLASLt ", library_version(cublas_version())));
  if (!cudnn_library().built) log.info("no cuDNN in this build: convolutions go by kernels of its own");
  if (!nccl_library().built)
    log.info("no NCCL in this build: messages between GPUs go through MPI and the host");
}

void tell_ranks(Job& job) {
  const std::vector<std::string> all = job.world.gather_text(rank_text(job));
  for (std::size_t rank = 0; rank < all.size(); ++rank) job.log.info(concat("rank ", rank, "  ", all[rank]));
  const int node = pci_device(current_cuda_device().bus).numa_node;
  const std::string near = node < 0 ? "" : node_cores(node), cores = allowed_cores();
  const bool is_far = !near.empty() && !cores.empty() && !share_cores(cores, near);
  std::vector<std::string> far;
  for (const std::string& rank : job.world.gather_text(is_far ? concat(job.world.rank()) : "")) {
    if (!rank.empty()) far.push_back(rank);
  }
  if (!far.empty()) {
    job.log.warn(
        concat(far.size() > 1 ? "ranks " : "rank ", join(far, ", "),
               " may use no core of the NUMA node that the GPU is on: bind ranks to cores beside their "
               "GPUs (in SLURM --distribution=block:block, with mpirun --map-by ppr:N:socket:PE=M)"));
  }
  const bool sees_one = ranks_on_a_machine(job.world) > 1 && cuda_device_count() == 1;
  if (job.world.all_reduce(std::array{sees_one ? 1.0 : 0.0}, ReduceOp::kMax)[0] > 0) {
    job.log.warn(
        "ranks see their own GPU alone, and NCCL then sends through the host: let each see all GPUs of its "
        "machine (in SLURM --gpus-per-node, not --gpus-per-task)");
  }
}

/// Along one axis: what messages take, and a line for each kind of collective.
void tell_links(Log& log, const std::string& between, int ranks, const Link& link, const Link& assumed,
                const std::string& assumed_of, const std::vector<CollectiveRate>& rates) {
  log.info(concat(between, ", ", ranks, " ranks: each sends ", rate_text(link.bytes_per_second, "B/s"),
                  " after ", microseconds_text(link.latency_seconds), " (plans assume ",
                  rate_text(assumed.bytes_per_second, "B/s"), " after ",
                  microseconds_text(assumed.latency_seconds), ": ", assumed_of, ")"));
  constexpr int kName = 16, kRate = 14;
  std::vector<std::int64_t> sizes;
  std::vector<std::pair<Collective, std::string>> rows;
  for (const CollectiveRate& rate : rates) {
    if (rows.empty() || rows.back().first != rate.kind) {
      std::ostringstream row;
      row << "  " << std::left << std::setw(kName) << name(rate.kind);
      rows.emplace_back(rate.kind, row.str());
    }
    if (sizes.empty() || rate.bytes > sizes.back()) sizes.push_back(rate.bytes);
    std::ostringstream column;
    column << std::right << std::setw(kRate) << rate_text(rate.bytes_per_second, "B/s");
    rows.back().second += column.str();
  }
  std::ostringstream head;
  head << "  " << std::left << std::setw(kName) << "arrays of" << std::right;
  for (const std::int64_t bytes : sizes) head << std::setw(kRate) << human_bytes(bytes);
  log.info(head.str());
  for (const auto& [kind, row] : rows) log.info(row);
}

/// The mesh whose axes are tried, and what each is called.
struct Axes {
  Mesh mesh;
  std::vector<std::string> names;
};
Axes axes_of(Job& job, const GpuCheckArguments& options) {
  std::optional<MeshOptions> given;
  together(job.world, [&] {
    try {
      if (!options.mesh.empty()) given = parse<MeshOptions>(parse_json(options.mesh, "the mesh"));
    } catch (const ConfigError& error) {
      throw ConfigError(concat("--mesh: ", error.what()));
    }
  });
  if (!given && !options.configuration.config.empty()) {
    tell_mesh(job, job.world.size());
    given = job.configuration.mesh;
  }
  if (!given) {
    Mesh mesh = mesh_of_machines(job.world);
    std::vector<std::string> names(static_cast<std::size_t>(mesh.shape().axes));
    names.front() = "between machines";
    names.back() =
        ranks_on_a_machine(job.world) == mesh.size(mesh.tensor()) ? "within a machine" : "between all ranks";
    return {std::move(mesh), names};
  }
  std::optional<Mesh> mesh;
  together(job.world, [&] {
    if (given->domain.empty()) given->domain = {1};
    mesh.emplace(job.world, given->data, given->domain, given->tensor);
  });
  std::vector<std::string> names;
  for (int axis = 0; axis < mesh->shape().axes; ++axis) names.push_back("along " + mesh->axis_name(axis));
  return {std::move(*mesh), names};
}

ExitCode check_gpus(Job& job, const GpuCheckArguments& options) {
  Communicator& world = job.world;
  tell_libraries(job.log);
  tell_ranks(job);
  auto [mesh, names] = axes_of(job, options);
  const Rank rank{world.context(), mesh};
  // A GPU that does not answer holds up a rank alone, too.
  if (!job.watch && job.configuration.watchdog_seconds > 0)
    job.watch = std::make_unique<JobWatch>(job.world, job.configuration.watchdog_seconds);
  for (const DType type : {DType::kFloat32, DType::kBfloat16})
    require_right(world, wrong_product(rank, type));
  require_right(world, wrong_sum(rank));
  beat();
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.shape().axes; ++axis) {
    if (mesh.size(axis) > 1) axes.push_back(axis);
  }
  require_right(world, wrong_collective(world));
  for (const int axis : axes) require_right(world, wrong_collective(mesh.communicator(axis_bit(axis))));
  beat();
  const Machine measured = measure_machine(rank);
  constexpr std::int64_t kSide = 512;
  const double bf16 = products_per_second(rank, DType::kBfloat16, kSide);
  job.log.info(concat("products: ", rate_text(measured.flops_per_second, "FLOP/s"), " in float32, ",
                      rate_text(bf16, "FLOP/s"),
                      " in bfloat16; memory: ", rate_text(measured.memory_bytes_per_second, "B/s")));
  beat();
  const CopyRates copies = copy_rates(rank);
  require_right(world, copies.wrong);
  job.log.info(concat("copies: ", rate_text(copies.up, "B/s"), " to the GPU, ", rate_text(copies.down, "B/s"),
                      " from it"));
  beat();
  MachineModel assumed = job.configuration.machine
                             ? machine_model(*job.configuration.machine, jigsaw::Device::kCuda)
                             : machine_of_gpus_here();
  assumed.ranks_per_node = ranks_per_node(world);
  const Machine plan = assumed.on(mesh.shape(), job.configuration.train);
  constexpr double kSeconds = 10;  // of all axes
  constexpr double kRoomForArrays = 16;
  const double room = static_cast<double>(free_device_bytes()) / kRoomForArrays;
  const auto most = static_cast<std::int64_t>(world.all_reduce(std::array{room}, ReduceOp::kMin)[0]);
  for (const int axis : axes) {
    const auto a = static_cast<std::size_t>(axis);
    tell_links(job.log, names[a], mesh.size(axis), measured.links[a], plan.links[a], assumed.name,
               collective_rates(rank, axis, most, kSeconds / static_cast<double>(axes.size())));
    beat();
  }
  job.log.info("the numbers of all products, copies and collectives are right");
  return ExitCode::kDone;
}

ExitCode run_gpu_check(const GpuCheckArguments& options) {
  if (!cuda_machine().built) {
    throw ConfigError(
        "gpu-check looks at GPUs, and this build has no CUDA kernels; build with -DJIGSAW_CUDA=ON "
        "(docs/building.md)");
  }
  const auto work = [&](Job& job) { return check_gpus(job, options); };
  if (options.configuration.config.empty()) {
    Configuration configuration;
    configuration.device = DeviceChoice::kCuda;
    constexpr double kPatience = 120;  // of what takes seconds
    configuration.watchdog_seconds = kPatience;
    return run_job(configuration, work);
  }
  ConfigArguments on_gpus = options.configuration;
  on_gpus.overrides.push_back("device=cuda");
  return run_job(on_gpus, work);
}

}  // namespace

std::function<ExitCode()> declare_gpu_check(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<GpuCheckArguments>();
  add_configuration(command, options->configuration);
  command
      .add_option("--mesh", options->mesh,
                  "Whose axes are tried, as in a configuration: {\"domain\":[2,1]}; default: the "
                  "configuration's, or between machines and within one")
      .not_empty();
  return [options] {
    if (options->configuration.config.empty() && !options->configuration.overrides.empty())
      throw ConfigError("command line: --set changes a configuration; give it with --config FILE");
    return run_gpu_check(*options);
  };
}

}  // namespace jigsaw
