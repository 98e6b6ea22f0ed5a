// Exchanges of random index maps on random cuts: values against a loop over single elements, the adjoint
// against the scalar product, bytes against a count of the elements that ranks hold for each other.
#include "parallel/exchange.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <utility>

#include "base/text.h"
#include "support/arrays.h"
#include "support/given_seeds.h"
#include "support/pieces.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

using testing::values_of;

struct Sizes {
  std::vector<int> domain;
  int tensor;
  int ranks() const { return tensor * std::accumulate(domain.begin(), domain.end(), 1, std::multiplies<>()); }
};

/// One exchange of a field [B, H, W, C].
struct Case {
  Sizes mesh;
  Layout input, output;
  IndexMap map;

  std::string to_string() const {
    MeshShape shape{4, {1, mesh.domain[0], mesh.domain[1], mesh.tensor}};
    std::string text = concat("domain ", mesh.domain[0], "x", mesh.domain[1], " tensor ", mesh.tensor, " ",
                              input.to_string(shape), " -> ", output.to_string(shape));
    for (const DimMap& dim : map.dims) {
      text += concat("; dim ", dim.dim, " (o*", dim.reads.numerator, "+[", dim.reads.first, ",",
                     dim.reads.last, "])/", dim.reads.denominator, " edges ", static_cast<int>(dim.low), ",",
                     static_cast<int>(dim.high));
    }
    return text;
  }
};

// ---- the reference: single coordinates

struct Point {
  bool zero = false;
  int crossings = 0;
  std::int64_t at = 0;
};

Point beyond(Edge edge, std::int64_t distance, std::int64_t extent, Point point) {
  // `distance` 1 is the first coordinate beyond; the result is counted inwards from that end.
  point.zero = edge == Edge::kZero || edge == Edge::kNone;
  if (edge == Edge::kReflect) point.at = extent == 1 ? 0 : distance;
  if (edge == Edge::kReplicate) point.at = 0;
  if (edge == Edge::kPeriodic) point.at = extent - distance;
  if (edge == Edge::kPolePoint) point.at = extent == 1 ? 0 : distance;
  if (edge == Edge::kPoleCell) point.at = distance - 1;
  if (is_pole(edge)) ++point.crossings;
  return point;
}

Point follow(const DimMap& map, std::int64_t extent, Point point) {
  if (point.zero || (point.at >= 0 && point.at < extent)) return point;
  if (point.at < 0) return follow(map, extent, beyond(map.low, -point.at, extent, point));
  Point next = beyond(map.high, point.at - (extent - 1), extent, point);
  next.at = extent - 1 - next.at;
  return follow(map, extent, next);
}

/// Global coordinates and the number of poles crossed of a padded coordinate; zero where there is none.
std::pair<Shape, Point> source_of(const Case& what, Shape padded) {
  Point all;
  for (const DimMap& dim : what.map.dims) {
    const Point point = follow(dim, what.input.global[dim.dim], {false, 0, padded[dim.dim]});
    padded[dim.dim] = point.at;
    all.zero = all.zero || point.zero;
    all.crossings += point.crossings;
  }
  const int circle = what.map.circle;
  if (circle >= 0 && all.crossings % 2 == 1) {
    const std::int64_t extent = what.input.global[circle];
    padded[circle] = (padded[circle] + extent / 2) % extent;
  }
  return {padded, all};
}

std::int64_t index_of(const Shape& global, const Shape& at) {
  std::int64_t index = 0;
  for (int dim = 0; dim < global.rank(); ++dim) index = index * global[dim] + at[dim];
  return index;
}

double element(std::int64_t index) {
  return std::sin(1.0 + 0.7 * static_cast<double>(index));
}

double padded_element(const Case& what, const Shape& padded) {
  const auto [at, point] = source_of(what, padded);
  if (point.zero) return 0;
  const double value = element(index_of(what.input.global, at));
  if (what.map.crossing.factor.empty() || point.crossings % 2 == 0) return value;
  const auto channel = static_cast<std::size_t>(at[3]);
  return value * what.map.crossing.factor[channel] + what.map.crossing.offset[channel];
}

