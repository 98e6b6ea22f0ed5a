// Windows and their blending against plain loops over the whole image; the same bits on every mesh.
#include "predict/window_blend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "support/pieces.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

/// monai.data.utils.dense_patch_slices, whose last window is moved back into the image.
TEST(SlidingWindow, BeginsAreThoseOfMonai) {
  using Begins = std::vector<std::int64_t>;
  EXPECT_EQ(window_begins(10, 0, 10, 4, 0.25), (Begins{0, 3, 6}));
  EXPECT_EQ(window_begins(11, 0, 11, 4, 0.25), (Begins{0, 3, 6, 7}));
  EXPECT_EQ(window_begins(9, 0, 9, 4, 0.5), (Begins{0, 2, 4, 5}));
  EXPECT_EQ(window_begins(4, 0, 4, 4, 0.25), (Begins{0}));
  EXPECT_EQ(window_begins(5, 0, 5, 2, 0.9), (Begins{0, 1, 2, 3}));
  // A part of an image: windows stay in it if they can, else in the image, else lie about its middle.
  EXPECT_EQ(window_begins(20, 5, 15, 4, 0.25), (Begins{5, 8, 11}));
  EXPECT_EQ(window_begins(20, 18, 20, 6, 0.25), (Begins{14}));
  EXPECT_EQ(window_begins(3, 0, 3, 6, 0.25), (Begins{-1}));
  const std::vector<ImageWindow> windows = windows_over({{0, Box::whole({3, 9})}}, {{3, 9}}, {6, 4}, 0.25);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[1].box.begin[0], -1);
  EXPECT_EQ(windows[1].box.begin[1], 3);
}

TEST(SlidingWindow, ImportanceIsAGaussianOfAnEighthButAtLeastAThousandth) {
  const std::vector<double> line = gaussian_importance({8});
  for (int i = 0; i < 8; ++i)
    EXPECT_DOUBLE_EQ(line[static_cast<std::size_t>(i)],
                     std::max(1e-3, std::exp(-0.5 * (i - 3.5) * (i - 3.5))));
  const std::vector<double> plane = gaussian_importance({16, 8});
  EXPECT_DOUBLE_EQ(plane[0], 1e-3);
  EXPECT_DOUBLE_EQ(plane[7 * 8 + 2], std::exp(-0.5 * (0.0625 + 2.25)));
}

/// A made-up prediction.
double predicted(std::size_t window, std::int64_t point, std::int64_t channel) {
  return std::sin(1.3 * static_cast<double>(window) + 0.7 * static_cast<double>(point) +
                  2.0 * static_cast<double>(channel));
}

struct Sizes {
  int data = 1;
  std::vector<int> domain = {1, 1, 1};
  int tensor = 1;
  int ranks() const { return data * domain[0] * domain[1] * domain[2] * tensor; }
};

constexpr std::int64_t kChannels = 3;
const Shape kWindow{4, 3, 5};
/// Two images; of the first a part, the second smaller than the window along a dim, by 2.
const std::vector<ImageRegion> kRegions = {{0, {{1, 0, 2}, {9, 7, 8}}}, {1, {{0, 0, 0}, {5, 1, 6}}}};
const std::vector<Shape> kExtents = {{11, 7, 10}, {5, 1, 6}};

using Blended = std::vector<std::vector<double>>;  ///< by region, [region, channels]

/// What is made of several models that predict alike but for what is added to the window's number.
constexpr std::size_t kOfModel = 1000;
const ModelSum kTwoModels = {{0.5, 0.5, 0.75, 0.25, 0.125, 1.5}, {0.25, -1, 0, 0.5, 0, 2}};

