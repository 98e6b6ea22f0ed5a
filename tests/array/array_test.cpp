#include "array/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "array/box.h"
#include "array/grid.h"
#include "array/random.h"

namespace jigsaw {
namespace {

// Known-answer vectors of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Random, PhiloxMatchesItsPublishedVectors) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, FieldsOfTheCounterDoNotMeet) {
  const RandomStream stream(1, RandomPurpose::kDropout, "blocks.0");
  std::set<std::uint64_t> seen;
  for (const RandomPosition position : {RandomPosition{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}}) {
    for (const std::uint64_t element : {0ULL, 1ULL, 1ULL << 33, 1ULL << 49}) {
      seen.insert(std::uint64_t{stream.bits(position, element)} << 32 | stream.bits(position, element + 4));
    }
  }
  EXPECT_EQ(seen.size(), 16U);
}

TEST(Random, NormalHasItsMoments) {
  const RandomStream stream(7, RandomPurpose::kInitialValue, "w");
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = stream.normal({}, static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0.0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1.0, 5 * std::sqrt(2.0 / n));
}

TEST(Arena, ReusesAndCountsByPurpose) {
  Context context = Context::make_host(Backend::kCpu, 1);
  const void* first = nullptr;
  {
    const Array a(context, {100}, DType::kFloat32);
    first = a.identity();
    const Array b(context, {10}, DType::kFloat64, Purpose::kOptimizer);
    EXPECT_EQ(context.arena().current_bytes(Purpose::kActivations), 400);
    EXPECT_EQ(context.arena().current_bytes(Purpose::kOptimizer), 80);
  }
  EXPECT_EQ(context.arena().current_bytes(Purpose::kActivations), 0);
  EXPECT_EQ(context.arena().peak_bytes(), 480);
  const Array again(context, {100}, DType::kFloat32);
  EXPECT_EQ(again.identity(), first);
  context.arena().reset_peaks();
  EXPECT_EQ(context.arena().peak_bytes(Purpose::kOptimizer), 0);
}

TEST(Arena, MetaCountsWithoutMemory) {
  Context context = Context::make_meta();
  const Array a(context, {std::int64_t{1} << 40}, DType::kBfloat16);
  EXPECT_EQ(context.arena().peak_bytes(Purpose::kActivations), std::int64_t{1} << 41);
}

TEST(Array, ViewsShareMemory) {
  const Context context = Context::make_host(Backend::kCpu, 1);
  const Array a = Array::zeros(context, {4, 6}, DType::kFloat32);
  a.slice(6, {2, 3}).data<float>()[1] = 5;
  EXPECT_EQ(a.data<float>()[7], 5);
  EXPECT_FALSE(a.reshaped({24}).unique());
  EXPECT_THROW(a.reshaped({23}), ShapeError);
  EXPECT_THROW(a.slice(20, {5}), ShapeError);
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0F)), 1.0F);
  EXPECT_EQ(BFloat16(1.00390625F).bits, 0x3f80);  // half way, to even
  EXPECT_EQ(BFloat16(1.01171875F).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(NAN))));
  EXPECT_TRUE(std::isinf(static_cast<float>(BFloat16(3.4e38F))));
}

TEST(Box, IntersectionsAndEmptiness) {
  const Box a{{0, 5}, {4, 5}}, b{{2, 0}, {5, 6}};
  EXPECT_EQ(intersect(a, b), (Box{{2, 5}, {2, 1}}));
  EXPECT_TRUE(intersect(a, Box{{4, 0}, {1, 20}}).empty());
  EXPECT_EQ(relative_to(intersect(a, b), b), (Box{{0, 5}, {2, 1}}));
}

TEST(Grid, PolesPeriodicityAndWeights) {
  std::vector<double> latitudes, longitudes;
  for (int i = 0; i <= 180; ++i) latitudes.push_back(90.0 - i);
  for (int i = 0; i < 360; ++i) longitudes.push_back(i);
  const Grid grid = make_geographic_grid(latitudes, longitudes);
  EXPECT_EQ(grid.north, PoleKind::kPoint);
  EXPECT_EQ(grid.south, PoleKind::kPoint);
  EXPECT_TRUE(grid.periodic);
  const std::vector<double> weights = grid.row_weights();
  double sum = 0;
  for (const double w : weights) sum += w;
  EXPECT_NEAR(sum / 181.0, 1.0, 1e-12);
  // The pole's cell is half a degree high: 1 − sin(89.5°), against sin(0.5°) − sin(−0.5°).
  EXPECT_NEAR(weights[0] / weights[90], (1 - std::sin(89.5 * M_PI / 180)) / (2 * std::sin(0.5 * M_PI / 180)),
              1e-9);

  const Grid region = make_geographic_grid({60, 59.75, 59.5}, {-10, -9.75});
  EXPECT_EQ(region.north, PoleKind::kNone);
  EXPECT_FALSE(region.periodic);
  EXPECT_EQ(make_geographic_grid({89, 88, 87}, {0}).north, PoleKind::kNone);
  EXPECT_EQ(make_geographic_grid({67.5, 22.5, -22.5, -67.5}, {0, 90, 180, 270}).south,
            PoleKind::kCellCentred);
  EXPECT_THROW(make_geographic_grid({1, 3, 2}, {0, 1}), DataError);
}

}  // namespace
}  // namespace jigsaw
