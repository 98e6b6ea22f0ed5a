#include "estimate/calibration.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_place.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/config.h"
#include "task/memory_need.h"

namespace jigsaw::inline estimate {

namespace {

using Clock = std::chrono::steady_clock;

/// Bytes per second of this rank's share of a file.
double read_rate(Communicator& world, const std::vector<std::string>& paths) {
  constexpr std::int64_t kMost = std::int64_t{256} << 20, kPiece = std::int64_t{8} << 20;
  double seconds = 0, bytes = 0;
  together(world, [&] {
    const File file(paths[static_cast<std::size_t>(world.rank()) % paths.size()], O_RDONLY);
    const std::int64_t share = std::min(kMost, std::max<std::int64_t>(file.size() / world.size(), 1));
    const std::int64_t first = std::min(world.rank() * share, std::max<std::int64_t>(0, file.size() - share));
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    std::vector<std::byte> buffer(static_cast<std::size_t>(kPiece));
    const auto begin = Clock::now();
    for (std::int64_t at = first; at < std::min(first + share, file.size()); at += kPiece) {
      const std::int64_t count = std::min({kPiece, first + share - at, file.size() - at});
      file.read(std::span(buffer).first(static_cast<std::size_t>(count)), at);
      bytes += static_cast<double>(count);
    }
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  });
  return world.all_reduce(std::array{bytes / std::max(seconds, 1e-9)}, ReduceOp::kMin)[0];
}

}  // namespace

Mesh mesh_of_machines(Communicator& world) {
  const int here = ranks_on_a_machine(world);
  const int machines = world.size() % here == 0 ? world.size() / here : 1;
  return Mesh(world, machines, {1, 1}, world.size() / machines);
}

MachineModel calibrate(Communicator& world, const std::vector<std::string>& files) {
  Mesh mesh = mesh_of_machines(world);
  const Rank rank{world.context(), mesh};
  const Machine measured = measure_machine(rank);
  MachineModel model;
  model.name = concat("measured on ", counted(world.size(), "rank"));
  if (world.context().device() == Device::kCuda) model.device = Device::kCuda;
  model.flops_per_second = measured.flops_per_second;
  model.memory_bytes_per_second = measured.memory_bytes_per_second;
  constexpr std::int64_t kSide = 512, kSideReference = 96;
  if (Context& context = world.context(); context.device() == Device::kCuda) {
    const bool as_configured = context.tf32();
    context.set_tf32(false);
    model.flops_per_second = products_per_second(rank, DType::kFloat32, kSide);
    context.set_tf32(true);
    model.flops_per_second_tf32 = products_per_second(rank, DType::kFloat32, kSide);
    context.set_tf32(as_configured);
  }
  model.flops_per_second_bf16 = products_per_second(rank, DType::kBfloat16, kSide);
  // Which runs on processors alone.
  if (world.context().device() == Device::kCpu)
    model.flops_per_second_fp64 = products_per_second(rank, DType::kFloat64, kSideReference);
  const MemoryRoom room = memory_room(world);
  model.memory_bytes = static_cast<double>(room.bytes) / room.ranks;
  model.ranks_per_node = ranks_on_a_machine(world);
  const auto link_of = [&](int axis) -> MachineOptions::Link {
    const Link& link = measured.links[static_cast<std::size_t>(axis)];
    return {link.bytes_per_second, link.latency_seconds};
  };
  // One rank sends to nobody, and leaves links as they are without a measurement.
  const MachineModel usual = machine_model(default_machine(model.device));
  const bool one = mesh.size(mesh.tensor()) == 1;
  model.node_link = one ? usual.node_link : link_of(mesh.tensor());
  if (mesh.size(Mesh::kData) > 1) {
    model.links = {link_of(Mesh::kData)};
  } else {
    model.links = one ? usual.links : std::vector{*model.node_link};
  }
  if (!files.empty()) model.read_bytes_per_second = read_rate(world, files);
  return model;
}

MachineModel calibrate_to(const std::string& path, Communicator& world,
                          const std::vector<std::string>& files) {
  together(world, [&] {
    if (world.rank() != 0) return;
    check_output_place("--calibrate", path, "holds no constants of a machine", [](const std::string& file) {
      parse<MachineModel>(load_config(file));
      return true;
    });
  });
  MachineModel model = calibrate(world, files);
  together(world, [&] {
    if (world.rank() != 0) return;
    try {
      write_text_atomically(path, to_json(model).dump(2) + "\n");
    } catch (const FileError& error) {
      refuse_output<ConfigError>(error, concat("--calibrate: ", error.what()));
    }
  });
  return model;
}

}  // namespace jigsaw::inline estimate
