// What reads only its own piece is computed while halos travel.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <iostream>
#include <thread>

#include "autograd/neighbourhood.h"
#include "comm/thread/run_ranks.h"
#include "support/pieces.h"

namespace jigsaw {
namespace {

constexpr double kKernelSeconds = 0.6;  ///< of all outputs of a rank
constexpr double kTransferSeconds = 0.5;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds of one pass over the tiles of the slower of two ranks, whose halos take so long on their way.
double seconds_of(double transfer_seconds) {
  ThreadOptions options;
  options.latency_seconds = transfer_seconds;
  double slowest = 0;
  run_ranks(
      2, options, [](int) { return Context::make_host(Backend::kReference, 1); },
      [&](Communicator& world) {
        Mesh mesh(world, 1, {2, 1}, 1);
        const Rank rank{world.context(), mesh};
        Layout layout{{1, 64, 8, 1}, {}};
        layout.placements[1] = Placement::shard(1);
        IndexMap map;
        map.dims = {{1, Reads::window(3, 1, 1, 1), Edge::kNone, Edge::kNone}};
        const auto exchange = Exchange::of(rank, map, layout, layout);
        const Array piece = testing::make_piece(rank, layout, DType::kFloat64,
                                                [](std::int64_t i) { return static_cast<double>(i); });
        const Box outputs = rank.box(layout);
        PlanBook plans;
        Tape tape(rank, plans, Tape::Mode::kForward);
        Array arrived;
        const double start = now();
        over_tiles(tape, *exchange, outputs, piece, arrived, [&](const Array&, const Tile& tile) {
          const double share =
              static_cast<double>(tile.outputs.extent.count()) / static_cast<double>(outputs.extent.count());
          std::this_thread::sleep_for(std::chrono::duration<double>(kKernelSeconds * share));
          return Array::zeros(rank.context, tile.outputs.extent, DType::kFloat64);
        });
        const double seconds = now() - start;
        const std::array<double, 1> all = {seconds};
        const double largest = world.all_reduce(all, ReduceOp::kMax)[0];
        if (world.rank() == 0) slowest = largest;
      });
  return slowest;
}

TEST(HaloOverlap, TheInteriorIsComputedWhileHalosTravel) {
  const double alone = seconds_of(0), both = seconds_of(kTransferSeconds);
  std::cout << "kernel " << alone << " s, halos " << kTransferSeconds << " s on their way, both " << both
            << " s: " << both / std::max(alone, kTransferSeconds) << " of the longer one\n";
  EXPECT_GE(both, kKernelSeconds);
  EXPECT_LT(both, alone + 0.5 * kTransferSeconds);
}

}  // namespace
}  // namespace jigsaw
