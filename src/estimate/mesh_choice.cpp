#include "estimate/mesh_choice.h"

#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/config.h"
#include "estimate/gpus.h"
#include "task/memory_need.h"

namespace jigsaw::inline estimate {

namespace {

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1 ? "%.3g ms" : "%.3g s", seconds < 1 ? 1e3 * seconds : seconds);
  return text;
}

std::string reason_of(const MeshQuestion& question, const MeshAnswer& answer) {
  const PlannedMesh& best = answer.best.front();
  const std::int64_t all = answer.planned + std::ssize(answer.others);
  const std::string memory =
      concat(human_bytes(best.worst.memory_bytes),
             question.memory_bytes > 0 ? concat(" of ", human_bytes(question.memory_bytes)) : "", " a rank");
  if (!best.fits) {
    return concat("of ", all, " meshes none that was planned fits; ", to_string(best.mesh), " takes least, ",
                  memory);
  }
  std::string reason = concat(
      to_string(best.mesh), " is the fastest of ", all, ", with ", seconds_text(best.worst.seconds),
      " a step by the constants of ", question.machine.name, " (", seconds_text(best.worst.compute_seconds),
      " computing, ", seconds_text(best.worst.stalled_seconds), " waiting for transfers) and ", memory);
  if (answer.best.size() > 1) {
    const PlannedMesh& next = answer.best[1];
    reason += next.fits
                  ? concat("; the next, ", to_string(next.mesh), ", takes ", seconds_text(next.worst.seconds))
                  : concat("; the next, ", to_string(next.mesh), ", does not fit");
  }
  return reason;
}

/// As rank 0 sees it; an empty text when nothing is chosen.
/// @param memory  of a rank, in bytes.
/// @param costs   by which the run plans.
std::string look(const Configuration& configuration, const std::filesystem::path& folder, int ranks,
                 double memory, const Context& context, const CostModel& costs) {
  const Device device = context.device();
  MachineModel machine = configuration.machine     ? machine_model(*configuration.machine, device)
                         : device == Device::kCuda ? machine_of_gpus_here()
                                                   : machine_model(default_machine(device));
  if (configuration.machine) machine.name = "the key machine";
  try {
    const DataDescription data = describe_data(configuration.data, folder);
    if (device == Device::kCuda) machine.ranks_per_node = costs.ranks_per_node;
    MeshQuestion question{configuration, data, machine, ranks};
    question.memory_bytes = static_cast<std::int64_t>(kUsableMemory * memory);
    question.threads = context.threads();
    // A batch whose input alone no mesh holds: the run says so itself, by the keys that made it so large.
    const TrainOptions& train = configuration.train;
    const double batch = static_cast<double>(train.batch_size) / static_cast<double>(train.accumulate) *
                         static_cast<double>(data.space.count()) *
                         static_cast<double>(data.channels.inputs.size()) * sizeof(float);
    if (batch > static_cast<double>(question.memory_bytes) * ranks) return "";
    const std::optional<ChosenMesh> chosen = chosen_mesh(question);
    if (!chosen) return "";
    return Json{{"mesh", to_json(chosen->mesh)}, {"reason", chosen->reason}}.dump();
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::optional<ChosenMesh> chosen_mesh(MeshQuestion question) {
  question.as_configured = true;
  question.kept = 2;
  MeshAnswer answer;
  try {
    answer = find_meshes(question);
  } catch (const ConfigError&) {
    return std::nullopt;  // pieces are then empty on some ranks
  }
  if (answer.best.empty()) return std::nullopt;
  return ChosenMesh{answer.best.front().mesh, reason_of(question, answer)};
}

std::string choose_mesh(Configuration& configuration, const std::filesystem::path& folder,
                        Communicator& world, int ranks) {
  if (configuration.mesh || ranks == 1) return "";
  const MemoryRoom room = memory_room(world);
  const int sharing = room.of_device || ranks == world.size() ? room.ranks : ranks;
  const double memory = static_cast<double>(room.bytes) / sharing - static_cast<double>(room.of_nccl);
  const CostModel costs = plan_costs(world, ranks, configuration.train);
  std::string found;
  together(world, [&] {
    if (world.rank() == 0) found = look(configuration, folder, ranks, memory, world.context(), costs);
  });
  found = world.broadcast_text(found);
  if (found.empty()) return "";
  const Json json = Json::parse(found);
  configuration.mesh = parse<MeshOptions>(json.at("mesh"));
  return json.at("reason");
}

}  // namespace jigsaw::inline estimate
