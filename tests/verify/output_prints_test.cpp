#include "verify/output_prints.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/thread/run_ranks.h"
#include "support/pieces.h"

namespace jigsaw {
namespace {

/// Fingerprints of a field on this mesh, as if an operation had given it.
/// @param whole  all channels are on each rank of the axis `tensor`.
OutputPrint print_of(Communicator& world, const std::vector<int>& domain, int tensor, double error,
                     bool whole = false) {
  Mesh mesh(world, 1, domain, tensor);
  const Rank rank{world.context(), mesh};
  Layout layout = mesh.field_layout({2, 7, 5, 3});
  if (whole) layout.placements[mesh.shape().axes - 1] = Placement::replicate();
  const Array piece = testing::make_piece(rank, layout, DType::kFloat64, [&](std::int64_t i) {
    const auto x = static_cast<double>(i);
    return std::sin(x) + error * std::cos(3 * x);
  });
  OutputPrints prints(rank);
  world.context().state<OutputWatch>().saw({"block", 1, "op", OutputWatch::Phase::kForward}, {piece, layout});
  return prints.collect().at(0);
}

TEST(OutputPrints, AreThoseOfTheWholeValueOnEveryMesh) {
  OutputPrint one, many;
  run_ranks(1, [&](Communicator& world) { one = print_of(world, {1, 1}, 1, 0); });
  run_ranks(4, [&](Communicator& world) {
    const OutputPrint mine = print_of(world, {2, 1}, 2, 0);
    if (world.rank() == 3) many = mine;
  });
  EXPECT_LT(OutputPrint::difference(many, one), 1e-12);
  EXPECT_NEAR(many.squares, one.squares, 1e-9);
}

TEST(OutputPrints, CountOnceWhatSeveralRanksHold) {
  OutputPrint one, many;
  run_ranks(1, [&](Communicator& world) { one = print_of(world, {1, 1}, 1, 0); });
  run_ranks(4, [&](Communicator& world) {
    const OutputPrint mine = print_of(world, {2, 1}, 2, 0, true);
    if (world.rank() == 1) many = mine;
  });
  EXPECT_LT(OutputPrint::difference(many, one), 1e-12);
  EXPECT_NEAR(many.squares, one.squares, 1e-9);
}

TEST(OutputPrints, TellHowFarValuesAreApart) {
  OutputPrint exact, off;
  run_ranks(1, [&](Communicator& world) { exact = print_of(world, {1, 1}, 1, 0); });
  run_ranks(2, [&](Communicator& world) {
    const OutputPrint mine = print_of(world, {2, 1}, 1, 1e-3);
    if (world.rank() == 0) off = mine;
  });
  // sin and cos have the same norm; eight sums tell it to a factor of about two.
  EXPECT_GT(OutputPrint::difference(off, exact), 3e-4);
  EXPECT_LT(OutputPrint::difference(off, exact), 3e-3);
}

}  // namespace
}  // namespace jigsaw
