// What the model of `plan` says of configurations on 1 to many ranks: the fastest mesh that fits, its step,
// and its efficiency beside the fewest ranks that fit. Strong: the configuration's batch; weak: so many
// samples a rank. Reading is not counted: a column says how fast each rank must read for it to stay hidden.
// Prints a table.
//
//   scaling MACHINE SAMPLES_A_RANK CONFIG…
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "estimate/mesh_search.h"

namespace {

using namespace jigsaw;

struct Row {
  std::string mesh;
  double samples_per_second = 0, seconds = 0, computing = 0, gigabytes = 0, reading = 0;
};

std::optional<Row> fastest(Configuration configuration, const MachineModel& machine, int ranks,
                           std::int64_t batch) {
  configuration.train.batch_size = batch;
  const DataDescription data = describe_data(configuration.data, "");
  MeshQuestion question{configuration, data, machine, ranks};
  question.memory_bytes = machine.usable_memory(question.ranks);
  question.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  question.kept = 1;
  MeshAnswer answer;
  try {
    answer = find_meshes(question);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  if (answer.best.empty() || !answer.best.front().fits) return std::nullopt;
  const PlannedMesh& best = answer.best.front();
  std::string mesh = to_string(best.mesh);
  if (best.zero != Zero::kNone)
    mesh += best.zero == Zero::kOptimizer ? ", zero optimizer" : ", zero parameters";
  if (best.recompute != Recompute::kNone) mesh += ", recompute";
  if (best.accumulate > 1) mesh += concat(", accumulate ", best.accumulate);
  return Row{mesh,
             static_cast<double>(batch) / best.worst.seconds,
             best.worst.seconds,
             best.worst.compute_seconds / best.worst.seconds,
             1e-9 * static_cast<double>(best.worst.memory_bytes),
             1e-9 * best.worst.file_bytes / best.worst.seconds};
}

void print(const std::string& config, const MachineModel& machine, std::int64_t samples_a_rank) {
  const auto configuration = parse<Configuration>(load_config(config));
  const std::string model = std::filesystem::path(config).stem();
  for (const bool strong : {true, false}) {
    double first = 0;  // samples per second and rank
    for (const int ranks : {1, 4, 16, 64, 256, 1024}) {
      const auto begin = std::chrono::steady_clock::now();
      const std::int64_t batch = strong ? configuration.train.batch_size : samples_a_rank * ranks;
      const std::optional<Row> row = fastest(configuration, machine, ranks, batch);
      const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (!row) {
        std::cout << "| " << model << " | " << (strong ? "strong" : "weak") << " | " << ranks << " | "
                  << batch << " | nothing fits | | | | | | |" << std::endl;
        continue;
      }
      if (first == 0) first = row->samples_per_second / ranks;
      char text[400];
      std::snprintf(text, sizeof text,
                    "| %s | %s | %d | %lld | %s | %.3g | %.0f %% | %.3g | %.1f | %.2f | %.0f %% | <!-- "
                    "answered in %.1f s -->",
                    model.c_str(), strong ? "strong" : "weak", ranks, static_cast<long long>(batch),
                    row->mesh.c_str(), row->seconds, 100 * row->computing, row->samples_per_second,
                    row->gigabytes, row->reading, 100 * row->samples_per_second / ranks / first, took);
      std::cout << text << std::endl;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "scaling MACHINE SAMPLES_A_RANK CONFIG…\n";
    return 2;
  }
  try {
    MachineModel machine = machine_model(argv[1]);
    machine.read_bytes_per_second = 0;
    std::cout
        << "| model | scaling | ranks | batch | mesh | s a step | computing | samples/s | GB a rank | GB/s "
           "read by a rank | efficiency |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (int i = 3; i < argc; ++i) print(argv[i], machine, std::stoll(argv[2]));
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.code());
  }
  return 0;
}
