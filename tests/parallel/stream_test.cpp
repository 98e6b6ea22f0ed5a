// Streams bring and add up what the collective would, however each part is cut.
#include "parallel/stream.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/copy.h"
#include "support/arrays.h"
#include "support/pieces.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

const std::vector<Shape> kGlobals = {{1, 7, 5}, {2, 7, 5}, {1, 2, 9}};
constexpr double kSummand = 1000;  ///< what ranks differ by in partial tensors

double element(std::int64_t index) {
  return static_cast<double>(index * index % 97);
}

Layout layout_of(const Mesh& mesh, const Shape& global, const Placement& placement) {
  Layout layout{global, {}};
  layout.placements[mesh.tensor()] = placement;
  return layout;
}

/// Runs f on ranks along `tensor`, each streaming in parts cut so. Both must be more than one somewhere.
void on_ranks(const std::function<void(const Rank&, const Shape& global, const Cut& cut)>& f) {
  for (const int ranks : {2, 3}) {
    for (const Cut& cut : {Cut{1, 1}, Cut{2, 2}, Cut{8, 8}, Cut{4, 1}, Cut{8, 2}}) {
      SCOPED_TRACE(::testing::Message()
                   << ranks << " ranks, " << cut.runs << " runs in " << cut.messages << " messages");
      const auto all = [&](const Rank& rank) {
        for (const Shape& global : kGlobals) f(rank, global, cut);
      };
      testing::run_test_ranks(ranks, [&](Communicator& world) {
        ASSERT_EQ(world.size(), ranks);
        Mesh mesh(world, 1, {1, 1}, ranks);
        all({world.context(), mesh});
      });
    }
  }
}

void expect_elements(const Rank& rank, const Shape& global, const Box& box, const Array& piece, double factor,
                     double offset) {
  ASSERT_EQ(piece.count(), box.extent.count());
  const std::vector<double> values = testing::values_of(piece);
  for (std::int64_t i = 0; i < piece.count(); ++i) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)],
              factor * element(testing::global_index(global, box, i)) + offset)
        << "element " << i << " on rank " << rank.mesh.coordinate(rank.mesh.tensor());
  }
}

TEST(Consecutive, WhereOnlyTheFirstDimOfMoreThanOneElementIsCut) {
  Context context = testing::test_context(Backend::kReference, 1);
  const Box box{{10, 0, 0}, {1, 3, 4}};
  std::vector<double> numbers(static_cast<std::size_t>(box.extent.count()));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const Array array = testing::array_of(context, box.extent, DType::kFloat64, numbers);
  const auto first_of = [&](const Box& region) {
    const std::optional<Array> view = consecutive(array, box, region);
    if (!view) return -1.0;
    EXPECT_EQ(view->shape(), region.extent);
    return testing::values_of(*view)[0];
  };
  EXPECT_EQ(first_of(box), 0);
  EXPECT_EQ(first_of({{10, 1, 0}, {1, 2, 4}}), 4);
  EXPECT_EQ(first_of({{10, 1, 2}, {1, 1, 2}}), 6);
  EXPECT_EQ(first_of({{10, 0, 1}, {1, 3, 2}}), -1);
  EXPECT_TRUE(consecutive(array, box, {{10, 0, 1}, {1, 0, 2}}));
}

/// What arrives covers the wanted piece, each element once.
void check_receiving(const Placement& from, const Placement& to) {
  on_ranks([&](const Rank& rank, const Shape& global, const Cut& cut) {
    const Layout held = layout_of(rank.mesh, global, from), wanted = layout_of(rank.mesh, global, to);
    const Steps steps = redistribution_steps(rank.mesh.shape(), held, wanted);
    ASSERT_EQ(steps.size(), 1U);
    const Array piece = testing::make_piece(rank, held, DType::kFloat64, element);
    ReceiveStream stream(rank, {piece, held}, steps[0], cut);
    std::int64_t arrived = 0;
    bool own = true;
    while (!stream.done()) {
      const ReceiveStream::Part part = stream.next();
      const bool mine = std::exchange(own, false);
      if (part.box.empty()) continue;
      expect_elements(rank, global, part.box, part.piece, 1, 0);
      EXPECT_EQ(intersect(part.box, rank.box(wanted)), part.box);
      if (mine) {
        EXPECT_EQ(intersect(part.box, rank.box(held)), part.box);
      }
      arrived += part.box.extent.count();
    }
    EXPECT_EQ(arrived, rank.box(wanted).extent.count());
  });
}

TEST(ReceiveStream, GathersAndExchanges) {
  check_receiving(Placement::shard(1), Placement::replicate());
  check_receiving(Placement::shard(2), Placement::replicate());
  check_receiving(Placement::shard(1), Placement::shard(2));
  check_receiving(Placement::shard(2), Placement::shard(1));
}

