// Training steps of configurations as they are shipped, on made-up data, on the processor or a GPU. Of each
// one JSON line: seconds of the median step, those of a GPU's own clock among them, the samples, FLOPs and
// bytes of a step (of kernels, which with a device's rates give the least time that it could take), and the
// memory that arrays held at most. Batches come as those of a run do, so that a GPU takes them up beside the
// step before, and its steps are recorded and replayed.
//
//   model_steps [--device cpu|cuda] [--steps N] [--threads T] [--set KEY=VALUE]… CONFIG…
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "array/host_view.h"
#include "base/error.h"
#include "comm/self/self.h"
#include "config/config.h"
#include "kernels/flush_to_zero.h"
#include "task/device.h"
#include "train/described_objective.h"
#include "train/training_step.h"

namespace {

using namespace jigsaw;

struct Options {
  DeviceChoice device = DeviceChoice::kCpu;
  int steps = 5, threads = 2;
  std::vector<std::string> settings, configurations;
};

/// Standard normal numbers, the same for every run; of a large array so many, again and again.
void fill(const Array& array, const std::string& name) {
  constexpr std::size_t kDrawn = std::size_t{1} << 20;
  Array target = array;
  const RandomStream random(1, RandomPurpose::kNoise, name);
  const HostView<float> elements(target);
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = i < kDrawn ? static_cast<float>(random.normal({}, i)) : elements[i - kDrawn];
}

/// A batch of the longest rollout, on the host.
Batch made_up(const OpenedRun& run, const Context& context) {
  const PlacedModel& placed = run.placed();
  BatchRequest request;
  request.input = placed.input_box(placed.samples());
  request.target = placed.target_box(run.loss(), placed.samples());
  request.rollout = run.configuration().train.rollout.most();
  Batch batch = allocate_batch(request, placed.forecaster().forced(), context.host());
  fill(batch.input, "input");
  for (const Array& target : batch.targets) fill(target, "target");
  return batch;
}

nlohmann::ordered_json time_steps(const std::string& path, const Options& options) {
  Json json = load_config(path);
  for (const std::string& setting : options.settings) apply_override(json, setting);
  Configuration configuration = parse<Configuration>(json);
  configuration.device = options.device;
  Context context = make_context(configuration.device, configuration.train, options.threads, 0);
  set_flush_to_zero(options.threads);
  const auto world = make_self_communicator(context);
  OpenedRun run(configuration, described_objective(configuration, describe_data(configuration.data, "")),
                *world);
  Optimizer optimizer(run.placed().rank(), run.placed().model().parameters(), configuration.optimizer);
  // The first steps allocate and plan; on a GPU others are recorded, and replayed once.
  const int first = context.backend() == Backend::kCuda ? 4 : 2, steps = first + options.steps;
  TrainingStep step(run, optimizer, steps);
  const Batch batch = made_up(run, context);
  Prefetch batches([&](std::int64_t) { return batch; }, 0,
                   std::int64_t{steps} * configuration.train.accumulate);
  std::vector<double> seconds, device_seconds;
  Tally before, after;
  double loss = 0;
  bool recorded = false;
  for (int i = 1; i <= steps; ++i) {
    before = context.tally();
    const auto begin = std::chrono::steady_clock::now();
    const StepResult result = step.run(i, batches);
    if (DeviceRuntime* const device = context.runtime()) device->synchronise(context.stream());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    after = context.tally();
    loss = result.loss;
    recorded = result.recorded;
    if (i <= first) continue;
    seconds.push_back(taken.count());
    device_seconds.push_back(result.device_seconds);
  }
  std::sort(seconds.begin(), seconds.end());
  std::sort(device_seconds.begin(), device_seconds.end());
  return {{"benchmark", "model_steps"},
          {"configuration", configuration.name},
          {"device", context.backend() == Backend::kCuda ? "cuda" : "cpu"},
          {"precision", name(run.placed().types().compute)},
          {"samples", configuration.train.batch_size},
          {"seconds", seconds[seconds.size() / 2]},
          {"device_seconds", device_seconds[device_seconds.size() / 2]},
          {"recorded", recorded},
          {"flops", after.flops - before.flops},
          {"bytes", after.bytes - before.bytes},
          {"peak_bytes", context.arena().peak_bytes()},
          {"loss", loss}};
}

int usage() {
  std::cerr
      << "usage: model_steps [--device cpu|cuda] [--steps N] [--threads T] [--set KEY=VALUE]… CONFIG…\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      options.configurations.push_back(word);
      continue;
    }
    if (++i == argc) return usage();
    if (word == "--device") {
      options.device = std::strcmp(argv[i], "cuda") == 0 ? DeviceChoice::kCuda : DeviceChoice::kCpu;
    } else if (word == "--steps") {
      options.steps = std::max(1, std::atoi(argv[i]));
    } else if (word == "--threads") {
      options.threads = std::atoi(argv[i]);
    } else if (word == "--set") {
      options.settings.emplace_back(argv[i]);
    } else {
      return usage();
    }
  }
  if (options.configurations.empty()) return usage();
  int code = 0;
  for (const std::string& path : options.configurations) {
    try {
      std::cout << time_steps(path, options).dump() << std::endl;
    } catch (const std::exception& error) {
      std::cerr << path << ": error: " << error.what() << std::endl;
      code = 1;
    }
  }
  return code;
}
