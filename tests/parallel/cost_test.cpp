// What redistributions send, in closed form, beside what they send when one looks at every pair of ranks.
#include "parallel/cost.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "parallel/all_to_all.h"
#include "parallel/sent_elements.h"
#include "support/enumerated_cost.h"

namespace jigsaw {
namespace {

class RandomLayouts {
 public:
  explicit RandomLayouts(unsigned seed) : random_(seed) {}

  MeshShape mesh() {
    MeshShape shape{pick(1, 4), {}};
    int ranks = 1;
    for (int axis = 0; axis < shape.axes; ++axis) {
      const int size = pick(1, 4);
      shape.size[static_cast<std::size_t>(axis)] = ranks * size > 36 ? 1 : size;
      ranks *= shape.size[static_cast<std::size_t>(axis)];
    }
    return shape;
  }
  /// Extents that pieces are fewer than, as many as, divide, or divide with a remainder.
  Shape shape() {
    Shape shape;
    for (int dim = pick(1, 4); dim > 0; --dim) shape.append(pick(1, 3) == 1 ? pick(1, 3) : pick(4, 17));
    return shape;
  }
  /// Each dim in units of its own.
  std::vector<std::int64_t> units(const Shape& shape) {
    std::vector<std::int64_t> units;
    for (int dim = 0; dim < shape.rank(); ++dim) units.push_back(pick(0, 3) == 0 ? pick(2, 3) : 1);
    return units;
  }
  Layout layout(const MeshShape& mesh, const Shape& shape, const std::vector<std::int64_t>& units,
                bool partial) {
    Layout layout{shape, {}};
    for (int axis = 0; axis < mesh.axes; ++axis) {
      const int kind = pick(0, partial ? 5 : 4), dim = pick(0, shape.rank() - 1);
      if (kind < 4) layout.placements[axis] = Placement::shard(dim, units[static_cast<std::size_t>(dim)]);
      if (kind == 5) layout.placements[axis] = Placement::partial_sum();
    }
    return layout;
  }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  std::mt19937 random_;
};

bool some_axis_whole(const MeshShape& mesh, const Step& step, const Layout& held) {
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (contains(step.axes, axis) && !held.placements[axis].is_shard()) return true;
  }
  return false;
}

/// Every axis cuts the pieces of the axes before it evenly.
bool even(const MeshShape& mesh, const Layout& layout) {
  const Shape piece = layout.largest_piece(mesh);
  std::int64_t pieces = 1;
  for (int dim = 0; dim < piece.rank(); ++dim) {
    for (const int axis : layout.cutting(mesh, dim)) pieces *= mesh.size[static_cast<std::size_t>(axis)];
  }
  return piece.count() * pieces == layout.global.count();
}

/// The most elements that any rank has for another in an all-to-all.
std::int64_t enumerated_block(const MeshShape& mesh, const Step& step, const Layout& held) {
  std::int64_t most = 0;
  for (int here = 0; here < mesh.ranks(); ++here) {
    for (int there = 0; there < mesh.ranks(); ++there) {
      const Coordinates at = mesh.coordinates(here), to = mesh.coordinates(there);
      bool together = true;
      for (int axis = 0; axis < mesh.axes; ++axis) {
        const auto a = static_cast<std::size_t>(axis);
        together = together && (at[a] == to[a] || contains(step.axes, axis));
      }
      if (together && feeds(step, held, at, to))
        most = std::max(most, intersect(held.box(mesh, at), step.to.box(mesh, to)).extent.count());
    }
  }
  return most;
}

TEST(AllToAll, BlocksThatAreForwardedHoldWhatAnyRankHasForAnother) {
  RandomLayouts random(3);
  int forwarded = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    const MeshShape mesh = random.mesh();
    const Shape shape = random.shape();
    const std::vector<std::int64_t> units = random.units(shape);
    Layout held = random.layout(mesh, shape, units, true);
    for (const Step& step : redistribution_steps(mesh, held, random.layout(mesh, shape, units, false))) {
      const std::int64_t block =
          step.kind == Collective::kAllToAll ? forwarded_block(mesh, step, held, 4) : 0;
      if (block > 0) {
        EXPECT_GE(block, enumerated_block(mesh, step, held))
            << held.to_string(mesh) << " to " << step.to.to_string(mesh);
        ++forwarded;
      }
      held = step.to;
    }
  }
  EXPECT_GT(forwarded, 100);
}

