// One training step of the benchmark U-Net: 69 channels on 180 × 360 points, base width 32, 4 levels,
// GroupNorm(8), batch 1, float32 AdamW: prints one JSON line. benchmarks/unet.sh runs it beside PyTorch's
// (peer/torch_unet.py), so that the ratio is of one machine at one time.
//
//   unet_step [--steps N] [--threads T] [--recompute] [--ranks N]
//
// With several ranks they are threads of this process that cut the grid; their activations are printed.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "benchmark_model.h"
#include "comm/thread/run_ranks.h"
#include "kernels/flush_to_zero.h"
#include "layers/unet.h"
#include "train/summary.h"

namespace {

using namespace jigsaw;

struct Options {
  int steps = 5, threads = 2, ranks = 1;
  bool recompute = false;
};

struct Result {
  double seconds = 0, flops = 0;
  std::int64_t held = 0, parameters = 0, activations = 0;
};

/// Ranks as near to a square of pieces as can be.
std::vector<int> cut_of(int ranks) {
  int rows = 1;
  while (rows * rows < ranks) rows *= 2;
  return {rows, ranks / rows};
}

Result run_rank(Communicator& world, const Options& options) {
  Context& context = world.context();
  set_flush_to_zero(context.threads());
  Mesh mesh(world, 1, cut_of(options.ranks), 1);
  const Rank rank{context, mesh};
  const auto append = [](Model& into) { append_unet(into, {.base_width = 32, .levels = 4}); };
  BenchmarkModel model(rank, {{180, 360}, 69, 69}, append, options.recompute);
  Result result;
  std::vector<double> times;
  for (int step = 0; step < options.steps + 2; ++step) {
    const double flops_before = context.tally().flops;
    const double seconds = model.step();
    if (step >= 2) times.push_back(seconds);
    result.flops = context.tally().flops - flops_before;
  }
  const Optimizer& optimizer = model.optimizer();
  std::sort(times.begin(), times.end());
  result.seconds = times[times.size() / 2];
  result.held = optimizer.parameter_bytes() + optimizer.optimizer_bytes();
  result.parameters = optimizer.parameter_bytes() / 4;
  result.activations = context.arena().peak_bytes(Purpose::kActivations);
  return result;
}

void run(const Options& options) {
  const std::int64_t before = peak_resident_bytes();
  std::vector<Result> results(static_cast<std::size_t>(options.ranks));
  run_ranks(
      options.ranks, {}, [&](int) { return Context::make_host(Backend::kCpu, options.threads); },
      [&](Communicator& world) {
        results[static_cast<std::size_t>(world.rank())] = run_rank(world, options);
      });
  const Result& first = results[0];
  const std::int64_t peak = peak_resident_bytes() - before;
  nlohmann::ordered_json line{{"benchmark", options.recompute ? "unet_step recompute" : "unet_step"},
                              {"ranks", options.ranks},
                              {"threads", options.threads}};
  if (options.ranks == 1) {
    line.update({{"seconds_per_step", first.seconds},
                 {"gflops_per_second", first.flops / first.seconds * 1e-9},
                 {"parameters", first.parameters},
                 {"peak_bytes", peak},
                 {"peak_bytes_above_parameters_and_optimizer", peak - first.held}});
  }
  std::vector<std::int64_t> activations;
  for (const Result& result : results) activations.push_back(result.activations);
  line["peak_activation_bytes"] = activations;
  std::cout << line.dump() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const auto number = [&](const char* name, int& value) {
      if (i + 1 < argc && std::strcmp(argv[i], name) == 0) value = std::stoi(argv[i + 1]);
    };
    if (std::strcmp(argv[i], "--recompute") == 0) options.recompute = true;
    number("--steps", options.steps);
    number("--threads", options.threads);
    number("--ranks", options.ranks);
  }
  if (options.ranks > 1) options.threads = 1;
  run(options);
}