template <typename F>
void for_each_coordinate(const Box& box, F&& f) {
  for (std::int64_t i = 0; i < box.extent.count(); ++i) {
    Shape at = box.begin;
    std::int64_t rest = i;
    for (int dim = at.rank() - 1; dim >= 0; --dim) {
      at[dim] += rest % box.extent[dim];
      rest /= box.extent[dim];
    }
    f(at, i);
  }
}

/// What this rank's outputs read, from each single output.
Box wanted_box(const Case& what, const Rank& rank) {
  Box wanted = rank.box(what.input);
  const Box outputs = rank.box(what.output);
  for (const DimMap& dim : what.map.dims) {
    std::int64_t begin = 1 << 20, end = -(1 << 20);
    for (std::int64_t o = outputs.begin[dim.dim]; o < outputs.end(dim.dim); ++o) {
      const auto floor = [&](std::int64_t offset) {
        return static_cast<std::int64_t>(
            std::floor(static_cast<double>(o * dim.reads.numerator + offset) / dim.reads.denominator));
      };
      begin = std::min(begin, floor(dim.reads.first));
      end = std::max(end, floor(dim.reads.last) + 1);
    }
    if (dim.low == Edge::kNone) begin = std::max<std::int64_t>(begin, 0);
    if (dim.high == Edge::kNone) end = std::min(end, what.input.global[dim.dim]);
    wanted.begin[dim.dim] = begin < end ? begin : 0;
    wanted.extent[dim.dim] = std::max<std::int64_t>(end - begin, 0);
  }
  return wanted;
}

// ---- the checks, on one rank

void check_values(const Case& what, const Rank& rank, const Exchange& exchange, const Array& piece) {
  const Array all = exchange.gather(rank, piece);
  ASSERT_EQ(exchange.wanted(), wanted_box(what, rank));
  ASSERT_EQ(all.shape(), exchange.wanted().extent);
  const std::vector<double> gathered = testing::values_of(all);
  int wrong = 0;
  for_each_coordinate(exchange.wanted(), [&](const Shape& at, std::int64_t i) {
    wrong += gathered[static_cast<std::size_t>(i)] != padded_element(what, at) ? 1 : 0;
  });
  EXPECT_EQ(wrong, 0) << "elements of " << exchange.wanted();
  const std::vector<double> inside =
      testing::values_of(exchange.assemble(rank, piece, Array(), exchange.inside()));
  for_each_coordinate(exchange.inside(), [&](const Shape& at, std::int64_t i) {
    wrong += inside[static_cast<std::size_t>(i)] != padded_element(what, at) ? 1 : 0;
  });
  EXPECT_EQ(wrong, 0) << "elements inside " << exchange.inside();
  // What outputs inside read, too, is here before anything arrives.
  const Box inner = exchange.region_of(exchange.outputs_inside(rank.box(what.output)));
  const std::vector<double> read = testing::values_of(exchange.assemble(rank, piece, Array(), inner));
  for_each_coordinate(inner, [&](const Shape& at, std::int64_t i) {
    wrong += read[static_cast<std::size_t>(i)] != padded_element(what, at) ? 1 : 0;
  });
  EXPECT_EQ(wrong, 0) << "elements that outputs inside read " << inner;
  if (!exchange.travels()) return;
  const Array arrived = exchange.start(rank, piece).wait();
  const std::vector<Box> regions = {exchange.wanted(), exchange.inside(), exchange.wanted()};
  const std::vector<Array> parts = exchange.assemble(rank, piece, arrived, regions);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const std::vector<double> values = testing::values_of(parts[part]);
    for_each_coordinate(regions[part], [&](const Shape& at, std::int64_t i) {
      wrong += values[static_cast<std::size_t>(i)] != padded_element(what, at) ? 1 : 0;
    });
  }
  EXPECT_EQ(wrong, 0) << "elements of several regions";
}

