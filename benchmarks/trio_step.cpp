// One training step of a model of the benchmark trio: 69 channels on 180 × 360 points, patch 4 × 4, width
// 384, depth 6, batch 1, float32 AdamW; the mixer with token hidden 1,024 and channel hidden 1,536, the ViT
// with 6 heads and ratio 4. Prints one JSON line. benchmarks/trio.sh runs it beside PyTorch's
// (peer/torch_trio.py), so that the ratio is of one machine at one time. The third, the U-Net, is unet_step.
//
//   trio_step mixer|vit [--steps N] [--threads T] [--recompute]
#include <algorithm>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "benchmark_model.h"
#include "comm/self/self.h"
#include "kernels/flush_to_zero.h"
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

void run(const std::string& name, int steps, int threads, bool recompute) {
  const std::int64_t before = peak_resident_bytes();
  Context context = Context::make_host(Backend::kCpu, threads);
  set_flush_to_zero(threads);
  const auto world = make_self_communicator(context);
  Mesh mesh(*world, 1, {1, 1}, 1);
  const Rank rank{context, mesh};
  BenchmarkModel model(rank, {{180, 360}, 69, 69}, name == "vit" ? append_transformer : append_mixer,
                       recompute);
  std::vector<double> times;
  double flops = 0;
  for (int step = 0; step < steps + 2; ++step) {
    const double flops_before = context.tally().flops;
    const double seconds = model.step();
    if (step >= 2) times.push_back(seconds);
    flops = context.tally().flops - flops_before;
  }
  const AdamW& optimizer = model.optimizer();
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const std::int64_t held = optimizer.parameter_bytes() + optimizer.optimizer_bytes();
  const std::int64_t peak = peak_resident_bytes() - before;
  std::cout
      << nlohmann::ordered_json{{"benchmark", "trio_step " + name},
                                {"threads", threads},
                                {"seconds_per_step", median},
                                {"gflops_per_second", flops / median * 1e-9},
                                {"parameters", optimizer.parameter_bytes() / 4},
                                {"peak_bytes", peak},
                                {"peak_bytes_above_parameters_and_optimizer", peak - held},
                                {"peak_activation_bytes", context.arena().peak_bytes(Purpose::kActivations)},
                                {"peak_workspace_bytes", context.arena().peak_bytes(Purpose::kWorkspace)},
                                {"gradient_bytes", context.arena().peak_bytes(Purpose::kGradients)}}
             .dump()
      << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name != "mixer" && name != "vit") {
    std::cerr << "usage: trio_step mixer|vit [--steps N] [--threads T] [--recompute]\n";
    return 2;
  }
  int steps = 5, threads = 2;
  bool recompute = false;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--recompute") == 0) recompute = true;
    if (i + 1 < argc && std::strcmp(argv[i], "--steps") == 0) steps = std::stoi(argv[i + 1]);
    if (i + 1 < argc && std::strcmp(argv[i], "--threads") == 0) threads = std::stoi(argv[i + 1]);
  }
  run(name, steps, threads, recompute);
}