/// Whose parts before and behind it, paired, would take a hundred GB. Rank (0, 2) has one row, which it gives
/// away; (0, 0) has two and keeps both.
TEST(TransferCost, IsFoundOnAQuarterOfAMillionRanks) {
  constexpr int kRanks = 1 << 17;
  MeshShape mesh;
  mesh.axes = 2;
  mesh.size = {2, kRanks};
  Layout held{Shape{kRanks + 1, 2}, {}}, to = held;
  held.placements[1] = Placement::shard(0);
  to.placements[0] = Placement::shard(1);
  to.placements[1] = Placement::shard(0, 2);
  Step step;
  step.kind = Collective::kAllToAll;
  step.axes = axis_bit(0) | axis_bit(1);
  step.to = to;
  EXPECT_EQ(SentElements(mesh).most(step, held), 1);
}

TEST(TransferCost, ClosedFormsAreWhatEveryPairOfRanksSends) {
  RandomLayouts random(1);
  std::map<std::vector<int>, SentElements> of_mesh;  // which remember what they have found
  int whole = 0, cut = 0, uneven = 0, empty = 0;
  for (int trial = 0; trial < 30000; ++trial) {
    const MeshShape mesh = random.mesh();
    const std::vector<int> sizes(mesh.size.begin(), mesh.size.begin() + mesh.axes);
    SentElements& sent = of_mesh.try_emplace(sizes, mesh).first->second;
    const Shape shape = random.shape();
    const std::vector<std::int64_t> units = random.units(shape);
    const Layout from = random.layout(mesh, shape, units, true),
                 to = random.layout(mesh, shape, units, false);
    Layout held = from;
    TransferCost sum;
    bool exact = true;
    for (const Step& step : redistribution_steps(mesh, from, to)) {
      const double enumerated = testing::enumerated_sent(mesh, step, held);
      if (step.kind == Collective::kAllToAll) {
        const auto closed = static_cast<double>(sent.most(step, held));
        const bool evenly = even(mesh, held) && even(mesh, step.to);
        exact = evenly || some_axis_whole(mesh, step, held);
        if (exact) {
          EXPECT_EQ(closed, enumerated) << held.to_string(mesh) << " to " << step.to.to_string(mesh);
        }
        some_axis_whole(mesh, step, held) ? ++whole : ++cut;
        uneven += evenly ? 0 : 1;
        empty += held.box(mesh, mesh.coordinates(mesh.ranks() - 1)).empty() ? 1 : 0;
      }
      sum.bytes[static_cast<std::size_t>(step.kind)] += 4 * enumerated;
      sum.messages += step.kind == Collective::kBroadcast ? 0 : 1;
      held = step.to;
    }
    const TransferCost cost = transfer_cost(mesh, from, to, 4);
    EXPECT_EQ(cost.messages, sum.messages);
    if (!exact) continue;
    for (std::size_t kind = 0; kind < sum.bytes.size(); ++kind) {
      EXPECT_EQ(cost.bytes[kind], sum.bytes[kind]) << name(static_cast<Collective>(kind)) << " of "
                                                   << from.to_string(mesh) << " to " << to.to_string(mesh);
    }
  }
  std::printf(
      "all-to-alls of what is whole along some axis: %d, cut along all: %d; uneven %d, with empty pieces "
      "%d\n",
      whole, cut, uneven, empty);
  EXPECT_GT(whole, 1000);
  EXPECT_GT(cut, 1000);
  EXPECT_GT(empty, 1000);
}

/// Whether ranks that differ along these axes only are always on one node.
bool together_on_nodes(const MeshShape& mesh, AxisSet axes, int ranks_per_node) {
  for (int here = 0; here < mesh.ranks(); ++here) {
    for (int there = 0; there < mesh.ranks(); ++there) {
      const Coordinates at = mesh.coordinates(here), to = mesh.coordinates(there);
      bool group = true;
      for (int axis = 0; axis < mesh.axes; ++axis) {
        const auto a = static_cast<std::size_t>(axis);
        group = group && (at[a] == to[a] || contains(axes, axis));
      }
      if (group && here / ranks_per_node != there / ranks_per_node) return false;
    }
  }
  return true;
}