Blended blended(const Sizes& sizes, std::int64_t halo, std::int64_t batch, unsigned mirror = 0,
                const ModelSum& sum = {}) {
  Blended result;
  for (const ImageRegion& region : kRegions)
    result.emplace_back(static_cast<std::size_t>(region.box.extent.count() * kChannels), std::nan(""));
  std::mutex mutex;
  const std::vector<ImageWindow> windows =
      with_mirrored(windows_over(kRegions, kExtents, kWindow, 0.4), mirror);
  testing::run_test_ranks(sizes.ranks(), [&](Communicator& world) {
    Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
    const Rank rank{world.context(), mesh};
    const auto use = [&](WindowBlend::Rows& rows) {
      const Box& region = kRegions[rows.region].box;
      const std::lock_guard lock(mutex);
      std::int64_t index = 0;
      const Shape strides = region.extent.strides();
      for (std::int64_t z = rows.box.begin[0]; z < rows.box.end(0); ++z) {
        for (std::int64_t y = rows.box.begin[1]; y < rows.box.end(1); ++y) {
          for (std::int64_t x = rows.box.begin[2]; x < rows.box.end(2); ++x) {
            const std::int64_t point = (z - region.begin[0]) * strides[0] +
                                       (y - region.begin[1]) * strides[1] + (x - region.begin[2]);
            for (std::int64_t c = 0; c < kChannels; ++c, ++index) {
              double& place = result[rows.region][static_cast<std::size_t>(point * kChannels + c)];
              const double value = rows.values[static_cast<std::size_t>(index)];
              if (!std::isnan(place)) {
                EXPECT_EQ(place, value);  // of the halo of another rank
              }
              place = value;
            }
          }
        }
      }
      EXPECT_LE(rows.box.extent[0], 4);  // never more than a window's rows but at the end of a part
      EXPECT_EQ(rows.last, rows.box.end(0) == region.end(0));
    };
    WindowBlend blend(rank, kRegions, windows, kWindow, kChannels, halo, use, sum);
    const auto count = std::ssize(windows);
    for (std::int64_t first = 0; first < count; first += batch) {
      const Layout layout =
          mesh.field_layout({std::min(batch, count - first), kWindow[0], kWindow[1], kWindow[2], kChannels});
      std::vector<ShardedTensor> predictions;
      for (std::size_t model = 0; model < std::max<std::size_t>(1, sum.factor.size() / kChannels); ++model) {
        const Array piece = testing::make_piece(rank, layout, DType::kFloat64, [&](std::int64_t index) {
          const std::int64_t points = kWindow.count();
          const std::int64_t point = index / kChannels % points;
          return predicted(model * kOfModel + static_cast<std::size_t>(first + index / kChannels / points),
                           point, index % kChannels);
        });
        predictions.push_back({piece, layout});
      }
      blend.add(predictions);
    }
    blend.finish();
  });
  return result;
}

TEST(WindowBlend, IsTheWeightedMeanOfThePlainLoop) {
  const std::vector<ImageWindow> windows = windows_over(kRegions, kExtents, kWindow, 0.4);
  ASSERT_GT(windows.size(), 40U);
  const Blended found = blended({}, 0, 4);
  double worst = 0;
  for (std::size_t r = 0; r < kRegions.size(); ++r) {
    const Box& region = kRegions[r].box;
    std::size_t at = 0;
    for (std::int64_t z = region.begin[0]; z < region.end(0); ++z) {
      for (std::int64_t y = region.begin[1]; y < region.end(1); ++y) {
        for (std::int64_t x = region.begin[2]; x < region.end(2); ++x) {
          for (std::int64_t c = 0; c < kChannels; ++c, ++at) {
            double sum = 0, weights = 0;
            for (std::size_t w = 0; w < windows.size(); ++w) {
              const Shape& begin = windows[w].box.begin;
              const std::int64_t i = z - begin[0], j = y - begin[1], k = x - begin[2];
              if (windows[w].region != r || i < 0 || j < 0 || k < 0 || i >= 4 || j >= 3 || k >= 5) continue;
              double exponent = 0;
              for (const auto& [place, extent] : {std::pair{i, 4.0}, std::pair{j, 3.0}, std::pair{k, 5.0}}) {
                const double distance = (static_cast<double>(place) - (extent - 1) / 2) / (extent / 8);
                exponent -= 0.5 * distance * distance;
              }
              const double weight = std::max(1e-3, std::exp(exponent));
              sum += weight * predicted(w, (i * 3 + j) * 5 + k, c);
              weights += weight;
            }
            worst = std::max(worst, std::abs(found[r][at] - sum / weights));
          }
        }
      }
    }
  }
  std::printf("blended and plain loop differ by %.1e\n", worst);
  EXPECT_LE(worst, 1e-14);
}

