// Redistribution between all pairs of placements: values, bytes, and what it refuses.
#include "parallel/redistribute.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "parallel/cost.h"
#include "support/arrays.h"
#include "support/pieces.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

/// The summand that a rank holds of an element: whole numbers, so that sums are exact in any order. Ranks
/// that differ along partial axes hold different ones.
double summand(const MeshShape& mesh, std::int64_t index, const Placements& partial, const Coordinates& at) {
  std::uint64_t seed = static_cast<std::uint64_t>(index) + 1;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    seed = seed * 31 + (partial[axis].is_partial() ? static_cast<std::uint64_t>(at[a]) + 1 : 0);
  }
  return static_cast<double>((seed * 0x9E3779B97F4A7C15ULL) >> 49) - 16384;
}

/// What a rank holds of an element afterwards: the sum along the axes that were partial and are no more.
double summed(const MeshShape& mesh, std::int64_t index, const Layout& from, const Layout& to, Coordinates at,
              int axis = 0) {
  if (axis == mesh.axes) return summand(mesh, index, from.placements, at);
  if (!from.placements[axis].is_partial() || to.placements[axis].is_partial()) {
    return summed(mesh, index, from, to, at, axis + 1);
  }
  double sum = 0;
  for (int i = 0; i < mesh.size[static_cast<std::size_t>(axis)]; ++i) {
    at[static_cast<std::size_t>(axis)] = i;
    sum += summed(mesh, index, from, to, at, axis + 1);
  }
  return sum;
}

std::vector<Placement> cuts_of(const Shape& global) {
  std::vector<Placement> cuts = {Placement::replicate()};
  for (int dim = 0; dim < global.rank(); ++dim) {
    for (const int unit : {1, 3}) cuts.push_back(Placement::shard(dim, unit));
  }
  return cuts;
}

/// Every combination of placements on the domain and the tensor axis.
std::vector<Layout> layouts_of(const Mesh& mesh, const Shape& global, bool partial) {
  std::vector<Placement> options = cuts_of(global);
  if (partial) options.push_back(Placement::partial_sum());
  std::vector<Layout> layouts;
  for (const Placement& a : options) {
    for (const Placement& b : options) {
      Layout layout{global, {}};
      layout.placements[mesh.domain(0)] = a;
      layout.placements[mesh.tensor()] = b;
      // An axis of one rank needs one option only.
      if ((mesh.size(1) > 1 || a.is_replicate()) && (mesh.size(2) > 1 || b.is_replicate()))
        layouts.push_back(layout);
    }
  }
  return layouts;
}

/// Whether all ranks have equal pieces, in whatever order the axes cut.
bool even(const MeshShape& mesh, const Layout& layout) {
  std::int64_t ranks = 1;
  for (int axis = 0; axis < mesh.axes; ++axis) ranks *= mesh.size[static_cast<std::size_t>(axis)];
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const Placement& placement = layout.placements[axis];
    if (placement.is_shard() && layout.global[placement.dim] % (ranks * placement.unit) != 0) return false;
  }
  return true;
}

/// Redistributes one made-up tensor and checks this rank's elements; false when something was wrong.
bool check(const Rank& rank, const Layout& from, const Layout& to, DType dtype) {
  const MeshShape& mesh = rank.mesh.shape();
  const Coordinates& at = rank.mesh.coordinates();
  const Array piece = testing::make_piece(
      rank, from, dtype, [&](std::int64_t index) { return summand(mesh, index, from.placements, at); });
  const Traffic before = rank.mesh.world().traffic();
  const ShardedTensor result = redistribute(rank, {piece, from}, to);
  const Traffic after = rank.mesh.world().traffic();

  const Box box = rank.box(to);
  bool right = result.piece.shape() == box.extent && result.layout == to && result.dtype() == dtype;
  const Array expected = testing::make_piece(
      rank, to, dtype, [&](std::int64_t index) { return summed(mesh, index, from, to, at); });
  right = right && std::ranges::equal(HostView<std::byte>(testing::on_host(result.piece)),
                                      HostView<std::byte>(testing::on_host(expected)));
  EXPECT_TRUE(right) << "values of " << from.to_string(mesh) << " -> " << to.to_string(mesh);
  const TransferCost cost = transfer_cost(mesh, from, to, static_cast<double>(size_of(dtype)));
  std::array<double, kCollectives> sent{};
  for (std::size_t kind = 0; kind < kCollectives; ++kind) {
    sent[kind] = after.sent_bytes[kind] - before.sent_bytes[kind];
  }
  const std::vector<double> busiest = rank.mesh.world().all_reduce(sent, ReduceOp::kMax);
  const bool exact = even(mesh, from) && even(mesh, to);
  for (std::size_t kind = 0; kind < kCollectives; ++kind) {
    const double above = cost.bytes[kind] - busiest[kind];
    const bool estimated = static_cast<Collective>(kind) == Collective::kAllToAll;  // of uneven pieces
    const bool close = exact ? std::abs(above) < 1e-9 : estimated || above > -1e-9;
    EXPECT_TRUE(close) << name(static_cast<Collective>(kind)) << " of " << from.to_string(mesh) << " -> "
                       << to.to_string(mesh) << " sends " << busiest[kind] << ", its cost says "
                       << cost.bytes[kind];
    right = right && close;
  }
  return right;
}

