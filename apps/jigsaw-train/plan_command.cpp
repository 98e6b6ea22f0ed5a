#include <cmath>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "config/config.h"
#include "estimate/calibration.h"
#include "estimate/explanation.h"
#include "estimate/mesh_choice.h"
#include "estimate/report.h"
#include "files/glob.h"
#include "printed.h"

namespace jigsaw {

namespace {

struct PlanArguments {
  ConfigArguments configuration;
  int ranks = 0;  ///< 0: those of the configuration's mesh
  std::string memory;
  std::string machine;
  int ranks_per_node = 0;  ///< 0: the machine's, as network
  double network = 0;      ///< GB/s of each rank between nodes
  std::string calibrate;   ///< a file for what the started ranks are measured to do; empty: they are not
  bool json = false;
  bool explain = false;
};

/// "80GB", "64GiB", "1e9". @throws ConfigError
std::int64_t bytes_of(const std::string& text) {
  static const std::vector<std::pair<std::string, double>> kUnits = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit(end);
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  for (const auto& [name, factor] : kUnits) {
    const double bytes = number * factor;
    if (unit == name && end != text.c_str() && bytes >= 1 && bytes < 1e18)
      return static_cast<std::int64_t>(bytes);
  }
  throw ConfigError(
      concat("--memory must be a number of bytes above 0 such as 80GB or 64GiB, not ", quote(text)));
}

/// As asked for; else as the configuration gives it; else the machine by which plans are made.
MachineModel named_machine(const PlanArguments& options, const Configuration& configuration) {
  if (!options.machine.empty()) return machine_model(options.machine);
  const Device device = configuration.device == DeviceChoice::kCuda ? Device::kCuda : Device::kCpu;
  return configuration.machine ? machine_model(*configuration.machine, device)
                               : machine_model(default_machine(device));
}
/// The same in the nodes and with the network that were asked for.
MachineModel machine_of(const PlanArguments& options, const Configuration& configuration) {
  MachineModel machine = named_machine(options, configuration);
  if (options.ranks_per_node > 0) {
    machine.ranks_per_node = options.ranks_per_node;
    machine.name += concat(", nodes of ", counted(options.ranks_per_node, "rank"));
  }
  if (options.network > 0) {
    // Of links by axis, or one for all, the fastest is that within a node.
    if (!machine.node_link)
      machine.node_link = std::ranges::max(machine.links, {}, &MachineOptions::Link::bytes_per_second);
    machine.links = {{1e9 * options.network, machine.links.front().latency_seconds}};
    machine.name += concat(", ", options.network, " GB/s between nodes");
  }
  return machine;
}

int ranks_of(const PlanArguments& options, const Configuration& configuration) {
  if (options.ranks > 0) return options.ranks;
  if (!configuration.mesh) throw ConfigError("command line: --ranks N is needed, for mesh is \"auto\"");
  int ranks = configuration.mesh->data * configuration.mesh->tensor;
  for (const int size : configuration.mesh->domain) ranks *= size;
  return ranks;
}

/// What would fit, when nothing does.
[[noreturn]] void refuse_memory(const MeshQuestion& question, const PlannedMesh& least) {
  const int ranks = smallest_ranks(question);
  throw ConfigError(concat("--memory: nothing fits into ", human_bytes(question.memory_bytes), " a rank on ",
                           counted(question.ranks, "rank"), "; the least found is ",
                           human_bytes(least.worst.memory_bytes), ", on data ", least.mesh.data, ", domain [",
                           join(least.mesh.domain, ", "), "], tensor ", least.mesh.tensor, "; ",
                           ranks > 0 ? concat(ranks, " ranks would fit")
                                     : std::string("no number of ranks up to 65536 would fit")));
}

PlanReport report_of(const PlanArguments& options, const MeshQuestion& question) {
  PlanReport report;
  report.answer = find_meshes(question);
  if (report.answer.best.empty()) throw ConfigError(report.answer.refused);
  const std::vector<PlannedMesh>& best = report.answer.best;
  if (!options.memory.empty()) {
    if (!best.front().fits) refuse_memory(question, best.front());
    report.smallest = smallest_ranks(question);
  }
  try {
    Configuration configuration = question.configuration;
    if (!configuration.mesh && question.ranks > 1) {
      if (const std::optional<ChosenMesh> chosen = chosen_mesh(question)) configuration.mesh = chosen->mesh;
    }
    MeshQuestion own{configuration, question.data, question.machine, question.ranks};
    own.memory_bytes = question.memory_bytes;
    own.threads = question.threads;
    report.configured = configured_mesh(own, &report.ranks);
  } catch (const ConfigError&) {
    // Its own mesh cannot be; those that can be are told.
  }
  for (std::size_t i = 0; options.explain && i + 1 < std::min<std::size_t>(best.size(), 4); ++i)
    report.explanations.push_back(explain(question, best[i], best[i + 1]));
  return report;
}

/// As rank 0 sees them; none where they are not there.
std::vector<std::string> files_of(const Job& job) {
  std::string names;
  if (job.world.rank() == 0) {
    try {
      names = join(expand_patterns(job.configuration.data.files, job.folder), "\n");
    } catch (const DataError&) {
      // Plans need no data; reading is then not measured.
    }
  }
  names = job.world.broadcast_text(names);
  return names.empty() ? std::vector<std::string>() : split(names, '\n');
}

/// Prints what a training step takes on the meshes of so many ranks, the fastest first.
/// @throws ConfigError  also when no mesh has so many ranks or fits the memory; it says what would.
ExitCode run_plan(const PlanArguments& options) {
  const Configuration configuration = load_configuration(options.configuration);
  const MachineModel machine = machine_of(options, configuration);
  const DataDescription data = describe_data(
      configuration.data, std::filesystem::absolute(options.configuration.config).parent_path());
  MeshQuestion question{configuration, data, machine, ranks_of(options, configuration)};
  question.memory_bytes =
      options.memory.empty() ? machine.usable_memory(question.ranks) : bytes_of(options.memory);
  question.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const PlanReport report = report_of(options, question);
  if (options.json) {
    std::cout << to_json(question, report).dump(2) << "\n";
  } else {
    std::cout << to_text(question, report);
  }
  require_printed();
  return ExitCode::kDone;
}

/// Measures the started ranks, keeps that in `calibrate`, and plans with it. Errors end as those of training.
ExitCode run_calibration(const PlanArguments& options) {
  return run_job(options.configuration, [&](Job& job) {
    PlanArguments planned = options;
    planned.machine = options.calibrate;
    if (planned.ranks == 0 && !job.configuration.mesh) planned.ranks = job.world.size();
    const MachineModel model = calibrate_to(options.calibrate, job.world, files_of(job));
    together(job.world, [&] {
      if (job.world.rank() != 0) return;
      if (!options.json) {
        job.log.info(concat(model.name, ", kept in ", options.calibrate, ": ", 1e-9 * model.flops_per_second,
                            " GFLOP/s, ", 1e-9 * model.memory_bytes_per_second, " GB/s of memory, ",
                            1e-9 * model.links.front().bytes_per_second, " GB/s and ",
                            1e6 * model.links.front().latency_seconds, " µs to another rank, ",
                            1e-6 * model.read_bytes_per_second, " MB/s of files"));
      }
      run_plan(planned);
    });
    return ExitCode::kDone;
  });
}

}  // namespace

std::function<ExitCode()> declare_plan(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<PlanArguments>();
  add_configuration(command, options->configuration).required();
  command.add_option("--ranks", options->ranks, "How many; default: those of the configuration's mesh")
      .within(1, 1 << 17);
  command.add_option("--memory", options->memory,
                     "What a rank's arrays may take, such as 60GB; default: nine tenths of the machine's");
  command.add_option(
      "--machine", options->machine,
      concat(join(machine_presets(), ", "), ", or a file: of constants, or a run's machine.json"));
  command.add_option("--ranks-per-node", options->ranks_per_node, "How many; default: the machine's")
      .within(1, 1 << 10);
  command
      .add_option("--network", options->network,
                  "GB/s that each rank sends to other nodes while all do, such as 25; default: the machine's")
      .within(1e-3, 1e5);
  command
      .add_option("--calibrate", options->calibrate,
                  "Measure the started ranks first, keep that in this file, and plan with it")
      .not_empty();
  command.add_flag("--json", options->json, "Print all of it as JSON");
  command.add_flag("--explain", options->explain, "Print why a mesh is faster than the next, block by block");
  return [options] {
    if (!options->calibrate.empty()) return run_calibration(*options);
    return launched_rank() == 0 ? run_plan(*options) : ExitCode::kDone;
  };
}

}  // namespace jigsaw
