// How much of a step's transfers hides behind its products: mixer blocks on ranks that are threads, with a
// simulated network of several speeds. Prints one JSON line per mesh and speed: seconds of a step without
// transfers, seconds of the transfers alone, and of a step with both, as a ratio to the larger of the two.
//
//   overlap [--attempts N] [--limit RATIO]   with a limit: exit code 1 when no attempt stays within it
#include <algorithm>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "benchmark_model.h"
#include "comm/thread/run_ranks.h"
#include "kernels/flush_to_zero.h"
#include "layers/weathermixer.h"

namespace {

using namespace jigsaw;

struct MeshSizes {
  std::vector<int> domain;
  int tensor;
};

struct Network {
  double bytes_per_second = 0;  ///< 0: transfers take no time
  double latency_seconds = 0;
};

struct Measured {
  double seconds = 0;     ///< median step
  double sent_bytes = 0;  ///< of a step, by the busiest rank
  double calls = 0;
};

Measured run_rank(Communicator& world, const MeshSizes& sizes, const CostModel& cost) {
  constexpr int kWarmUp = 2, kSteps = 5;
  Mesh mesh(world, 1, sizes.domain, sizes.tensor);
  const Rank rank{world.context(), mesh};
  set_flush_to_zero(1);
  const WeatherMixerOptions mixer{.patch = {4, 4},
                                  .embed_dim = 384,
                                  .depth = 4,
                                  .token_hidden_ratio = 0.5,
                                  .channel_hidden_ratio = 4.0,
                                  .positions = true,
                                  .output_map = false};
  const auto append = [&](Model& into) { append_weathermixer(into, mixer); };
  BenchmarkModel model(rank, {{96, 128}, 16, 16}, append, false, cost);
  std::vector<double> times;
  double bytes = 0, calls = 0;
  for (int step = 0; step < kWarmUp + kSteps; ++step) {
    world.barrier();
    const Traffic before = world.traffic();
    times.push_back(model.step());
    bytes = world.traffic().total_bytes() - before.total_bytes();
    calls = 0;
    for (int kind = 0; kind < kCollectives; ++kind) {
      const auto k = static_cast<std::size_t>(kind);
      calls += static_cast<double>(world.traffic().calls[k] - before.calls[k]);
    }
  }
  std::sort(times.begin() + kWarmUp, times.end());
  const double median = times[kWarmUp + kSteps / 2];
  const std::vector<double> largest = world.all_reduce(std::array{median, bytes, calls}, ReduceOp::kMax);
  return {largest[0], largest[1], largest[2]};
}

Measured measure(const MeshSizes& sizes, const Network& network, const CostModel& cost) {
  int ranks = sizes.tensor;
  for (const int extent : sizes.domain) ranks *= extent;
  ThreadOptions options;
  options.latency_seconds = network.latency_seconds;
  options.bytes_per_second = network.bytes_per_second;
  Measured measured;
  run_ranks(
      ranks, options, [](int) { return Context::make_host(Backend::kCpu, 1); },
      [&](Communicator& world) {
        const Measured mine = run_rank(world, sizes, cost);
        if (world.rank() == 0) measured = mine;
      });
  return measured;
}

double ratio_on(const std::string& name, const MeshSizes& sizes, double share) {
  CostModel cost{.flops_per_second = 6e10, .network_bytes_per_second = 2e9, .latency_seconds = 5e-5};
  const Measured alone = measure(sizes, {}, cost);
  Network network{alone.sent_bytes / (share * alone.seconds), 5e-5};
  cost.network_bytes_per_second = network.bytes_per_second;
  const Measured compute = measure(sizes, {}, cost), both = measure(sizes, network, cost);
  const double transfer = both.sent_bytes / network.bytes_per_second + both.calls * network.latency_seconds;
  const double ratio = both.seconds / std::max(compute.seconds, transfer);
  std::cout << nlohmann::ordered_json{{"benchmark", "overlap"},
                                      {"mesh", name},
                                      {"compute_seconds", compute.seconds},
                                      {"transfer_seconds", transfer},
                                      {"sent_bytes", both.sent_bytes},
                                      {"calls", both.calls},
                                      {"step_seconds", both.seconds},
                                      {"ratio", ratio}}
                   .dump()
            << std::endl;
  return ratio;
}

}  // namespace

int main(int argc, char** argv) {
  int attempts = 1;
  double limit = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--attempts") == 0) attempts = std::stoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--limit") == 0) limit = std::stod(argv[i + 1]);
  }
  bool all = true;
  const std::vector<std::pair<std::string, MeshSizes>> meshes = {{"domain [2,1]", {{2, 1}, 1}},
                                                                 {"tensor 2", {{1, 1}, 2}}};
  for (const auto& [name, sizes] : meshes) {
    for (const double share : {0.25, 0.5}) {
      bool within = false;
      for (int attempt = 0; attempt < attempts && !within; ++attempt)
        within = ratio_on(name, sizes, share) <= limit;
      all = all && within;
    }
  }
  return limit > 0 && !all ? 1 : 0;
}