/// Along the first and the last dim; the mean of their windows, as they lie.
TEST(WindowBlend, MirroredWindowsOfTwoModelsAreThePlainLoopsOnEveryMesh) {
  const std::vector<ImageWindow> plain = windows_over(kRegions, kExtents, kWindow, 0.4);
  const std::vector<double> importance = gaussian_importance(kWindow);
  const Blended found = blended({}, 0, 5, 0b101, kTwoModels);
  double worst = 0;
  for (std::size_t r = 0; r < kRegions.size(); ++r) {
    const Box& region = kRegions[r].box;
    std::size_t at = 0;
    for (std::int64_t z = region.begin[0]; z < region.end(0); ++z)
      for (std::int64_t y = region.begin[1]; y < region.end(1); ++y)
        for (std::int64_t x = region.begin[2]; x < region.end(2); ++x)
          for (std::int64_t c = 0; c < kChannels; ++c, ++at) {
            double sum = 0, weights = 0;
            for (std::size_t w = 0; w < 4 * plain.size(); ++w) {
              const ImageWindow& window = plain[w / 4];
              const std::int64_t i = z - window.box.begin[0], j = y - window.box.begin[1],
                                 k = x - window.box.begin[2];
              if (window.region != r || i < 0 || j < 0 || k < 0 || i >= 4 || j >= 3 || k >= 5) continue;
              const double weight = importance[static_cast<std::size_t>((i * 3 + j) * 5 + k)];
              const std::int64_t seen_i = w % 2 == 1 ? 3 - i : i, seen_k = w % 4 >= 2 ? 4 - k : k;
              for (std::size_t m = 0; m < 2; ++m) {
                const std::size_t of = m * kChannels + static_cast<std::size_t>(c);
                sum += weight * (kTwoModels.factor[of] *
                                     predicted(m * kOfModel + w, (seen_i * 3 + j) * 5 + seen_k, c) +
                                 kTwoModels.offset[of]);
              }
              weights += weight;
            }
            worst = std::max(worst, std::abs(found[r][at] - sum / weights));
          }
  }
  std::printf("blended and plain loop differ by %.1e\n", worst);
  EXPECT_LE(worst, 1e-14);
  for (const Sizes& sizes : std::vector<Sizes>{
           {1, {2, 1, 1}, 1}, {1, {1, 1, 2}, 1}, {1, {2, 1, 1}, 2}, {2, {1, 1, 2}, 1}, {1, {1, 3, 1}, 1}})
    EXPECT_TRUE(blended(sizes, 2, 5, 0b101, kTwoModels) == found) << sizes.ranks() << " ranks";
}

TEST(WindowBlend, IsEqualInEveryBitOnEveryMeshAndForAnyBatch) {
  const Blended one = blended({}, 0, 4);
  for (const Sizes& sizes : std::vector<Sizes>{{1, {2, 1, 1}, 1},
                                               {1, {1, 2, 2}, 1},
                                               {1, {1, 1, 1}, 2},
                                               {2, {1, 1, 1}, 1},
                                               {1, {1, 3, 1}, 1},
                                               {2, {2, 1, 1}, 2}}) {
    for (const std::int64_t halo : {0, 2}) {
      EXPECT_TRUE(blended(sizes, halo, 4) == one) << sizes.ranks() << " ranks, halo " << halo;
    }
  }
  EXPECT_TRUE(blended({1, {2, 1, 1}, 1}, 0, 7) == one);
  EXPECT_TRUE(blended({9, {1, 1, 1}, 1}, 0, 9) == one) << "more ranks than columns";
}

}  // namespace
}  // namespace jigsaw