bool can_become(const Layout& from, const Layout& to) {
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    if (to.placements[axis].is_partial() && !from.placements[axis].is_partial()) return false;
  }
  return true;
}

void check_all_pairs(int domain, int tensor, const std::vector<Shape>& shapes, DType dtype) {
  testing::run_test_ranks(domain * tensor, [&](Communicator& world) {
    Mesh mesh(world, 1, {domain}, tensor);
    const Rank rank{world.context(), mesh};
    int wrong = 0;
    for (const Shape& global : shapes) {
      const std::vector<Layout> layouts = layouts_of(mesh, global, true);
      for (const Layout& from : layouts) {
        for (const Layout& to : layouts) {
          if (can_become(from, to) && !check(rank, from, to, dtype) && ++wrong > 5) return;
        }
      }
    }
  });
}

TEST(Redistribute, AllPairsOnOneAxis) {
  const std::vector<Shape> shapes = {{7, 5, 2}, {1, 4, 6}, {3, 0, 2}, {18, 2, 9}};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    check_all_pairs(2, 1, shapes, dtype);
    check_all_pairs(3, 1, shapes, dtype);
    check_all_pairs(1, 3, shapes, dtype);
  }
}

TEST(Redistribute, AllPairsOnTwoByTwo) {
  check_all_pairs(2, 2, {{7, 5, 2}, {1, 4, 6}}, DType::kFloat32);
  check_all_pairs(2, 2, {{7, 4, 3}, {12, 3, 4}}, DType::kFloat64);
}

TEST(Redistribute, AllPairsOnThreeByTwo) {
  check_all_pairs(3, 2, {{7, 5, 2}}, DType::kFloat32);
  check_all_pairs(3, 2, {{2, 8, 5}}, DType::kFloat64);
}

TEST(Redistribute, BfloatMoves) {
  testing::run_test_ranks(4, [](Communicator& world) {
    Mesh mesh(world, 1, {2}, 2);
    const Rank rank{world.context(), mesh};
    const std::vector<Layout> layouts = layouts_of(mesh, {5, 3, 2}, false);
    for (const Layout& from : layouts) {
      for (const Layout& to : layouts) {
        if (!check(rank, from, to, DType::kBfloat16)) return;
      }
    }
  });
}

TEST(Redistribute, NothingChangesWithoutACollective) {
  testing::run_test_ranks(2, [](Communicator& world) {
    Mesh mesh(world, 1, {2}, 1);
    const Rank rank{world.context(), mesh};
    Layout layout{{5}, {}};
    layout.placements[mesh.domain(0)] = Placement::shard(0);
    EXPECT_TRUE(redistribution_steps(mesh.shape(), layout, layout).empty());
    const Array piece = testing::make_piece(rank, layout, DType::kFloat32, [](std::int64_t i) { return i; });
    EXPECT_EQ(redistribute(rank, {piece, layout}, layout).piece.identity(), piece.identity());
  });
}

