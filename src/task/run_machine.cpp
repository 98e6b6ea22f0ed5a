#include "task/run_machine.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trace.h"

namespace jigsaw::inline task {

void declare(Keys<MachineOptions::Link>& keys) {
  using L = MachineOptions::Link;
  keys.add("bytes_per_second", &L::bytes_per_second)
      .required()
      .above(0)
      .doc("Bytes per second that each rank sends along the axis while all do.");
  keys.add("latency_seconds", &L::latency_seconds)
      .required()
      .at_least(0)
      .doc("Seconds that a message of one element is on its way.");
}

void declare(Keys<MachineOptions>& keys) {
  using M = MachineOptions;
  keys.add("flops_per_second", &M::flops_per_second)
      .required()
      .above(0)
      .doc("Floating-point operations per second of a rank's products.");
  keys.add("memory_bytes_per_second", &M::memory_bytes_per_second)
      .required()
      .above(0)
      .doc("Bytes per second that a rank moves through memory.");
  keys.add("links", &M::links)
      .required()
      .not_empty()
      .doc(
          "What carries messages: one for all axes of the mesh, or one for each in the order data, domain "
          "along each of its axes, tensor.");
}

void require_links(const MachineOptions& options, int axes) {
  if (options.links.size() == 1 || std::ssize(options.links) == axes) return;
  throw ConfigError(concat("machine.links: there are ", options.links.size(),
                           "; there should be one for all axes of the mesh, or ", axes));
}

namespace {

Machine machine_of(const MachineOptions& options, int axes) {
  require_links(options, axes);
  Machine machine{options.flops_per_second, options.memory_bytes_per_second, {}};
  for (int axis = 0; axis < axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const MachineOptions::Link& link = options.links[options.links.size() == 1 ? 0 : a];
    machine.links[a] = {link.bytes_per_second, link.latency_seconds};
  }
  return machine;
}

/// Whom a measurement holds for.
Json fingerprint(const Rank& rank, DType products, int ranks_per_node) {
  Json sizes = Json::array();
  for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) sizes.push_back(rank.mesh.size(axis));
  Json print = {{"mesh", sizes}, {"threads", rank.context.threads()}};
  if (rank.context.device() != Device::kCpu) {
    print["device"] = "cuda";
    print["ranks_per_node"] = ranks_per_node;
  }
  if (products != DType::kFloat32) print["products"] = name(products);
  if (rank.context.tf32()) print["tf32"] = true;
  return print;
}

std::optional<Machine> read_machine(const Json& print, int axes, const std::string& path) {
  try {
    Json kept = Json::parse(read_text(path, std::int64_t{1} << 16));
    const auto options = parse<MachineOptions>(kept.at("machine"));
    kept.erase("machine");
    if (kept != print) return std::nullopt;
    return machine_of(options, axes);
  } catch (const std::exception&) {
    return std::nullopt;  // it is measured again
  }
}

void write_machine(const Json& print, int axes, const std::string& path, const Machine& machine) {
  MachineOptions options{machine.flops_per_second, machine.memory_bytes_per_second, {}};
  for (int axis = 0; axis < axes; ++axis) {
    // Axes of one rank were not measured; nothing travels along them.
    const Link& link = machine.links[static_cast<std::size_t>(axis)];
    options.links.push_back({std::max(link.bytes_per_second, 1.0), link.latency_seconds});
  }
  Json kept = print;
  kept["machine"] = to_json(options);
  try {
    write_text_atomically(path, kept.dump(2) + "\n");
  } catch (const FileError&) {
    // The next run measures again.
  }
}

/// What one rank read, on all: numbers that the others hold as zero.
std::optional<Machine> share(Communicator& world, const std::optional<Machine>& read) {
  std::vector<double> values(2 + 2 * kMaxAxes, 0.0);
  if (read) {
    values[0] = read->flops_per_second;
    values[1] = read->memory_bytes_per_second;
    for (std::size_t a = 0; a < kMaxAxes; ++a) {
      values[2 + 2 * a] = read->links[a].bytes_per_second;
      values[3 + 2 * a] = read->links[a].latency_seconds;
    }
  }
  values = world.all_reduce(values, ReduceOp::kMax);
  if (values[0] == 0) return std::nullopt;
  Machine machine{values[0], values[1], {}};
  for (std::size_t a = 0; a < kMaxAxes; ++a) machine.links[a] = {values[2 + 2 * a], values[3 + 2 * a]};
  return machine;
}

}  // namespace

Machine machine_of_run(const std::optional<MachineOptions>& given, const Rank& rank, DType products,
                       int ranks_per_node, const std::string& path) {
  const int axes = rank.mesh.shape().axes;
  if (given) return machine_of(*given, axes);
  const Json print = fingerprint(rank, products, ranks_per_node);
  Communicator& world = rank.mesh.world();
  const bool first = world.rank() == 0;
  if (const auto kept = share(world, first ? read_machine(print, axes, path) : std::nullopt)) return *kept;
  const TracePause untraced;
  const Traffic traffic = world.traffic();
  const Tally tally = rank.context.tally();
  const Machine machine = measure_machine(rank, products);
  // What a run counts begins behind it.
  world.traffic() = traffic;
  rank.context.tally() = tally;
  rank.context.arena().reset_peaks();
  if (first) write_machine(print, axes, path, machine);
  return machine;
}

}  // namespace jigsaw::inline task
