// How tensors are cut: ranges, units, nested axes, empty pieces; meshes and their groups.
#include "parallel/layout.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/record/record.h"
#include "comm/thread/run_ranks.h"
#include "parallel/mesh.h"

namespace jigsaw {
namespace {

MeshShape mesh_of(const std::vector<int>& sizes) {
  MeshShape mesh;
  mesh.axes = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), mesh.size.begin());
  return mesh;
}

Layout layout_of(const Shape& global, const std::vector<Placement>& placements) {
  Layout layout{global, {}};
  std::copy(placements.begin(), placements.end(), layout.placements.of.begin());
  return layout;
}

/// [begin, end) of `dim` on every rank.
std::vector<std::pair<std::int64_t, std::int64_t>> cuts(const Layout& layout, const MeshShape& mesh,
                                                        int dim) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const Box box = layout.box(mesh, mesh.coordinates(rank));
    result.emplace_back(box.begin[dim], box.end(dim));
  }
  return result;
}

using Cuts = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST(CutRange, GivesTheRemainderToTheFirst) {
  const Layout layout = layout_of({721}, {Placement::shard(0)});
  EXPECT_EQ(cuts(layout, mesh_of({4}), 0), (Cuts{{0, 181}, {181, 361}, {361, 541}, {541, 721}}));
}

TEST(CutRange, CoversEveryExtentInOrder) {
  for (const std::int64_t extent : {0, 1, 2, 5, 7, 12, 721}) {
    for (const int count : {1, 2, 3, 5, 8}) {
      std::int64_t end = 0;
      for (int i = 0; i < count; ++i) {
        const Range range = cut_range(extent, count, i);
        EXPECT_EQ(range.begin, end);
        EXPECT_TRUE(range.size() == extent / count || range.size() == extent / count + 1);
        end = range.end;
      }
      EXPECT_EQ(end, extent);
    }
  }
}

TEST(Layout, CutsWholeUnits) {
  // 10 points in patches of 3 are 4 patches, the last of one point.
  const Layout layout = layout_of({10}, {Placement::shard(0, 3)});
  EXPECT_EQ(cuts(layout, mesh_of({2}), 0), (Cuts{{0, 6}, {6, 10}}));
  EXPECT_EQ(cuts(layout, mesh_of({3}), 0), (Cuts{{0, 6}, {6, 9}, {9, 10}}));
}

TEST(Layout, PiecesMayBeEmpty) {
  EXPECT_EQ(cuts(layout_of({2}, {Placement::shard(0)}), mesh_of({3}), 0), (Cuts{{0, 1}, {1, 2}, {2, 2}}));
  EXPECT_EQ(cuts(layout_of({5}, {Placement::shard(0, 4)}), mesh_of({3}), 0), (Cuts{{0, 4}, {4, 5}, {5, 5}}));
  EXPECT_EQ(cuts(layout_of({0}, {Placement::shard(0)}), mesh_of({2}), 0), (Cuts{{0, 0}, {0, 0}}));
}

TEST(Layout, LowerAxesCutFirst) {
  // 7 on 2 is [4, 3]; each on 3 is [2, 1, 1] and [1, 1, 1].
  const Layout layout = layout_of({7, 2}, {Placement::shard(0), Placement::shard(0)});
  EXPECT_EQ(cuts(layout, mesh_of({2, 3}), 0), (Cuts{{0, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}}));
  // In units of 2: 4 units are [2, 2], each [1, 1, 0] units; the last unit is one element.
  const Layout units = layout_of({7, 2}, {Placement::shard(0, 2), Placement::shard(0, 2)});
  EXPECT_EQ(cuts(units, mesh_of({2, 3}), 0), (Cuts{{0, 2}, {2, 4}, {4, 4}, {4, 6}, {6, 7}, {7, 7}}));
}

TEST(Layout, ReplicatedAndPartialAxesHoldTheWholeExtent) {
  const Layout layout =
      layout_of({4, 6}, {Placement::partial_sum(), Placement::shard(1), Placement::replicate()});
  const MeshShape mesh = mesh_of({2, 3, 2});
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const Box box = layout.box(mesh, mesh.coordinates(rank));
    EXPECT_EQ(box.extent, (Shape{4, 2}));
    EXPECT_EQ(box.begin, (Shape{0, 2 * mesh.coordinates(rank)[1]}));
  }
}