TEST(Redistribute, OneCollectiveWhereOneWillDo) {
  const MeshShape mesh{2, {2, 3}};
  const Shape global{7, 5};
  const auto layout = [&](Placement a, Placement b) {
    Layout result{global, {}};
    result.placements[0] = a;
    result.placements[1] = b;
    return result;
  };
  const Placement r = Placement::replicate(), p = Placement::partial_sum(), s0 = Placement::shard(0),
                  s1 = Placement::shard(1);
  struct Case {
    Layout from, to;
    Collective kind;
    AxisSet axes;
  };
  for (const Case& c : {Case{layout(s0, s1), layout(r, r), Collective::kAllGather, 3},
                        Case{layout(s0, s1), layout(s0, r), Collective::kAllGather, 2},
                        Case{layout(p, p), layout(r, r), Collective::kAllReduce, 3},
                        Case{layout(p, s1), layout(s0, s1), Collective::kReduceScatter, 1},
                        Case{layout(p, p), layout(s0, s1), Collective::kReduceScatter, 3},
                        Case{layout(s0, r), layout(s1, r), Collective::kAllToAll, 1},
                        Case{layout(s0, s1), layout(s1, s0), Collective::kAllToAll, 3},
                        Case{layout(r, s1), layout(s0, s1), Collective::kBroadcast, 1}}) {
    const Steps steps = redistribution_steps(mesh, c.from, c.to);
    ASSERT_EQ(steps.size(), 1U) << c.from.to_string(mesh) << " -> " << c.to.to_string(mesh);
    EXPECT_EQ(steps[0].kind, c.kind) << c.from.to_string(mesh) << " -> " << c.to.to_string(mesh);
    EXPECT_EQ(steps[0].axes, c.axes) << c.from.to_string(mesh) << " -> " << c.to.to_string(mesh);
  }
}

/// Pieces of all members are packed by one kernel and come to their places by another; none where they stand
/// so already.
TEST(Redistribute, PacksAndUnpacksWithOneKernelEach) {
  const Placement whole = Placement::replicate(), rows = Placement::shard(1), columns = Placement::shard(2),
                  sum = Placement::partial_sum();
  struct Case {
    Placement from, to;
    std::int64_t launches;
  };
  const auto on_device = [](int) { return testing::SimulatedDevice::make_context(Backend::kCpu, 1); };
  run_ranks(3, {}, on_device, [&](Communicator& world) {
    Mesh mesh(world, 1, {3}, 1);
    const Rank rank{world.context(), mesh};
    const auto& device = static_cast<const testing::SimulatedDevice&>(*rank.context.runtime());
    const auto layout = [&](Placement placement) {
      Layout result{{1, 7, 5}, {}};
      result.placements[mesh.domain(0)] = placement;
      return result;
    };
    for (const Case& c : {Case{columns, whole, 1},
                          {rows, whole, 0},
                          {sum, columns, 1},
                          {sum, rows, 0},
                          {whole, columns, 1},
                          {columns, rows, 1},
                          {rows, columns, 1}}) {
      const Array piece = testing::make_piece(rank, layout(c.from), DType::kFloat32,
                                              [](std::int64_t i) { return static_cast<double>(i); });
      const std::int64_t before = device.launches();
      redistribute(rank, {piece, layout(c.from)}, layout(c.to));
      EXPECT_EQ(device.launches() - before, c.launches)
          << layout(c.from).to_string(mesh.shape()) << " -> " << layout(c.to).to_string(mesh.shape());
    }
    // Both at once, of one dim that is cut otherwise and another that is not whole rows.
    Layout from{{4, 6, 9}, {}}, to = from;
    from.placements[mesh.domain(0)] = Placement::shard(1);
    to.placements[mesh.domain(0)] = Placement::shard(2);
    const Array piece = testing::make_piece(rank, from, DType::kFloat32, [](std::int64_t) { return 1.0; });
    const std::int64_t before = device.launches();
    redistribute(rank, {piece, from}, to);
    EXPECT_EQ(device.launches() - before, 2);
  });
}

TEST(Redistribute, RefusesOtherShapesAndNewPartials) {
  const MeshShape mesh{1, {2}};
  Layout whole{{4}, {}}, partial = whole;
  partial.placements[0] = Placement::partial_sum();
  EXPECT_THROW(redistribution_steps(mesh, whole, {{5}, {}}), ShapeError);
  EXPECT_THROW(redistribution_steps(mesh, whole, partial), ShapeError);
}

}  // namespace
}  // namespace jigsaw
