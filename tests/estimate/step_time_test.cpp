// The time of a step as it is estimated, from one rank that records, against the same step made by all ranks
// on the virtual clock, at the same rates: there every transfer waits for the last rank that starts it, and
// lasts what goes out or comes in of the busiest, so that what is judged is that a rank may be taken for all.
//
// Pieces are even. What may be left between the two (kTolerance) is that the estimate counts what the
// algorithms send, where the clock of threads counts the closed forms (an all_reduce of a few numbers goes
// out whole, control values are counted), and that a rank at a border waits for one in the middle, which
// exchanges on both sides. Latencies are zero: the estimate counts them by message, the clock by call.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/thread/virtual_clock.h"
#include "config/config.h"
#include "estimate/step_estimate.h"

namespace jigsaw {
namespace step_time_test {

constexpr double kTolerance = 0.05;

/// A network by which transfers take about as long as kernels.
MachineModel machine() {
  return {.flops_per_second = 1e10, .memory_bytes_per_second = 1e10, .links = {{1e8, 0}}};
}

struct Case {
  const char* model;
  int ranks;
  const char* more;  ///< mesh and choices
};

Configuration configuration_of(const Case& each) {
  Json json = Json::parse(R"({
    "data": {"files": ["none.nc"], "shape": [32, 48], "variables": ["t2m", "u10", "v10", "msl"], "train": ["2020-01-01", "2020-01-09"]},
    "train": {"batch_size": 8}})");
  json["model"] = Json::parse(each.model);
  json.merge_patch(Json::parse(each.more));
  return parse<Configuration>(json);
}

/// Of rank 0 in a step on the virtual clock.
struct Simulated {
  double seconds = 0;  ///< until the last rank has ended
  double stalled = 0;
  double link = 0;  ///< during which something went through its link
};

Simulated simulate(const EstimatedRun& run, const std::vector<BlockPlan>& plans) {
  VirtualClock clock(run.ranks, {run.machine.flops_per_second, run.machine.memory_bytes_per_second});
  ThreadOptions options{.time_limit_seconds = 600};
  options.bytes_per_second = run.machine.links.front().bytes_per_second;
  Simulated result;
  run_ranks(
      run.ranks, options, clock, [](int) { return Context::make_meta(); },
      [&](Communicator& world) {
        ASSERT_EQ(world.size(), run.ranks);
        OpenedRun opened(run.configuration, described_objective(run.configuration, run.data), world, {},
                         plans);
        PlacedModel& placed = opened.placed();
        Optimizer optimizer(placed.rank(), placed.model().parameters(), run.configuration.optimizer);
        placed.plans().set_machine(
            std::make_shared<const Machine>(run.machine.on(placed.mesh().shape(), run.configuration.train)));
        // All begin at the same moment, and end with the last.
        world.barrier();
        const VirtualClock::RankTime begin = clock.of(world.rank());
        count_step(opened, optimizer);
        world.barrier();
        const VirtualClock::RankTime& end = clock.of(world.rank());
        if (world.rank() == 0)
          result = {end.now - begin.now, end.stalled - begin.stalled, end.link - begin.link};
      });
  return result;
}

TEST(StepTime, IsThatOfAllRanksOnTheVirtualClock) {
  const char* const mixer = R"({"type": "weathermixer", "patch": [4, 6], "embed_dim": 64, "depth": 2})";
  const char* const vit = R"({"type": "vit", "patch": [4, 6], "embed_dim": 64, "depth": 2, "heads": 4})";
  const char* const unet = R"({"type": "unet", "widths": [16, 32], "norm_groups": 4})";
  const char* const sfno = R"({"type": "sfno", "embed_dim": 32, "depth": 2, "scale": 2})";
  const std::vector<Case> cases = {
      {mixer, 2, R"({"mesh": {"domain": [2, 1]}})"},
      {mixer, 2, R"({"mesh": {"tensor": 2}})"},
      {mixer, 4, R"({"mesh": {"data": 4}, "zero": "parameters"})"},
      {mixer, 8, R"({"mesh": {"data": 2, "domain": [2, 1], "tensor": 2}})"},
      {vit, 2, R"({"mesh": {"data": 2}, "zero": "optimizer"})"},
      {vit, 4, R"({"mesh": {"domain": [2, 2]}})"},
      {vit, 4, R"({"mesh": {"domain": [2, 1], "tensor": 2}, "train": {"recompute": "block"}})"},
      {vit, 8, R"({"mesh": {"data": 2, "tensor": 4}, "zero": "parameters"})"},
      {sfno, 4, R"({"mesh": {"domain": [2, 2]}})"},
      {unet, 2, R"({"mesh": {"domain": [1, 2]}})"},
      {unet, 4, R"({"mesh": {"domain": [4, 1]}})"},
      {unet, 4, R"({"mesh": {"data": 2, "domain": [2, 1]}, "train": {"recompute": "block"}})"},
      {unet, 8, R"({"mesh": {"data": 8}})"}};
  const MachineModel model = machine();
  double most_stalled = 0, most_hidden = 0;
  for (const Case& each : cases) {
    SCOPED_TRACE(std::string(each.model) + " on " + std::to_string(each.ranks) + " ranks, " + each.more);
    const Configuration configuration = configuration_of(each);
    const DataDescription data = describe_data(configuration.data, "");
    const EstimatedRun run{configuration, data, model, each.ranks};
    KnownPlans plans;
    double estimated = estimate_rank(run, 0, nullptr, &plans).seconds;
    for (int rank = 1; rank < each.ranks; ++rank)
      estimated = std::max(estimated, estimate_rank(run, rank, plans).seconds);
    const Simulated made = simulate(run, *plans);
    ASSERT_GT(made.seconds, 0);
    EXPECT_NEAR(estimated / made.seconds, 1, kTolerance) << estimated << " s, and really " << made.seconds;
    most_stalled = std::max(most_stalled, made.stalled / made.seconds);
    most_hidden = std::max(most_hidden, (made.link - made.stalled) / made.seconds);
  }
  // Otherwise an estimate that hides all, or nothing, would be as near.
  EXPECT_GT(most_stalled, 2 * kTolerance);
  EXPECT_GT(most_hidden, 2 * kTolerance);
}

}  // namespace step_time_test
}  // namespace jigsaw