TEST(Layout, EveryElementIsHeldOncePerReplica) {
  const Shape global{5, 4, 7};
  const MeshShape mesh = mesh_of({2, 3, 2});
  const std::vector<Placement> options = {Placement::replicate(), Placement::shard(0), Placement::shard(2, 3),
                                          Placement::shard(1)};
  for (const Placement& a : options) {
    for (const Placement& b : options) {
      for (const Placement& c : options) {
        const Layout layout = layout_of(global, {a, b, c});
        std::int64_t held = 0, copies = 1;
        for (int axis = 0; axis < 3; ++axis) {
          if (!layout.placements[axis].is_shard()) copies *= mesh.size[static_cast<std::size_t>(axis)];
        }
        for (int rank = 0; rank < mesh.ranks(); ++rank) {
          const Box box = layout.box(mesh, mesh.coordinates(rank));
          held += box.extent.count();
          EXPECT_EQ(intersect(box, Box::whole(global)).extent.count(), box.extent.count());
        }
        EXPECT_EQ(held, copies * global.count()) << layout.to_string(mesh);
      }
    }
  }
}

TEST(Layout, CuttingNamesAxesOutermostFirstWithoutThoseOfOneRank) {
  const Layout layout =
      layout_of({8, 8}, {Placement::shard(0), Placement::shard(0), Placement::shard(1), Placement::shard(0)});
  EXPECT_EQ(layout.cutting(mesh_of({2, 1, 2, 2}), 0), (std::vector<int>{0, 3}));
  EXPECT_EQ(layout.cutting(mesh_of({2, 1, 2, 2}), 1), (std::vector<int>{2}));
}

TEST(Layout, DualHoldsGradientsOfPartialValuesWhole) {
  const Layout layout =
      layout_of({8}, {Placement::partial_sum(), Placement::shard(0, 2), Placement::replicate()});
  const Placements gradient = dual(layout.placements);
  EXPECT_TRUE(gradient[0].is_replicate());
  EXPECT_EQ(gradient[1], Placement::shard(0, 2));
  EXPECT_TRUE(gradient[2].is_replicate());
}

TEST(Layout, PrintsPlacementsByAxis) {
  const Layout layout =
      layout_of({8, 9}, {Placement::partial_sum(), Placement::shard(1, 3), Placement::shard(0)});
  EXPECT_EQ(layout.to_string(mesh_of({2, 2, 2})), "[8, 9]{P(sum) S(1/3) S(0)}");
}

TEST(Mesh, NumbersRanksTensorFastest) {
  run_ranks(12, [](Communicator& world) {
    Mesh mesh(world, 1, {2, 3}, 2);
    EXPECT_EQ(mesh.shape().axes, 4);
    EXPECT_EQ(mesh.coordinate(mesh.tensor()), world.rank() % 2);
    EXPECT_EQ(mesh.coordinate(mesh.domain(1)), world.rank() / 2 % 3);
    EXPECT_EQ(mesh.coordinate(mesh.domain(0)), world.rank() / 6);
    EXPECT_EQ(mesh.coordinate(Mesh::kData), 0);
  });
}

TEST(Mesh, GroupsDifferAlongTheirAxesOnly) {
  run_ranks(12, [](Communicator& world) {
    Mesh mesh(world, 1, {2, 3}, 2);
    const AxisSet axes = axis_bit(mesh.domain(0)) | axis_bit(mesh.tensor());
    Communicator& group = mesh.communicator(axes);
    ASSERT_EQ(group.size(), 4);
    EXPECT_EQ(mesh.member(axes, group.rank()), mesh.coordinates());
    for (int i = 0; i < 4; ++i) {
      const int rank = std::stoi(group.broadcast_text(std::to_string(world.rank()), i));
      EXPECT_EQ(mesh.shape().coordinates(rank), mesh.member(axes, i));
      EXPECT_EQ(mesh.shape().coordinates(rank)[2], mesh.coordinate(mesh.domain(1)));
    }
    EXPECT_EQ(&mesh.communicator(axes | axis_bit(Mesh::kData)), &group);  // data has one rank
  });
}

TEST(Mesh, RefusesAnotherNumberOfRanks) {
  run_ranks(3, [](Communicator& world) {
    try {
      Mesh(world, 1, {2, 1}, 2);
      ADD_FAILURE() << "a mesh of four on three ranks";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("needs 4 ranks, but 3 were started"), std::string::npos)
          << error.what();
    }
  });
}

TEST(Mesh, CutsFieldsBySampleSpaceAndChannel) {
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, 5, 16);  // coordinates 0, 1, 0, 1
  const Mesh mesh(*world, 2, {2, 2}, 2);
  const Layout layout = mesh.field_layout({4, 10, 9, 3}, {3, 1});
  EXPECT_EQ(layout.box(mesh.shape(), mesh.coordinates()), (Box{{0, 6, 0, 2}, {2, 4, 5, 1}}));
  EXPECT_THROW(static_cast<void>(mesh.field_layout({4, 10, 9})), Error);
}

}  // namespace
}  // namespace jigsaw
