#include "task/memory_need.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/host.h"
#include "base/memory.h"
#include "base/text.h"
#include "kernels/cuda_context.h"
#include "optim/registry.h"

namespace jigsaw::inline task {
namespace {

double product_of(const Shape& shape) {
  double product = 1;
  for (const std::int64_t extent : shape) product *= static_cast<double>(extent);
  return product;
}

double numbers_of(const FieldShape& field) {
  return product_of(field.space) * static_cast<double>(field.channels);
}

/// Numbers of a sample in a batch beside its input: what later leads go on from, and their targets.
double batch_numbers(const Model& model, const Configuration& configuration, int leads) {
  const ModelDescription& of = model.description();
  const std::int64_t targets =
      configuration.data.classes > 0 ? configuration.data.label_targets() : of.output_channels;
  return (leads > 1 ? numbers_of({of.space, of.input_channels - configuration.ensemble.noise_channels()})
                    : 0) +
         leads * numbers_of({of.space, targets});
}

/// The keys of a model that decide its size.
std::string size_keys(const std::string& type) {
  if (type == "unet") return "model.base_width, model.levels and model.widths";
  if (type == "sequential") return "model.layers";
  return "model.embed_dim and model.depth";
}

/// "2 ranks share 16 GiB here".
std::string room_text(const MemoryRoom& room) {
  return concat(room.ranks, room.ranks > 1 ? " ranks share " : " rank has ", human_bytes(room.bytes),
                room.of_device ? " on a GPU" : " here");
}

std::string bytes_text(double bytes) {
  constexpr double kMost = 9e18;
  return bytes < kMost ? human_bytes(static_cast<std::int64_t>(bytes)) : "more than 8000 PiB";
}

}  // namespace

MemoryNeed least_memory(const Model& model, const Mesh& mesh, const Configuration& configuration,
                        PrecisionTypes types, std::int64_t samples, bool trains) {
  double cut = mesh.size(mesh.tensor());
  for (int axis = 0; axis < mesh.domain_axes(); ++axis) cut *= mesh.size(mesh.domain(axis));
  const double data = mesh.size(Mesh::kData);
  double elements = 0;
  for (const ParameterBlock* block : model.parameters()) {
    for (const auto& parameter : block->parameters()) elements += product_of(parameter->shape());
  }
  const auto bytes = static_cast<double>(size_of(types.master));
  const double held = elements / cut / (configuration.zero == Zero::kParameters ? data : 1);
  const double share = static_cast<double>(samples) / (data * cut);
  const double forecasts = share * configuration.ensemble.members;
  double numbers = 0, largest = 0;
  for (const FieldShape& value : model.values()) {
    numbers += numbers_of(value);
    largest = std::max(largest, numbers_of(value));
  }
  MemoryNeed need;
  if (!trains) {
    need.state = held * bytes;
    need.activations = largest * forecasts * static_cast<double>(size_of(types.compute));
    return need;
  }
  const double owned = elements / cut / (configuration.zero == Zero::kNone ? 1 : data);
  const auto states = static_cast<double>(make_rule(configuration.optimizer)->state_names().size());
  need.state = (2 * held + states * owned) * bytes;
  const TrainOptions& train = configuration.train;
  const int leads = train.rollout.most();
  const int kept = train.rollout_gradient == RolloutGradient::kLast ? 1 : leads;
  need.activations = kept * numbers * forecasts * static_cast<double>(size_of(types.compute));
  need.activations += batch_numbers(model, configuration, leads) * share * bytes;
  return need;
}

namespace {

/// Of the machine on which a rank has least.
MemoryRoom least_room(Communicator& world) {
  struct Machine {
    std::int64_t bytes = 0;
    int ranks = 0;
    double share() const { return static_cast<double>(bytes) / ranks; }
  };
  std::map<std::string, Machine> machines;
  for (const std::string& rank : world.gather_text(concat(memory_limit(), " ", host_name()))) {
    const std::size_t end = rank.find(' ');
    const std::int64_t bytes = std::stoll(rank.substr(0, end));
    Machine& machine = machines[rank.substr(end + 1)];
    machine.bytes = machine.ranks == 0 ? bytes : std::min(machine.bytes, bytes);
    ++machine.ranks;
  }
  std::string text;  // of rank 0, to which all told theirs
  if (!machines.empty()) {
    const Machine least =
        std::ranges::min_element(machines, {}, [](const auto& one) { return one.second.share(); })->second;
    text = concat(least.bytes, " ", least.ranks);
  }
  text = world.broadcast_text(text);
  return {std::stoll(text), std::stoi(text.substr(text.find(' '))), false};
}

/// The most ranks that have the same to say.
int most_alike(Communicator& world, const std::string& mine) {
  std::map<std::string, int> ranks;
  int most = 1;
  for (const std::string& text : world.gather_text(mine)) most = std::max(most, ++ranks[text]);
  return std::stoi(world.broadcast_text(std::to_string(most)));
}

}  // namespace

MemoryRoom memory_room(Communicator& world) {
  const Device device = world.context().device();
  if (device == Device::kCpu) {
    return least_room(world);
  }
  if (world.context().backend() != Backend::kCuda || cuda_device_count() == 0) return {};
  const CudaDevice gpu = current_cuda_device();
  const std::int64_t bytes = gpu.bytes;
  const int here = ranks_on_a_machine(world), ranks = most_alike(world, gpu.uuid);
  return {bytes, ranks, true,
          nccl_library().built ? nccl_bytes(here - 1, here < world.size(), bytes / ranks) : 0};
}

/// Of each of the two communicators of a group (comm/nccl/): what 8 ranks on one machine were seen to take,
/// 3.28 GB for 7 peers (github.com/NVIDIA/nccl/issues/1685); and what its sources say of the network
/// (src/transport/net.cc and src/init.cc of NCCL 2.28): for messages to any number of ranks elsewhere two
/// pools, of 16 chunks of 128 KiB for each of up to 32 channels, one to send from and one to receive in, and
/// for its own gathers, on each channel of a ring that leaves or enters the machine at this rank (about four
/// each way, of 16 that eight ranks share, or of those that one rank's network card has), 4 MiB of the
/// protocol Simple and 640 · 120 · 8 · 8 bytes of LL128. Of the groups of a mesh two lie on several machines,
/// that of `data` and that of all ranks, more or less.
std::int64_t nccl_bytes(int near, bool far, std::int64_t share) {
  constexpr std::int64_t kCommunicators = 2, kPeer = 470'000'000, kFarGroups = 2,
                         kPools = std::int64_t{2} * 32 * 16 * (128 << 10),
                         kRings = std::int64_t{2} * 4 * ((4 << 20) + 640 * 120 * 8 * 8);
  const std::int64_t to_near = kPeer * near, to_far = far ? kFarGroups * (kPools + kRings) : 0;
  return std::min(kCommunicators * (to_near + to_far), share / 2);
}

void check_memory(const MemoryNeed& need, const Configuration& configuration, const MemoryRoom& room,
                  bool trains) {
  const double share = static_cast<double>(room.bytes) / room.ranks;
  if (need.state + need.activations <= share) return;
  if (!trains) {
    throw ConfigError(concat("a rank needs at least ", bytes_text(need.state), " for parameters and ",
                             bytes_text(need.activations), " for one forecast or image, and ",
                             room_text(room), "; ",
                             configuration.ensemble.members > 1 ? "fewer members (--members) or " : "",
                             "more ranks that cut the model (mesh.domain, mesh.tensor) might fit"));
  }
  const std::string what = concat(
      "a rank needs at least ", bytes_text(need.state), " for parameters, gradients and optimizer and ",
      bytes_text(need.activations), " for activations, and ", room_text(room), "; ");
  const std::string keys = size_keys(configuration.model.type());
  const double batch = static_cast<double>(configuration.train.batch_size);
  const double fits = std::floor(batch * (share - need.state) / need.activations);
  if (fits >= 1) {
    throw ConfigError(concat("train.batch_size ", configuration.train.batch_size, ": ", what,
                             "train.batch_size ", std::llround(fits),
                             " might fit, or this one in more parts (train.accumulate), or a smaller model (",
                             keys, ")"));
  }
  throw ConfigError(concat(keys, ": ", what, "a model that needs ",
                           std::llround(std::ceil(std::min((need.state + need.activations) / share, 1e15))),
                           " times less might fit, or more ranks that cut it (mesh, zero)"));
}

std::string memory_warning(double bytes, const Configuration& configuration, const MemoryRoom& room) {
  if (bytes <= room.share()) return "";
  const bool recomputes = configuration.train.recompute == Recompute::kBlock;
  return concat(
      "memory: as planned a rank holds up to ", bytes_text(bytes), " in a step, and ", room_text(room),
      room.of_nccl > 0 ? concat(", of which NCCL takes some ", human_bytes(room.of_nccl * room.ranks)) : "",
      "; a smaller train.batch_size, more parts of it (train.accumulate), ",
      recomputes ? "" : "train.recompute \"block\", ", "a smaller model (",
      size_keys(configuration.model.type()), ") or more ranks that cut it (mesh, zero) take less");
}

int ranks_on_a_machine(Communicator& world) {
  return most_alike(world, host_name());
}

int ranks_per_node(Communicator& world) {
  return std::stoi(world.broadcast_text(std::to_string(ranks_per_node(world.gather_text(host_name())))));
}

int ranks_per_node(const std::vector<std::string>& machines) {
  const auto each_on_one = [&](std::size_t count) {
    for (std::size_t rank = 0; rank < machines.size(); ++rank) {
      if (machines[rank] != machines[rank - rank % count]) return false;
    }
    return true;
  };
  const auto next = std::find_if(machines.begin(), machines.end(),
                                 [&](const std::string& name) { return name != machines.front(); });
  auto count = static_cast<std::size_t>(next - machines.begin());
  while (count > 1 && !each_on_one(count)) --count;
  return static_cast<int>(std::max<std::size_t>(count, 1));
}

}  // namespace jigsaw::inline task
