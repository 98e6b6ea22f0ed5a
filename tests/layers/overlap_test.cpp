// A step takes hardly longer than the longer of its kernels and its transfers. Judged on a virtual clock, so
// that nothing but the order of starts and waits counts: mixer blocks on two ranks, on processors and
// networks of several speeds, each with plans made for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/text.h"
#include "comm/thread/virtual_clock.h"
#include "layers/weathermixer.h"

namespace jigsaw {
namespace {

constexpr double kLimit = 1.1;
/// Where transfers take as long as the kernels, what neither hides of the other adds up from operation to
/// operation: one's transfers last longer than its products, another has none.
constexpr double kLimitOfEqual = 1.3;

struct MeshSizes {
  const char* name;
  std::vector<int> domain;
  int tensor;
};
const std::vector<MeshSizes>& meshes() {
  static const std::vector<MeshSizes> all = {{"domain [2,1]", {2, 1}, 1}, {"tensor 2", {1, 1}, 2}};
  return all;
}

/// What a rank does after the forward pass of a batch of one, on arrays without data.
void step(Communicator& world, const MeshSizes& sizes, const CostModel& cost) {
  Mesh mesh(world, 1, sizes.domain, sizes.tensor);
  const Rank rank{world.context(), mesh};
  const WeatherMixerOptions mixer{.patch = {4, 4},
                                  .embed_dim = 256,
                                  .depth = 8,
                                  .token_hidden_ratio = 2.0,
                                  .channel_hidden_ratio = 4.0,
                                  .positions = true,
                                  .output_map = false};
  Model model({{96, 128}, 16, 16});
  append_weathermixer(model, mixer);
  model.finish();
  PlanBook plans(cost);
  plan_and_materialise(model, rank, plans, 1, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
  const Layout in = model.input_layout(mesh, 1), out = model.output_layout(mesh, 1);
  Tape tape(rank, plans, Tape::Mode::kRecord);
  tape.set_training(true);
  tape.on_gradients([](ParameterBlock& block) { block.start_synchronise_gradients(); });
  const Variable x({Array(rank.context, rank.box(in).extent, DType::kFloat32), in}, false);
  const Variable y = model.forward(tape, x);
  y.slot()->add(rank, {Array(rank.context, rank.box(out).extent, DType::kFloat32), out});
  tape.backward();
}

struct Timed {
  double compute = 0, transfer = 0, seconds = 0;  ///< of the rank that has most
  std::string waits;

  double ratio() const { return seconds / std::max(compute, transfer); }
};

/// @param bytes_per_second  0: transfers take no time.
Timed time_step(const MeshSizes& sizes, const CostModel& cost, double bytes_per_second) {
  VirtualClock clock(2, {cost.flops_per_second, cost.memory_bytes_per_second});
  ThreadOptions options;
  options.latency_seconds = bytes_per_second > 0 ? cost.latency_seconds : 0;
  options.bytes_per_second = bytes_per_second;
  run_ranks(
      2, options, clock, [](int) { return Context::make_meta(); },
      [&](Communicator& world) { step(world, sizes, cost); });
  Timed timed;
  timed.seconds = clock.seconds();
  for (int r = 0; r < 2; ++r) {
    const VirtualClock::RankTime& time = clock.of(r);
    timed.compute = std::max(timed.compute, time.computed);
    timed.transfer = std::max(timed.transfer,
                              time.link + static_cast<double>(time.calls.size()) * options.latency_seconds);
  }
  timed.waits = clock.longest_waits(8);
  return timed;
}

/// @param share  of the time of the kernels that the transfers take.
Timed time_step(const MeshSizes& sizes, double flops_per_second, double share) {
  CostModel cost{.flops_per_second = flops_per_second,
                 .memory_bytes_per_second = 0.1 * flops_per_second,
                 .network_bytes_per_second = 0.02 * flops_per_second,
                 .latency_seconds = 5e-5};
  // As many bytes travel as the plan for the network wants, which depends on how many travel.
  for (int round = 0; round < 2; ++round) {
    const Timed unit = time_step(sizes, cost, 1.0), free = time_step(sizes, cost, 0);
    cost.network_bytes_per_second = unit.transfer / (share * free.compute);
  }
  return time_step(sizes, cost, cost.network_bytes_per_second);
}

TEST(Overlap, AStepTakesHardlyLongerThanTheLongerOfKernelsAndTransfers) {
  for (const MeshSizes& sizes : meshes()) {
    for (const double flops : {3e10, 1e11, 3e11}) {
      for (const double share : {0.25, 0.5, 2.0, 1.0}) {
        const Timed timed = time_step(sizes, flops, share);
        const std::string text = concat(sizes.name, ", ", flops * 1e-9, " GFLOP/s, kernels ",
                                        timed.compute * 1e3, " ms, transfers ", timed.transfer * 1e3,
                                        " ms, step ", timed.seconds * 1e3, " ms: ", timed.ratio());
        std::printf("%s\n", text.c_str());
        EXPECT_LE(timed.ratio(), share == 1.0 ? kLimitOfEqual : kLimit) << text << "\n" << timed.waits;
      }
    }
  }
}

}  // namespace
}  // namespace jigsaw