double scalar_product(const Array& a, const Array& b) {
  const std::vector<double> x = values_of(a), y = values_of(b);
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

/// <A x, y> = <x, A' y>, where A is the linear part.
void check_adjoint(const Case& what, const Rank& rank, const Array& piece) {
  IndexMap linear = what.map;
  linear.crossing.offset.clear();
  const std::shared_ptr<const Exchange> exchange = Exchange::of(rank, linear, what.input, what.output);
  const Array y = testing::random_array(rank.context, exchange->wanted().extent, DType::kFloat64,
                                        static_cast<unsigned>(7 + rank.mesh.world().rank()));
  const std::array mine = {scalar_product(exchange->gather(rank, piece), y),
                           scalar_product(piece, exchange->scatter(rank, y))};
  const std::vector<double> sums = rank.mesh.world().all_reduce(mine, ReduceOp::kSum);
  EXPECT_NEAR(sums[0], sums[1], 1e-11 * (1 + std::abs(sums[0])));
}

/// Each rank sends exactly the elements that others read and that it holds, among ranks that differ along
/// axes which cut a dim of the map; as many as sent_elements() says.
void check_bytes(const Case& what, const Rank& rank, const Exchange& exchange, const Array& piece) {
  const auto kind = static_cast<std::size_t>(Collective::kExchange);
  const double before = rank.mesh.world().traffic().sent_bytes[kind];
  exchange.start(rank, piece).wait();
  const double sent = rank.mesh.world().traffic().sent_bytes[kind] - before;
  EXPECT_EQ(sent, 8.0 * static_cast<double>(exchange.sent_elements()));

  const Box held = rank.box(what.input);
  double foreign = 0;
  for_each_coordinate(exchange.wanted(), [&](const Shape& padded, std::int64_t) {
    const auto [at, point] = source_of(what, padded);
    if (point.zero) return;
    for (int dim = 0; dim < 4; ++dim) {
      if (at[dim] < held.begin[dim] || at[dim] >= held.end(dim)) {
        foreign += 8;
        return;
      }
    }
  });
  const std::vector<double> sums = rank.mesh.world().all_reduce(std::array{sent, foreign}, ReduceOp::kSum);
  EXPECT_EQ(sums[0], sums[1]) << "bytes sent and bytes that others hold";
}

void check(const Case& what) {
  SCOPED_TRACE(what.to_string());
  testing::run_test_ranks(what.mesh.ranks(), [&](Communicator& world) {
    Mesh mesh(world, 1, what.mesh.domain, what.mesh.tensor);
    const Rank rank{world.context(), mesh};
    const Array piece = testing::make_piece(rank, what.input, DType::kFloat64, element);
    const std::shared_ptr<const Exchange> exchange = Exchange::of(rank, what.map, what.input, what.output);
    EXPECT_EQ(exchange, Exchange::of(rank, what.map, what.input, what.output)) << "compiled once";
    check_values(what, rank, *exchange, piece);
    check_adjoint(what, rank, piece);
    check_bytes(what, rank, *exchange, piece);
  });
}

// ---- random cases

class Dice {
 public:
  explicit Dice(unsigned seed) : generator_(seed) {}
  std::int64_t roll(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool often() { return roll(0, 3) > 0; }
  template <typename T>
  T pick(const std::vector<T>& options) {
    return options[static_cast<std::size_t>(roll(0, std::ssize(options) - 1))];
  }

 private:
  std::mt19937_64 generator_;
};

Reads random_reads(Dice& dice) {
  const std::int64_t kernel = dice.roll(1, 5), stride = dice.roll(1, 3), dilation = dice.roll(1, 2);
  switch (dice.roll(0, 3)) {
    case 0:
      return Reads::window(kernel, stride, dilation, dice.roll(0, kernel));
    case 1:
      return Reads::transposed(kernel, stride, dilation, dice.roll(0, kernel));
    case 2:
      return Reads::shifted(dice.roll(-6, 6));
    default: {
      const std::int64_t in = dice.roll(1, 9), out = dice.roll(1, 9);
      return {2 * in, 2 * out, in - out, in + out};
    }
  }
}

Case random_case(unsigned seed) {
  Dice dice(seed);
  Case what;
  what.mesh = dice.pick<Sizes>({{{2, 1}, 1},
                                {{1, 2}, 1},
                                {{3, 1}, 1},
                                {{4, 1}, 1},
                                {{2, 2}, 1},
                                {{2, 1}, 2},
                                {{2, 2}, 2},
                                {{3, 2}, 1}});
  const bool poles = dice.roll(0, 2) == 0;
  const std::int64_t height = dice.roll(1, 11), width = poles ? 2 * dice.roll(1, 5) : dice.roll(1, 9);
  what.input.global = {2, height, width, 3};
  what.output.global = {2, dice.roll(1, 13), dice.roll(1, 11), 3};
  const std::vector<Edge> plain = {Edge::kNone, Edge::kZero, Edge::kReflect, Edge::kReplicate,
                                   Edge::kPeriodic};
  const std::vector<Edge> polar = {Edge::kNone, Edge::kPolePoint, Edge::kPoleCell, Edge::kReflect};
  for (const int dim : {1, 2}) {
    if (!poles && !dice.often()) continue;
    const bool latitude = poles && dim == 1;
    what.map.dims.push_back(
        {dim, random_reads(dice), dice.pick(latitude ? polar : plain), dice.pick(latitude ? polar : plain)});
  }
  if (poles) {
    what.map.circle = 2;
    if (dice.often()) {
      what.map.crossing.factor = {1, -1, -1};
      what.map.crossing.offset = {0, 0.5, -2};
    }
  }
  for (int axis = 1; axis <= 3; ++axis) {
    const auto dim = static_cast<int>(axis == 3 ? dice.roll(1, 3) : dice.often() ? axis : 3 - axis);
    if (!dice.often()) continue;
    what.input.placements[axis] = what.output.placements[axis] = Placement::shard(dim);
  }
  return what;
}

TEST(Exchange, RandomMaps) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    check(random_case(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Exchange, RandomMapsOfGivenSeeds) {
  const auto seeds = testing::given_seeds();
  if (!seeds) GTEST_SKIP() << "JIGSAW_TEST_SEED names none";
  for (unsigned i = 0; i < seeds->count; ++i) {
    SCOPED_TRACE(concat("seed ", seeds->first + i));
    check(random_case(seeds->first + i));
  }
}

// ---- cases with names

Case halo(const Sizes& mesh, const Shape& space, std::int64_t width, Edge rows, Edge columns) {
  Case what{mesh, {{1, space[0], space[1], 2}, {}}, {}, {}};
  what.input.placements[1] = Placement::shard(1);
  what.input.placements[2] = Placement::shard(2);
  what.output = what.input;
  const Reads reads = Reads::window(2 * width + 1, 1, 1, width);
  what.map.dims = {{1, reads, rows, rows}, {2, reads, columns, columns}};
  if (is_pole(rows)) what.map.circle = 2;
  return what;
}

TEST(Exchange, HalosWiderThanTheNeighboursPiece) {
  check(halo({{4, 1}, 1}, {9, 3}, 3, Edge::kNone, Edge::kReplicate));
  check(halo({{4, 2}, 1}, {5, 6}, 4, Edge::kReflect, Edge::kPeriodic));
}

TEST(Exchange, MoreRanksThanRows) {
  check(halo({{4, 1}, 1}, {2, 3}, 1, Edge::kZero, Edge::kPeriodic));
  check(halo({{4, 2}, 1}, {1, 1}, 2, Edge::kPeriodic, Edge::kPeriodic));
}

TEST(Exchange, AcrossPolesOfOddRowsOnEveryCut) {
  for (const Edge pole : {Edge::kPolePoint, Edge::kPoleCell}) {
    for (const Sizes& mesh : {Sizes{{2, 1}, 1}, {{1, 2}, 1}, {{2, 2}, 1}, {{1, 3}, 1}, {{3, 2}, 1}}) {
      check(halo(mesh, {7, 10}, 2, pole, Edge::kPeriodic));
    }
  }
}

TEST(Exchange, CyclicShiftOfWindowsIsOneMessagePerPeer) {
  // Swin's shift by half a window along a circle of 12 columns, cut in whole windows of 4.
  testing::run_test_ranks(3, [](Communicator& world) {
    Mesh mesh(world, 1, {1, 3}, 1);
    const Rank rank{world.context(), mesh};
    Layout layout{{1, 2, 12, 1}, {}};
    layout.placements[2] = Placement::shard(2, 4);
    IndexMap map{{{2, Reads::shifted(2), Edge::kPeriodic, Edge::kPeriodic}}, -1, {}};
    const auto exchange = Exchange::of(rank, map, layout, layout);
    const Array piece = testing::make_piece(rank, layout, DType::kFloat64, element);
    const std::vector<double> shifted = testing::values_of(exchange->gather(rank, piece));
    for (std::int64_t row = 0; row < 2; ++row) {
      for (std::int64_t column = 0; column < 4; ++column) {
        EXPECT_EQ(shifted[static_cast<std::size_t>(row * 4 + column)],
                  element(row * 12 + (4 * world.rank() + column + 2) % 12));
      }
    }
    EXPECT_EQ(exchange->sent_elements(), 2 * 2);
  });
}

TEST(Exchange, HaloBytesAreTheClosedForm) {
  // Each inner border of a [B, H, W, C] field sends `width` rows both ways.
  for (const std::int64_t width : {1, 2}) {
    testing::run_test_ranks(4, [width](Communicator& world) {
      const Case what = halo({{4, 1}, 1}, {33, 49}, width, Edge::kNone, Edge::kNone);
      Mesh mesh(world, 1, what.mesh.domain, 1);
      const Rank rank{world.context(), mesh};
      const auto exchange = Exchange::of(rank, what.map, what.input, what.output);
      const std::int64_t borders = world.rank() == 0 || world.rank() == 3 ? 1 : 2;
      EXPECT_EQ(exchange->sent_elements(), borders * width * 49 * 2);
    });
  }
}

/// Corners, both neighbours, zeros beyond the grid and signs across poles: all in one kernel each.
TEST(Exchange, PacksAssemblesAndAddsUpWithOneKernelEach) {
  for (const Edge rows : {Edge::kZero, Edge::kPoleCell}) {
    Case what = halo({{2, 2}, 1}, {8, 12}, 2, rows, Edge::kPeriodic);
    if (is_pole(rows)) what.map.crossing = {{1, -1}, {0, 0.5}};
    const auto on_device = [](int) { return testing::SimulatedDevice::make_context(Backend::kCpu, 1); };
    run_ranks(what.mesh.ranks(), {}, on_device, [&](Communicator& world) {
      Mesh mesh(world, 1, what.mesh.domain, what.mesh.tensor);
      const Rank rank{world.context(), mesh};
      const auto& device = static_cast<const testing::SimulatedDevice&>(*rank.context.runtime());
      const Array piece = testing::make_piece(rank, what.input, DType::kFloat32, element);
      const auto exchange = Exchange::of(rank, what.map, what.input, what.output);
      std::int64_t before = device.launches();
      const auto launched = [&] { return device.launches() - std::exchange(before, device.launches()); };
      const Array arrived = exchange->start(rank, piece).wait();
      EXPECT_EQ(launched(), 1) << "packing";
      const Array wanted = exchange->assemble(rank, piece, arrived, exchange->wanted());
      EXPECT_EQ(launched(), 1) << "assembling";
      exchange->assemble(rank, piece, arrived, around(exchange->wanted(), exchange->held()));
      EXPECT_EQ(launched(), 1) << "assembling the borders";
      const Array gradients = exchange->start_adjoint(rank, wanted).wait();
      EXPECT_EQ(launched(), 1) << "packing gradients";
      exchange->finish_adjoint(rank, wanted, gradients);
      EXPECT_EQ(launched(), 1) << "adding gradients up";
    });
  }
}

TEST(Exchange, NothingIsCopiedWhereThePieceIsWhatIsWanted) {
  testing::run_test_ranks(2, [](Communicator& world) {
    Mesh mesh(world, 1, {2, 1}, 1);
    const Rank rank{world.context(), mesh};
    Case what = halo({{2, 1}, 1}, {6, 4}, 0, Edge::kNone, Edge::kNone);
    const auto exchange = Exchange::of(rank, what.map, what.input, what.output);
    const Array piece = testing::make_piece(rank, what.input, DType::kFloat64, element);
    EXPECT_EQ(exchange->gather(rank, piece).identity(), piece.identity());
    EXPECT_EQ(exchange->scatter(rank, piece).identity(), piece.identity());
  });
}

}  // namespace
}  // namespace jigsaw
