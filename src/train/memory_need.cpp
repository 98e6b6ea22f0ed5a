#include "train/memory_need.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/host.h"
#include "base/memory.h"
#include "base/text.h"
#include "kernels/cuda_context.h"
#include "optim/registry.h"

namespace jigsaw::inline train {
namespace {

double product_of(const Shape& shape) {
  double product = 1;
  for (const std::int64_t extent : shape) product *= static_cast<double>(extent);
  return product;
}

/// The keys of a model that decide its size.
std::string size_keys(const std::string& type) {
  if (type == "unet") return "model.base_width, model.levels and model.widths";
  if (type == "sequential") return "model.layers";
  return "model.embed_dim and model.depth";
}

std::string bytes_text(double bytes) {
  constexpr double kMost = 9e18;
  return bytes < kMost ? human_bytes(static_cast<std::int64_t>(bytes)) : "more than 8000 PiB";
}

}  // namespace

MemoryNeed least_memory(const Model& model, const Mesh& mesh, const Configuration& configuration,
                        PrecisionTypes types, std::int64_t samples) {
  double cut = mesh.size(mesh.tensor());
  for (int axis = 0; axis < mesh.domain_axes(); ++axis) cut *= mesh.size(mesh.domain(axis));
  const double data = mesh.size(Mesh::kData);
  double elements = 0;
  for (const ParameterBlock* block : model.parameters()) {
    for (const auto& parameter : block->parameters()) elements += product_of(parameter->shape());
  }
  const double held = elements / cut / (configuration.zero == Zero::kParameters ? data : 1);
  const double owned = elements / cut / (configuration.zero == Zero::kNone ? 1 : data);
  const auto states = static_cast<double>(make_rule(configuration.optimizer)->state_names().size());
  MemoryNeed need;
  need.state = (2 * held + states * owned) * static_cast<double>(size_of(types.master));
  double numbers = 0;
  for (const FieldShape& value : model.values())
    numbers += product_of(value.space) * static_cast<double>(value.channels);
  need.activations =
      numbers * static_cast<double>(samples) / (data * cut) * static_cast<double>(size_of(types.compute));
  return need;
}

MemoryRoom memory_room(Communicator& world) {
  const Device device = world.context().device();
  if (device == Device::kCpu) return {memory_limit(), ranks_on_a_machine(world), false};
  const int devices = world.context().backend() == Backend::kCuda ? cuda_device_count() : 0;
  const std::int64_t bytes = devices > 0 ? cuda_device(0).bytes : 0;
  if (bytes == 0) return {};
  return {bytes, 1, true};
}

void check_memory(const MemoryNeed& need, const Configuration& configuration, const MemoryRoom& room) {
  const double share = static_cast<double>(room.bytes) / room.ranks;
  if (need.state + need.activations <= share) return;
  const std::string what =
      concat("a rank needs at least ", bytes_text(need.state),
             " for parameters, gradients and optimizer and ", bytes_text(need.activations),
             " for activations, and ", room.ranks, room.ranks > 1 ? " ranks share " : " rank has ",
             human_bytes(room.bytes), room.of_device ? " on a GPU; " : " here; ");
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

int ranks_on_a_machine(Communicator& world) {
  std::map<std::string, int> ranks;
  int most = 1;
  for (const std::string& name : world.gather_text(host_name())) most = std::max(most, ++ranks[name]);
  return std::stoi(world.broadcast_text(std::to_string(most)));
}

}  // namespace jigsaw::inline train
