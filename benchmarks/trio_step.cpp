// One training step of a model of the benchmark trio: 69 channels on 180 × 360 points, patch 4 × 4, width
// 384, depth 6, float32 AdamW; the mixer with token hidden 1,024 and channel hidden 1,536, the ViT
// with 6 heads and ratio 4. Beside them an SFNO of width 128, depth 4 and ratio 2 on 90 × 180 points. Prints
// one JSON line. benchmarks/trio.sh runs it beside PyTorch's (peer/torch_trio.py), so that the ratio is of
// one machine at one time. The third, the U-Net, is unet_step.
//
//   [mpirun -n N] trio_step mixer|vit|sfno [--steps N] [--threads T] [--recompute] [--samples B] [--data N]
//   [--domain N] [--tensor N]
//
// The batch is global; with several ranks, data × domain × tensor of them, time and memory are the largest of
// a rank.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "benchmark_model.h"
#include "comm/mpi/mpi_session.h"
#include "kernels/flush_to_zero.h"
#include "layers/sfno.h"
#include "layers/vit.h"
#include "layers/weathermixer.h"
#include "train/summary.h"

namespace {

using namespace jigsaw;

void append_mixer(Model& model) {
  append_weathermixer(model, {.patch = {4, 4},
                              .embed_dim = 384,
                              .depth = 6,
                              .token_hidden_ratio = 1024.0 / 4050.0,
                              .channel_hidden_ratio = 4.0,
                              .positions = true,
                              .output_map = false});
}

void append_transformer(Model& model) {
  append_vit(model, {.patch = {4, 4}, .embed_dim = 384, .depth = 6, .heads = 6});
}

void append_spherical(Model& model) {
  append_sfno(model, {.embed_dim = 128, .depth = 4, .scale = 2, .latitudes = GlobalRows::kPoleCell});
}

struct Options {
  int steps = 5, threads = 2, samples = 1, data = 1, domain = 1, tensor = 1;
  bool recompute = false;
};

void run(MpiSession& session, const std::string& name, const Options& options) {
  const std::int64_t before = peak_resident_bytes();
  Context context = Context::make_host(Backend::kCpu, options.threads);
  set_flush_to_zero(options.threads);
  const std::unique_ptr<Communicator> world = session.world(context);
  Mesh mesh(*world, options.data, {options.domain, 1}, options.tensor);
  const Rank rank{context, mesh};
  BenchmarkModel model(rank, {{180, 360}, 69, 69},
                       name == "vit"    ? append_transformer
                       : name == "sfno" ? append_spherical
                                        : append_mixer,
                       options.recompute, {}, options.samples);
  std::vector<double> times;
  double flops = 0;
  for (int step = 0; step < options.steps + 2; ++step) {
    const double flops_before = context.tally().flops;
    const double seconds = model.step();
    if (step >= 2) times.push_back(seconds);
    flops = context.tally().flops - flops_before;
  }
  const Optimizer& optimizer = model.optimizer();
  std::sort(times.begin(), times.end());
  const auto largest = [&](auto value) {
    return world->all_reduce(std::vector{static_cast<double>(value)}, ReduceOp::kMax)[0];
  };
  const auto bytes = [&](std::int64_t value) { return static_cast<std::int64_t>(largest(value)); };
  const double median = largest(times[times.size() / 2]);
  const std::int64_t held = optimizer.parameter_bytes() + optimizer.optimizer_bytes();
  const std::int64_t peak = peak_resident_bytes() - before;
  const double parameters =
      world->all_reduce(std::vector{static_cast<double>(optimizer.parameter_bytes())}, ReduceOp::kSum)[0] / 4;
  const nlohmann::ordered_json line = {
      {"benchmark", "trio_step " + name},
      {"mesh", concat("data ", options.data, " domain ", options.domain, " tensor ", options.tensor)},
      {"samples", options.samples},
      {"threads", options.threads},
      {"seconds_per_step", median},
      {"gflops_per_second", flops / median * 1e-9},
      {"parameters", static_cast<std::int64_t>(parameters) / options.data},
      {"peak_bytes", bytes(peak)},
      {"peak_bytes_above_parameters_and_optimizer", bytes(peak - held)},
      {"peak_activation_bytes", bytes(context.arena().peak_bytes(Purpose::kActivations))},
      {"peak_workspace_bytes", bytes(context.arena().peak_bytes(Purpose::kWorkspace))},
      {"gradient_bytes", bytes(context.arena().peak_bytes(Purpose::kGradients))}};
  if (world->rank() == 0) std::cout << line.dump() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name != "mixer" && name != "vit" && name != "sfno") {
    std::cerr
        << "usage: trio_step mixer|vit|sfno [--steps N] [--threads T] [--recompute] [--samples B] [--data N] "
           "[--domain N] [--tensor N]\n";
    return 2;
  }
  Options options;
  const std::pair<const char*, int*> numbers[] = {
      {"--steps", &options.steps}, {"--threads", &options.threads}, {"--samples", &options.samples},
      {"--data", &options.data},   {"--domain", &options.domain},   {"--tensor", &options.tensor}};
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--recompute") == 0) options.recompute = true;
    for (const auto& [key, number] : numbers) {
      if (i + 1 < argc && std::strcmp(argv[i], key) == 0) *number = std::stoi(argv[i + 1]);
    }
  }
  MpiSession session;
  run(session, name, options);
}
