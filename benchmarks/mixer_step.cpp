// One training step of the benchmark mixer: 69 channels on 180 × 360 points, patch 4 × 4, width 384, depth 6,
// token hidden 1,024, channel hidden 1,536, batch 1, float32 AdamW: prints one JSON line. benchmarks/mixer.sh
// runs it beside PyTorch's (peer/torch_mixer.py), so that the ratio is of one machine at one time.
//
//   mixer_step [--steps N] [--threads T] [--recompute]
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "comm/self/self.h"
#include "kernels/flush_to_zero.h"
#include "kernels/pointwise.h"
#include "layers/registry.h"
#include "layers/weathermixer.h"
#include "optim/adamw.h"
#include "train/loss.h"
#include "train/summary.h"

namespace {

using namespace jigsaw;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Standard normal numbers, the same for every run.
Array noise(Context& context, const Shape& shape) {
  Array array(context, shape, DType::kFloat32, Purpose::kInput);
  const RandomStream random(1, RandomPurpose::kNoise, "benchmark");
  for (std::int64_t i = 0; i < array.count(); ++i) {
    array.data<float>()[i] = static_cast<float>(random.normal({}, static_cast<std::uint64_t>(i)));
  }
  return array;
}

void run(int steps, int threads, bool recompute) {
  const std::int64_t before = peak_resident_bytes();
  Context context = Context::make_host(Backend::kCpu, threads);
  set_flush_to_zero(threads);
  const auto world = make_self_communicator(context);
  Mesh mesh(*world, 1, {1, 1}, 1);
  const Rank rank{context, mesh};
  Model model({{180, 360}, 69, 69});
  append_weathermixer(model, {.patch = {4, 4},
                              .embed_dim = 384,
                              .depth = 6,
                              .token_hidden_ratio = 1024.0 / 4050.0,
                              .channel_hidden_ratio = 4.0,
                              .positions = true,
                              .output_map = false});
  model.set_recompute(recompute);
  PlanBook plans;
  plan_and_materialise(model, rank, plans, 1, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
  OptimizerOptions options;
  options.learning_rate = 1e-4;
  AdamW optimizer(rank, model.parameters(), options);
  const FieldLoss loss({}, std::vector<double>(180, 1.0), std::vector<std::string>(69, "v"));
  const Layout input = model.input_layout(mesh, 1), output = model.output_layout(mesh, 1);
  const Array x = noise(context, input.global), target = noise(context, output.global);

  std::vector<double> times;
  double flops = 0;
  for (int step = 0; step < steps + 2; ++step) {
    const double start = seconds_now(), flops_before = context.tally().flops;
    optimizer.zero_gradients();
    {
      Tape tape(rank, plans, Tape::Mode::kRecord);
      tape.set_training(true);
      {
        const Variable y = model.forward(tape, Variable({x, input}, false));
        const Array piece = y.value().piece;
        const GlobalSums sums = loss.sums(rank, loss.norm(), piece, target, output);
        y.slot()->add(rank, {loss.gradient(rank, sums, 1.0, piece, target, output), output});
      }
      tape.backward();
    }
    const double norm = optimizer.finish_gradients(1.0);
    optimizer.step(1.0, 1.0, norm);
    if (step >= 2) times.push_back(seconds_now() - start);
    flops = context.tally().flops - flops_before;
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const std::int64_t held = optimizer.parameter_bytes() + optimizer.optimizer_bytes();
  const std::int64_t peak = peak_resident_bytes() - before;
  std::cout
      << nlohmann::ordered_json{{"benchmark", "mixer_step"},
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
  int steps = 5, threads = 2;
  bool recompute = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--recompute") == 0) recompute = true;
    if (i + 1 < argc && std::strcmp(argv[i], "--steps") == 0) steps = std::stoi(argv[i + 1]);
    if (i + 1 < argc && std::strcmp(argv[i], "--threads") == 0) threads = std::stoi(argv[i + 1]);
  }
  run(steps, threads, recompute);
}
