#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "commands.h"
#include "estimate/calibration.h"
#include "job.h"
#include "kernels/contraction.h"
#include "kernels/cuda_context.h"
#include "kernels/pointwise.h"
#include "nccl/nccl_communicator.h"
#include "parallel/machine.h"
#include "train/device.h"
#include "train/memory_need.h"
#include "version.h"

namespace jigsaw {

namespace {

constexpr std::int64_t kCopied = std::int64_t{1} << 22;  ///< float32 numbers, 16 MiB

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

void require_numbers(const Rank& rank, const std::string& what, const Array& array, double wanted) {
  for (const double value : download_values(rank.context, array)) {
    if (value == wanted) continue;
    fail(concat(what, " on rank ", rank.mesh.world().rank(), " gives ", value, " in place of ", wanted));
  }
}

/// A product whose numbers are known.
void check_products(const Rank& rank, DType type) {
  constexpr std::int64_t kRows = 96, kSummed = 64, kColumns = 80;
  const Array a = filled(rank.context, {kRows, kSummed}, type, 2.0, Purpose::kWorkspace),
              b = filled(rank.context, {kColumns, kSummed}, type, 0.5, Purpose::kWorkspace);
  const Array c = contract(rank.context, ContractionSpec::parse("mk,nk->mn"), a, b, DType::kFloat32);
  require_numbers(rank, concat("a product in ", name(type)), c, static_cast<double>(kSummed));
}

/// Between the memories of host and device.
struct CopyRates {
  double up = 0, down = 0;
};
CopyRates check_copies(const Rank& rank) {
  constexpr int kTries = 4;
  constexpr double kBytes = 4.0 * kCopied;
  std::vector<double> numbers(kCopied);
  std::iota(numbers.begin(), numbers.end(), 0.0);  // float32 has all of them
  Array host = constant(rank.context.host(), {kCopied}, DType::kFloat32, numbers);
  Array device = filled(rank.context, {kCopied}, DType::kFloat32, 0.0, Purpose::kWorkspace);
  CopyRates rates;
  rates.up = kBytes / seconds_of(rank, kTries, [&] { upload_into(rank.context, host, device); });
  rates.down = kBytes / seconds_of(rank, kTries, [&] { download_into(rank.context, device, host); });
  const std::vector<double> back = download_values(rank.context, device);
  for (std::size_t i = 0; i < back.size(); ++i) {
    if (back[i] != numbers[i])
      fail(concat("a copy to the GPU of rank ", rank.mesh.world().rank(), " and back changes number ", i));
  }
  return rates;
}

/// Sums over the ranks of a group.
double check_sums(const Rank& rank, Communicator& group) {
  constexpr int kTries = 4;
  const double own = group.rank() + 1, wanted = 0.5 * group.size() * (group.size() + 1);
  const Array send = filled(rank.context, {kCopied}, DType::kFloat32, own, Purpose::kWorkspace);
  require_numbers(rank, concat("a sum over ", group.size(), " ranks"), group.all_reduce(send), wanted);
  return 4.0 * kCopied / seconds_of(rank, kTries, [&] { group.all_reduce(send); });
}

void print_ranks(Job& job) {
  const std::vector<std::string> all = job.world.gather_text(concat(job.device.place, "  ", job.device.kind));
  for (std::size_t rank = 0; rank < all.size(); ++rank) job.log.info(concat("rank ", rank, "  ", all[rank]));
}

ExitCode check_gpus(Job& job) {
  Communicator& world = job.world;
  for (const auto& [name, version] : versions()) job.log.info(concat(name, " ", version));
  if (!cudnn_library().built) job.log.info("no cuDNN in this build: convolutions go by kernels of its own");
  if (!nccl_library().built)
    job.log.info("no NCCL in this build: messages between GPUs go through MPI and the host");
  print_ranks(job);
  Mesh mesh = mesh_of_machines(world);
  const Rank rank{world.context(), mesh};
  for (const DType type : {DType::kFloat32, DType::kBfloat16}) check_products(rank, type);
  const Machine measured = measure_machine(rank);
  constexpr std::int64_t kSide = 512;
  const double bf16 = products_per_second(rank, DType::kBfloat16, kSide);
  job.log.info(concat("products: ", rate_text(measured.flops_per_second, "FLOP/s"), " in float32, ",
                      rate_text(bf16, "FLOP/s"),
                      " in bfloat16; memory: ", rate_text(measured.memory_bytes_per_second, "B/s")));
  const CopyRates copies = check_copies(rank);
  job.log.info(concat("copies: ", rate_text(copies.up, "B/s"), " to the GPU, ", rate_text(copies.down, "B/s"),
                      " from it"));
  for (const auto& [axis, between] :
       {std::pair{mesh.tensor(), ranks_on_a_machine(world) == mesh.size(mesh.tensor()) ? "within a machine"
                                                                                       : "between all ranks"},
        std::pair{Mesh::kData, "between machines"}}) {
    if (mesh.size(axis) == 1) continue;
    const Link& link = measured.links[static_cast<std::size_t>(axis)];
    const double sums = check_sums(rank, mesh.communicator(axis_bit(axis)));
    job.log.info(concat(between, ", ", mesh.size(axis), " ranks: each sends ",
                        rate_text(link.bytes_per_second, "B/s"), " after ",
                        std::round(1e7 * link.latency_seconds) / 10, " µs, sums of 16 MiB ",
                        rate_text(sums, "B/s")));
  }
  job.log.info("the numbers of all products, copies and sums are right");
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> declare_gpu_check(const CommandOptions& /*command*/,
                                            const Invocation& /*invocation*/) {
  return [] {
    Configuration configuration;
    configuration.device = DeviceChoice::kCuda;
    return run_job(configuration, check_gpus);
  };
}

}  // namespace jigsaw