TEST(TransferCost, GoesByTheLinksOfItsAxes) {
  RandomLayouts random(4);
  int within = 0, between = 0, both = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const MeshShape mesh = random.mesh();
    CostModel model;
    model.ranks_per_node = 1 + trial % 9;
    model.node = {1e11, 1e-6};
    for (AxisSet axes = 1; axes < axis_bit(mesh.axes); ++axes) {
      const bool near = together_on_nodes(mesh, axes, model.ranks_per_node);
      const Link& link = model.link(mesh, axes);
      bool some = false;  // else nothing travels
      for (int axis = 0; axis < mesh.axes; ++axis)
        some = some || (contains(axes, axis) && mesh.size[static_cast<std::size_t>(axis)] > 1);
      if (!some) continue;
      EXPECT_EQ(link, near ? model.node : model.network) << trial << ", axes " << axes;
    }
    const Shape shape = random.shape();
    const std::vector<std::int64_t> units = random.units(shape);
    const Layout from = random.layout(mesh, shape, units, true),
                 to = random.layout(mesh, shape, units, false);
    Layout held = from;
    double wanted = 0;
    bool near = false, far = false;
    for (const Step& step : redistribution_steps(mesh, from, to)) {
      const bool here = together_on_nodes(mesh, step.axes, model.ranks_per_node);
      (here ? near : far) = true;
      const TransferCost cost = transfer_cost(mesh, held, step.to, model.element_bytes);
      wanted += cost.seconds(here ? model.node : model.network);
      held = step.to;
    }
    EXPECT_NEAR(transfer_seconds(mesh, from, to, model), wanted, 1e-12 * wanted) << trial;
    within += near && !far ? 1 : 0;
    between += far && !near ? 1 : 0;
    both += near && far ? 1 : 0;
  }
  std::printf("redistributions within nodes: %d, between: %d, both: %d\n", within, between, both);
  EXPECT_GT(within, 100);
  EXPECT_GT(between, 100);
  EXPECT_GT(both, 10);
}

std::vector<std::vector<int>> groups_along(const MeshShape& mesh, AxisSet axes) {
  std::map<std::vector<int>, std::vector<int>> groups;  // by the other coordinates
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const Coordinates at = mesh.coordinates(rank);
    std::vector<int> others;
    for (int axis = 0; axis < mesh.axes; ++axis) {
      if (!contains(axes, axis)) others.push_back(at[static_cast<std::size_t>(axis)]);
    }
    groups[others].push_back(rank);
  }
  std::vector<std::vector<int>> all;
  for (const auto& [others, ranks] : groups) all.push_back(ranks);
  return all;
}

TEST(NodeGrid, OfAxesIsThatOfAllTheirGroups) {
  RandomLayouts random(5);
  int several = 0, missed = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const MeshShape mesh = random.mesh();
    const int ranks_per_node = 1 + trial % 9;
    for (AxisSet axes = 1; axes < axis_bit(mesh.axes); ++axes) {
      const NodeGrid grid = node_grid(mesh, axes, ranks_per_node);
      bool all = true;
      NodeGrid first;
      const std::vector<std::vector<int>> groups = groups_along(mesh, axes);
      for (const std::vector<int>& ranks : groups) {
        const NodeGrid of_group = node_grid(ranks, ranks_per_node);
        if (&ranks == &groups.front()) first = of_group;
        all = all && of_group == first;
        if (grid.several()) {
          EXPECT_EQ(of_group, grid) << trial << ", axes " << axes;
        }
      }
      several += grid.several() ? 1 : 0;
      missed += all && first.several() && !grid.several() ? 1 : 0;
    }
  }
  std::printf("groups on several nodes: %d, where nodes part an axis unevenly: %d\n", several, missed);
  EXPECT_GT(several, 300);
  EXPECT_LT(missed, several / 10);
}

