// What reads only its own piece is computed while halos travel.
#include <gtest/gtest.h>

#include <vector>

#include "autograd/neighbourhood.h"
#include "comm/thread/run_ranks.h"
#include "support/arrays.h"
#include "support/pieces.h"
#include "support/test_ranks.h"

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

/// The calls of the first of two ranks, each with 32 rows of 8 points of one or more samples, for outputs
/// that read as many rows before and behind them.
std::vector<KernelCall> calls_of(int before, int behind, Splitting splitting = Splitting::kWhereInnerIsLarge,
                                 std::int64_t samples = 1) {
  std::vector<KernelCall> calls;
  run_ranks(2, [&](Communicator& world) {
    Mesh mesh(world, 1, {2, 1}, 1);
    const Rank rank{world.context(), mesh};
    Layout layout{{samples, 64, 8, 2}, {}};
    layout.placements[1] = Placement::shard(1);
    IndexMap map;
    map.dims = {{1, Reads::window(before + 1 + behind, 1, 1, before), Edge::kNone, Edge::kNone}};
    const auto exchange = Exchange::of(rank, map, layout, layout);
    const Array piece = testing::make_piece(rank, layout, DType::kFloat64,
                                            [](std::int64_t i) { return static_cast<double>(i); });
    Array arrived;
    over_tiles(
        rank, [] {}, *exchange, rank.box(layout), piece, DType::kFloat64, arrived,
        [&](const Array&, const Tile& tile, const Array&) {
          const CallLog::Entry last = world.log()->last().back();
          EXPECT_EQ(last.kind, Collective::kExchange);
          if (world.rank() == 0)
            calls.push_back({tile.outputs.extent.count() / 2, last.state == CallLog::State::kDone});
          return Array::zeros(rank.context, tile.outputs.extent, DType::kFloat64);
        },
        splitting);
  });
  return calls;
}

TEST(HaloOverlap, TheInteriorIsComputedWhileHalosTravel) {
  EXPECT_EQ(calls_of(1, 1), (std::vector<KernelCall>{{31 * 8, false}, {8, true}}));
}

TEST(HaloOverlap, WideBordersAreNotWorthKernelsOfTheirOwn) {
  EXPECT_EQ(calls_of(10, 10), (std::vector<KernelCall>{{32 * 8, true}}));
}

TEST(HaloOverlap, WhoGetsNothingDoesNotWait) {
  EXPECT_EQ(calls_of(1, 0), (std::vector<KernelCall>{{32 * 8, false}}));
  EXPECT_EQ(calls_of(1, 0, Splitting::kNever), (std::vector<KernelCall>{{32 * 8, false}}));
}

/// As for kernels that take no longer than the copy of what they made elsewhere.
TEST(HaloOverlap, AnInteriorThatIsNotConsecutiveMayBeNotWorthIt) {
  EXPECT_EQ(calls_of(1, 1, Splitting::kWhereInPlace), (std::vector<KernelCall>{{31 * 8, false}, {8, true}}));
  EXPECT_EQ(calls_of(1, 1, Splitting::kWhereInPlace, 3), (std::vector<KernelCall>{{3 * 32 * 8, true}}));
  EXPECT_EQ(calls_of(1, 1, Splitting::kWhereInnerIsLarge, 3),
            (std::vector<KernelCall>{{3 * 31 * 8, false}, {3 * 8, true}}));
  EXPECT_EQ(calls_of(1, 1, Splitting::kNever), (std::vector<KernelCall>{{32 * 8, true}}));
}

/// Outputs that are consecutive in the result are made there; others, and those of a kernel that makes arrays
/// of its own, are copied.
TEST(HaloOverlap, OutputsAreMadeInTheirPlaces) {
  struct Case {
    std::vector<int> domain;
    std::int64_t channels;  // of three float64 numbers a row of points is no multiple of 16 bytes
    bool can;
    int placed;
  };
  for (const Case& one :
       {Case{{2, 1}, 2, true, 2}, {{2, 1}, 2, false, 2}, {{1, 2}, 2, true, 0}, {{2, 1}, 3, true, 1}}) {
    const bool rows = one.domain[0] == 2;
    SCOPED_TRACE(::testing::Message() << (rows ? "rows" : "columns") << ", " << one.channels << " channels");
    testing::run_test_ranks(2, [&](Communicator& world) {
      Mesh mesh(world, 1, one.domain, 1);
      const Rank rank{world.context(), mesh};
      Layout layout{{1, rows ? 64 : 7, rows ? 7 : 64, one.channels}, {}};
      layout.placements[rows ? 1 : 2] = Placement::shard(rows ? 1 : 2);
      IndexMap map;
      map.dims = {{rows ? 1 : 2, Reads::window(3, 1, 1, 1), Edge::kNone, Edge::kNone}};
      const auto exchange = Exchange::of(rank, map, layout, layout);
      const auto element = [](std::int64_t i) { return static_cast<double>(i); };
      const Array piece = testing::make_piece(rank, layout, DType::kFloat64, element);
      Array arrived;
      int placed = 0, calls = 0;
      const Array result = over_tiles(
          rank, [] {}, *exchange, rank.box(layout), piece, DType::kFloat64, arrived,
          [&](const Array&, const Tile& tile, const Array& into) {
            ++calls;
            placed += into.defined() ? 1 : 0;
            std::vector<double> values;
            for (std::int64_t i = 0; i < tile.outputs.extent.count(); ++i)
              values.push_back(element(testing::global_index(layout.global, tile.outputs, i)));
            const Array own = constant(rank.context, tile.outputs.extent, DType::kFloat64, values);
            if (!one.can || !into.defined()) return own;
            write_values(rank.context, into, values);
            return into;
          });
      EXPECT_EQ(calls, 2);
      EXPECT_EQ(placed, one.placed);
      EXPECT_EQ(testing::values_of(result), testing::values_of(piece));
    });
  }
}

}  // namespace
}  // namespace jigsaw