/// What is put part by part comes to its owners, partial sums added up.
void check_sent(const Rank& rank, const Shape& global, const Placement& from, const Placement& to,
                const Cut& cut) {
  const Layout made_in = layout_of(rank.mesh, global, from), wanted = layout_of(rank.mesh, global, to);
  const Steps steps = redistribution_steps(rank.mesh.shape(), made_in, wanted);
  ASSERT_EQ(steps.size(), 1U);
  const double own = from.is_partial() ? kSummand * rank.mesh.coordinate(rank.mesh.tensor()) : 0;
  const Box made = rank.box(made_in);
  const Array piece =
      testing::make_piece(rank, made_in, DType::kFloat64, [&](std::int64_t i) { return element(i) + own; });
  SendStream stream(rank, made_in, steps[0], cut);
  std::int64_t put = 0;
  while (!stream.done()) {
    const Box box = stream.box();
    put += box.extent.count();
    stream.put(box.empty() ? Array(rank.context, box.extent, DType::kFloat64)
                           : extract_box(rank.context, piece, relative_to(box, made), Purpose::kWorkspace));
  }
  EXPECT_EQ(put, made.extent.count());
  const int ranks = rank.mesh.size(rank.mesh.tensor());
  const bool sums = from.is_partial();
  expect_elements(rank, global, rank.box(wanted), stream.finish(), sums ? ranks : 1,
                  sums ? kSummand * ranks * (ranks - 1) / 2 : 0);
}
void check_sending(const Placement& from, const Placement& to) {
  on_ranks([&](const Rank& rank, const Shape& global, const Cut& cut) {
    check_sent(rank, global, from, to, cut);
  });
}

TEST(ReceiveStream, PacksForAllWithOneKernel) {
  const auto on_device = [](int) { return testing::SimulatedDevice::make_context(Backend::kCpu, 1); };
  run_ranks(4, {}, on_device, [&](Communicator& world) {
    Mesh mesh(world, 1, {1, 1}, 4);
    const Rank rank{world.context(), mesh};
    const auto& device = static_cast<const testing::SimulatedDevice&>(*rank.context.runtime());
    const Layout held = layout_of(mesh, {8, 16, 8}, Placement::shard(1));
    for (const Placement& to : {Placement::shard(2), Placement::replicate()}) {
      const Layout wanted = layout_of(mesh, {8, 16, 8}, to);
      const Array piece(rank.context, rank.box(held).extent, DType::kFloat32);
      const std::int64_t before = device.launches();
      ReceiveStream stream(rank, {piece, held}, redistribution_steps(mesh.shape(), held, wanted)[0], {4, 2});
      while (!stream.done()) stream.next();
      EXPECT_EQ(device.launches() - before, to.is_shard() ? 1 : 0);
    }
  });
}

/// Summands of a run are added up by one kernel, what arrived is joined by one, runs of a message by one.
TEST(SendStream, OneKernelForEachRunMessageAndJoin) {
  const auto on_device = [](int) { return testing::SimulatedDevice::make_context(Backend::kCpu, 1); };
  run_ranks(4, {}, on_device, [&](Communicator& world) {
    Mesh mesh(world, 1, {1, 1}, 4);
    const Rank rank{world.context(), mesh};
    const auto& device = static_cast<const testing::SimulatedDevice&>(*rank.context.runtime());
    for (const Placement& from : {Placement::partial_sum(), Placement::shard(2)}) {
      const Layout made_in = layout_of(mesh, {8, 16, 8}, from),
                   wanted = layout_of(mesh, {8, 16, 8}, Placement::shard(1));
      const Steps steps = redistribution_steps(mesh.shape(), made_in, wanted);
      ASSERT_EQ(steps.size(), 1U);
      const Cut cut = {4, 2};
      SendStream stream(rank, made_in, steps[0], cut);
      std::vector<Array> parts;
      while (!stream.done()) {
        const Array part(rank.context, stream.box().extent, DType::kFloat32, Purpose::kWorkspace);
        const std::int64_t before = device.launches();
        stream.put(part);
        const bool whole = !stream.done() && parts.size() % 2 == 1;
        EXPECT_EQ(device.launches() - before, whole ? 1 : 0) << "runs of a message";
        parts.push_back(part);
      }
      const std::int64_t before = device.launches();
      stream.finish();
      EXPECT_EQ(device.launches() - before, from.is_partial() ? cut.runs : 1);
    }
  });
}

/// More members than one call adds up or joins.
TEST(SendStream, FromManyRanks) {
  constexpr int kRanks = BoxTable::kMostSources + 6;
  for (const Placement& from : {Placement::partial_sum(), Placement::shard(2)}) {
    testing::run_test_ranks(kRanks, [&](Communicator& world) {
      Mesh mesh(world, 1, {1, 1}, kRanks);
      for (const Cut& cut : {Cut{1, 1}, Cut{2, 1}, Cut{2, 2}})
        check_sent({world.context(), mesh}, {1, 2 * kRanks, kRanks}, from, Placement::shard(1), cut);
    });
  }
}

TEST(SendStream, ScattersSumsAndExchanges) {
  check_sending(Placement::partial_sum(), Placement::shard(1));
  check_sending(Placement::partial_sum(), Placement::shard(2));
  check_sending(Placement::shard(1), Placement::shard(2));
  check_sending(Placement::shard(2), Placement::shard(1));
}

}  // namespace
}  // namespace jigsaw