/// Four nodes of eight, of a piece a rank: 3 of the 31 that each rank sends leave the node.
TEST(CostModel, LargeReductionsAndGathersLeaveANodeOnce) {
  const CostModel model = cost_model(Device::kCuda, DType::kFloat32, 8);
  const MeshShape mesh{2, {4, 8}};
  const AxisSet all = axis_bit(0) | axis_bit(1);
  const double network = 1 / model.network.bytes_per_second, node = 1 / model.node.bytes_per_second;
  const auto seconds = [&](Collective kind, double bytes) {
    TransferCost cost;
    cost.add(kind, bytes, 1);
    return model.seconds(mesh, all, cost);
  };
  const double piece = 1e6, start = model.network.latency_seconds, again = model.node.latency_seconds;
  const double levels = 3 * piece * network + 28 * piece * node;
  EXPECT_DOUBLE_EQ(seconds(Collective::kReduceScatter, 31 * piece), start + again + levels);
  EXPECT_DOUBLE_EQ(seconds(Collective::kAllGather, 31 * piece), start + again + levels);
  EXPECT_DOUBLE_EQ(seconds(Collective::kAllReduce, 62 * piece), start + 2 * (again + levels));
  EXPECT_DOUBLE_EQ(seconds(Collective::kAllToAll, 31 * piece), start + 31 * piece * network);
  EXPECT_DOUBLE_EQ(seconds(Collective::kExchange, 31 * piece), start + 31 * piece * network);
  EXPECT_DOUBLE_EQ(model.seconds_per_byte(mesh, all) * 31 * piece, levels);
  // From where 3 · 7 pieces are a MiB.
  const double least = (1 << 20) / 21.0;
  EXPECT_LT(seconds(Collective::kReduceScatter, 31 * least * 1.001),
            seconds(Collective::kReduceScatter, 31 * least * 0.999));
  EXPECT_DOUBLE_EQ(seconds(Collective::kReduceScatter, 31 * 1e4), start + 31 * 1e4 * network);
  // Along one axis alone there is one rank on each node, or one node.
  EXPECT_DOUBLE_EQ(model.seconds_per_byte(mesh, axis_bit(0)), network);
  EXPECT_DOUBLE_EQ(model.seconds_per_byte(mesh, axis_bit(1)), node);
}

/// A step on processors is planned, and its products cut, as it always was: figures of runs hang on it.
TEST(CostModel, OfProcessorsIsTheSameHoweverManyShareANode) {
  for (const DType type : {DType::kFloat32, DType::kBfloat16, DType::kFloat64}) {
    const CostModel model = cost_model(Device::kCpu, type, 8);
    EXPECT_EQ(model.flops_per_second, 2e12);
    EXPECT_EQ(model.memory_bytes_per_second, 2e11);
    EXPECT_EQ(model.link({2, {2, 4}}, axis_bit(1)), (Link{6e9, 1e-5}));
    EXPECT_EQ(model.element_bytes, 4);
    EXPECT_EQ(model.part_seconds, 5e-5);
    EXPECT_EQ(model.product_seconds, 0);
  }
}

/// Looking at every pair of 1,024 ranks for each of these would take a quarter of an hour.
TEST(TransferCost, IsFoundFastForAThousandRanks) {
  RandomLayouts random(2);
  const MeshShape mesh{4, {1, 16, 16, 4}};
  const Shape shape{1, 721, 1440, 4320};
  const std::vector<std::int64_t> units = {1, 8, 8, 1};
  int whole = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const Layout from = random.layout(mesh, shape, units, true),
                 to = random.layout(mesh, shape, units, false);
    const TransferCost cost = transfer_cost(mesh, from, to, 4);
    EXPECT_GE(cost.total_bytes(), 0);
    Layout held = from;
    for (const Step& step : redistribution_steps(mesh, from, to)) {
      whole += step.kind == Collective::kAllToAll && some_axis_whole(mesh, step, held) ? 1 : 0;
      held = step.to;
    }
  }
  EXPECT_GT(whole, 1000);
}

}  // namespace
}  // namespace jigsaw
