#include "array/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "array/box.h"
#include "array/grid.h"
#include "array/host_view.h"
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

/// Blocks of random sizes never overlap, whatever is freed in between, and all memory is one block again at
/// the end.
TEST(Heap, BlocksAreApartAndJoinWhenFreed) {
  const auto source = make_host_memory();
  constexpr std::size_t kRegion = std::size_t{2} << 20;
  Heap heap(*source, kRegion);
  std::vector<std::pair<std::byte*, std::size_t>> live;
  const RandomStream random(1, RandomPurpose::kNoise, "heap");
  std::uint64_t draw = 0;
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(random.uniform({}, draw++) * static_cast<double>(n));
  };
  std::size_t in_use = 0, most = 0;
  for (int i = 0; i < 3000; ++i) {
    if (live.empty() || below(100) < 55) {
      const std::size_t bytes = 1 + below(below(10) == 0 ? 5 << 20 : 50000);
      std::byte* memory = heap.allocate(bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
      for (const auto& [other, size] : live) ASSERT_TRUE(memory + bytes <= other || other + size <= memory);
      memory[0] = memory[bytes - 1] = std::byte{1};
      live.emplace_back(memory, bytes);
      in_use += bytes;
      most = std::max(most, in_use);
    } else {
      const std::size_t at = below(live.size());
      heap.release(live[at].first);
      in_use -= live[at].second;
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  for (const auto& [memory, bytes] : live) heap.release(memory);
  const std::size_t held = heap.held_bytes();
  EXPECT_LT(static_cast<double>(held), 1.5 * static_cast<double>(most));
  EXPECT_NE(heap.allocate(held), nullptr);
  EXPECT_EQ(heap.held_bytes(), held);
}

/// A request beyond the machine's memory is an error, not a crash at first use.
TEST(Heap, RefusesMoreThanThereIs) {
  const auto source = make_host_memory();
  Heap heap(*source, std::size_t{2} << 20);
  EXPECT_THROW(heap.allocate(std::size_t{1} << 50), Error);
}

/// Regions one behind the other, as a device gives them, up to a limit.
class Bounded : public MemorySource {
 public:
  std::byte* allocate(std::size_t bytes) override {
    if (bytes > left()) throw OutOfMemoryError("there is no more");
    given_ += bytes;
    return memory_ + given_ - bytes;
  }
  std::size_t left() const override { return kBytes - given_; }
  bool joins() const override { return true; }

 private:
  static constexpr std::size_t kBytes = std::size_t{24} << 20;
  alignas(256) static inline std::byte memory_[kBytes];
  std::size_t given_ = 0;
};

TEST(Heap, LargestIsTheMostThatItGives) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  Bounded source;
  Heap heap(source, 2 * kMiB);
  const auto expect_largest = [&](std::size_t bytes) {
    EXPECT_EQ(heap.largest(), bytes);
    EXPECT_THROW(heap.allocate(bytes + 1), OutOfMemoryError);
  };
  expect_largest(24 * kMiB);
  std::byte* const first = heap.allocate(7 * kMiB);
  std::byte* const second = heap.allocate(5 * kMiB);
  expect_largest(12 * kMiB);
  std::byte* const last = heap.allocate(9 * kMiB);
  expect_largest(3 * kMiB);  // a tail of 1 and a region of 2
  heap.release(first);
  expect_largest(7 * kMiB);
  heap.release(last);
  expect_largest(12 * kMiB);
  heap.release(second);
  expect_largest(24 * kMiB);
  EXPECT_NE(heap.allocate(24 * kMiB), nullptr);
}

TEST(MemoryRanges, ThoseThatTouchAreOne) {
  std::byte memory[100];
  MemoryRanges ranges;
  for (const auto& [begin, end] : {std::pair{10, 20}, {40, 50}, {30, 40}, {60, 70}, {15, 32}, {62, 65}})
    ranges.add(memory + begin, memory + end);
  const std::map<std::byte*, std::byte*> wanted = {{memory + 10, memory + 50}, {memory + 60, memory + 70}};
  EXPECT_EQ(ranges.ends(), wanted);
  EXPECT_TRUE(ranges.contain(memory + 10));
  EXPECT_TRUE(ranges.contain(memory + 49));
  EXPECT_FALSE(ranges.contain(memory + 50));
  EXPECT_FALSE(ranges.contain(memory + 9));
}

/// Work whose memory was noted runs again there: nobody else gets it meanwhile, also what arrays let go of
/// later, until others need more than there is.
TEST(Arena, SetsMemoryAsideForWorkThatRunsAgain) {
  Context context = Context::make_host(Backend::kCpu, 1);
  Arena& arena = context.arena();
  constexpr std::int64_t kLarge = 100'000, kSmall = 100;
  const auto array = [&](std::int64_t count) { return Array(context, {count}, DType::kFloat32); };
  const Array before = array(kLarge);
  std::set<const void*> used;
  MemoryUse use;
  Array stays;
  {
    arena.note_use();
    const Array a = array(kLarge), b = array(2 * kLarge), c = array(kSmall);
    stays = array(kLarge);
    for (const Array* each : {&a, &b, &c, static_cast<const Array*>(&stays)}) used.insert(each->identity());
    use = arena.noted_use();
  }
  EXPECT_FALSE(arena.set_aside(use)) << "an array stands in it";
  const auto get_used = [&] {
    std::vector<Array> held;
    int found = 0;
    for (const std::int64_t count : {kLarge, 2 * kLarge, kSmall, kLarge}) {
      held.push_back(array(count));
      found += used.contains(held.back().identity()) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(get_used(), 0);
  stays = Array();
  EXPECT_EQ(get_used(), 0);
  EXPECT_TRUE(arena.set_aside(use));
  EXPECT_EQ(get_used(), 0);

  arena.lend();
  std::vector<Array> others;
  const std::int64_t held = arena.held_bytes();
  for (bool given = false; !given; given = used.contains(others.back().identity())) {
    others.push_back(array(kLarge));
    ASSERT_EQ(arena.held_bytes(), held) << "more was taken though there was some";
  }
  EXPECT_FALSE(arena.set_aside(use));
  others.clear();
  EXPECT_TRUE(arena.set_aside(use));
  EXPECT_EQ(get_used(), 0);
  arena.set_aside({});
  EXPECT_GT(get_used(), 0);
}

TEST(Arena, MetaCountsWithoutMemory) {
  Context context = Context::make_meta();
  const Array a(context, {std::int64_t{1} << 40}, DType::kBfloat16);
  EXPECT_EQ(context.arena().peak_bytes(Purpose::kActivations), std::int64_t{1} << 41);
}

TEST(Shape, AProductThatCannotBeCountedIsTheLargestNumber) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 40, kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((Shape{kLarge, 1 << 22}).count(), std::int64_t{1} << 62);
  EXPECT_EQ((Shape{kLarge, 1 << 23}).count(), kMost);
  EXPECT_EQ((Shape{kLarge, kLarge, kLarge, 3}).count(), kMost);
  EXPECT_EQ((Shape{kLarge, kLarge, kLarge, 0}).count(), 0);
  EXPECT_EQ((Shape{kLarge, kLarge, kLarge, 3}).count(2, 4), 3 * kLarge);
}

TEST(Array, ViewsShareMemory) {
  const Context context = Context::make_host(Backend::kCpu, 1);
  const Array a = Array::zeros(context, {4, 6}, DType::kFloat32);
  HostView<float>(a.slice(6, {2, 3}))[1] = 5;
  EXPECT_EQ(HostView<float>(a)[7], 5);
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

TEST(Grid, CoordinatesRiseOrFallStrictly) {
  const std::vector<double> longitudes = {0, 1, 2};
  EXPECT_NO_THROW(make_geographic_grid({58, 57.75, 57.5}, longitudes));
  for (const std::vector<double>& latitudes :
       {std::vector<double>{58, 57.75, 57.75}, {57, 57, 58}, {57, 58, 58}, {58, 57, 57.5}, {57, 58, 57.5}}) {
    EXPECT_THROW(make_geographic_grid(latitudes, longitudes), DataError);
  }
}

/// Rows that are not evenly apart, as of a Gaussian grid: the outermost cells end at the poles.
TEST(Grid, CellsBesideAPoleReachIt) {
  std::vector<double> longitudes;
  for (int i = 0; i < 8; ++i) longitudes.push_back(45.0 * i);
  const std::vector<double> weights = make_geographic_grid({60, 20, -20, -60}, longitudes).row_weights();
  const double limit = std::sin(40 * std::numbers::pi / 180);
  EXPECT_NEAR(weights[0] / weights[1], (1 - limit) / limit, 1e-12);
  EXPECT_NEAR(weights[3] / weights[2], (1 - limit) / limit, 1e-12);
}

TEST(Random, NormalNumbersThatShareACounterDiffer) {
  const RandomStream random(7, RandomPurpose::kNoise, "x");
  for (std::uint64_t element = 0; element < 200; element += 2)
    EXPECT_NE(random.normal({1, 0, 0}, element), random.normal({1, 0, 0}, element + 1)) << element;
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
