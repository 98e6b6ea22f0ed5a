// What reads only its own piece is computed while halos travel.
#include <gtest/gtest.h>

#include <vector>

#include "autograd/neighbourhood.h"
#include "comm/thread/run_ranks.h"
#include "support/pieces.h"

namespace jigsaw {
namespace {

/// A kernel's call: how many outputs it made, and whether the halos had been waited for by then.
struct KernelCall {
  std::int64_t outputs;
  bool waited;
  bool operator==(const KernelCall&) const = default;
};

void PrintTo(const KernelCall& call, std::ostream* out) {
  *out << call.outputs << (call.waited ? " outputs after" : " outputs before") << " the halos";
}

/// The calls of one of two ranks, each with 32 rows of 8 points, for reads that reach `reach` rows beyond.
std::vector<KernelCall> calls_of(int reach) {
  std::vector<KernelCall> calls;
  run_ranks(2, [&](Communicator& world) {
    Mesh mesh(world, 1, {2, 1}, 1);
    const Rank rank{world.context(), mesh};
    Layout layout{{1, 64, 8, 1}, {}};
    layout.placements[1] = Placement::shard(1);
    IndexMap map;
    map.dims = {{1, Reads::window(2 * reach + 1, 1, 1, reach), Edge::kNone, Edge::kNone}};
    const auto exchange = Exchange::of(rank, map, layout, layout);
    const Array piece = testing::make_piece(rank, layout, DType::kFloat64,
                                            [](std::int64_t i) { return static_cast<double>(i); });
    Array arrived;
    over_tiles(
        rank, [] {}, *exchange, rank.box(layout), piece, arrived,
        [&](const Array&, const Tile& tile) {
          const CallLog::Entry last = world.log()->last().back();
          EXPECT_EQ(last.kind, Collective::kExchange);
          if (world.rank() == 0)
            calls.push_back({tile.outputs.extent.count(), last.state == CallLog::State::kDone});
          return Array::zeros(rank.context, tile.outputs.extent, DType::kFloat64);
        });
  });
  return calls;
}

TEST(HaloOverlap, TheInteriorIsComputedWhileHalosTravel) {
  EXPECT_EQ(calls_of(1), (std::vector<KernelCall>{{31 * 8, false}, {8, true}}));
}

TEST(HaloOverlap, WideBordersAreNotWorthKernelsOfTheirOwn) {
  EXPECT_EQ(calls_of(10), (std::vector<KernelCall>{{32 * 8, true}}));
}

}  // namespace
}  // namespace jigsaw
