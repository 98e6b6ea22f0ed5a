// Errors by bands of wave numbers beside sums by their definition, on lines, planes and volumes and any mesh.
#include "evaluate/band_spectra.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "base/text.h"
#include "support/pieces.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace band_spectra_test {

constexpr std::int64_t kSamples = 2, kChannels = 2;

double value_at(std::int64_t i, double step) {
  return std::sin(step * static_cast<double>(i + 1)) + 0.2 * std::cos(0.9 * static_cast<double>(i));
}

/// Of one sample and channel: powers of all wave numbers by their definition, in three bands whose limits are
/// 0, two that part the logarithms evenly, and no end.
std::vector<double> bands_by_definition(const Shape& space,
                                        const std::function<double(std::int64_t)>& value) {
  const Shape strides = space.strides();
  const auto n = static_cast<double>(space.count());
  std::int64_t longest = 0;
  for (const std::int64_t extent : space) longest = std::max(longest, extent);
  const double first = std::log10(2 * std::numbers::pi / static_cast<double>(longest)),
               last = std::log10(std::numbers::pi * std::sqrt(space.rank()) + 1e-6);
  std::vector<double> bands(3, 0.0);
  for (std::int64_t k = 0; k < space.count(); ++k) {
    std::complex<double> sum = 0;
    double square = 0;
    for (std::int64_t x = 0; x < space.count(); ++x) {
      double turns = 0;
      for (int d = 0; d < space.rank(); ++d)
        turns += static_cast<double>(k / strides[d] % space[d] * (x / strides[d] % space[d])) /
                 static_cast<double>(space[d]);
      sum += value(x) * std::polar(1.0, -2 * std::numbers::pi * turns);
    }
    for (int d = 0; d < space.rank(); ++d) {
      const auto wave = static_cast<double>(k / strides[d] % space[d]),
                 extent = static_cast<double>(space[d]);
      square += std::pow(2 * std::numbers::pi * std::min(wave, extent - wave) / extent, 2);
    }
    const double place = square > 0 ? 3 * (std::log10(std::sqrt(square)) - first) / (last - first) : 0;
    bands[place < 1 ? 0 : place < 2 ? 1 : 2] += std::norm(sum) / (n * n);
  }
  return bands;
}

struct Case {
  Shape space;
  int data;
  std::vector<int> domain;
  int tensor;
};

TEST(BandSpectra, AreThoseOfTheDefinitionOnEveryMesh) {
  const std::vector<Case> cases = {{{12}, 1, {1}, 1},
                                   {{12}, 1, {4}, 1},
                                   {{7}, 2, {2}, 1},
                                   {{6, 5}, 1, {1, 1}, 1},
                                   {{6, 5}, 1, {2, 2}, 1},
                                   {{32, 2}, 1, {2, 1}, 1},
                                   {{6, 5}, 1, {1, 2}, 2},
                                   {{4, 3, 5}, 1, {1, 1, 1}, 1},
                                   {{4, 3, 5}, 1, {2, 1, 2}, 1},
                                   {{4, 3, 5}, 1, {1, 3, 1}, 2}};
  for (const Case& each : cases) {
    int ranks = each.data * each.tensor;
    for (const int cuts : each.domain) ranks *= cuts;
    SCOPED_TRACE(concat(each.space, " on ", ranks, " ranks"));
    const std::int64_t points = each.space.count();
    testing::run_test_ranks(ranks, [&](Communicator& world) {
      ASSERT_EQ(world.size(), ranks);
      Mesh mesh(world, each.data, each.domain, each.tensor);
      const Rank rank{world.context(), mesh};
      Shape global{kSamples};
      for (const std::int64_t extent : each.space) global.append(extent);
      global.append(kChannels);
      const Layout layout = mesh.field_layout(global);
      const auto piece = [&](double step) {
        return download_values(rank.context,
                               testing::make_piece(rank, layout, DType::kFloat64,
                                                   [&](std::int64_t i) { return value_at(i, step); }));
      };
      const std::vector<BandSpectra::Powers> found =
          BandSpectra(each.space).of(rank, layout, piece(0.7), piece(0.31));
      ASSERT_EQ(found.size(), static_cast<std::size_t>(kSamples * kChannels));
      for (std::int64_t b = 0; b < kSamples; ++b) {
        for (std::int64_t c = 0; c < kChannels; ++c) {
          const BandSpectra::Powers& powers = found[static_cast<std::size_t>(b * kChannels + c)];
          for (const double step : {0.7, 0.31}) {
            const auto value = [&](std::int64_t x) {
              return value_at((b * points + x) * kChannels + c, step);
            };
            const std::vector<double> wanted = bands_by_definition(each.space, value);
            const auto& its = step == 0.7 ? powers.error : powers.truth;
            double squares = 0, sum = 0;
            for (std::int64_t x = 0; x < points; ++x) squares += std::pow(value(x), 2);
            for (std::size_t band = 0; band < wanted.size(); ++band) {
              EXPECT_NEAR(its[band], wanted[band], 1e-12) << band;
              sum += its[band];
            }
            EXPECT_NEAR(sum, squares / static_cast<double>(points), 1e-12);
          }
        }
      }
    });
  }
}

TEST(BandSpectra, OfFieldsWithMissingValuesThereAreNone) {
  testing::run_test_ranks(2, [&](Communicator& world) {
    ASSERT_EQ(world.size(), 2);
    Mesh mesh(world, 1, {2, 1}, 1);
    const Rank rank{world.context(), mesh};
    const Layout layout = mesh.field_layout({1, 4, 4, 2});
    const auto piece = [&](bool missing) {
      return download_values(
          rank.context, testing::make_piece(rank, layout, DType::kFloat64, [&](std::int64_t i) {
            return missing && i == 1 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(i % 3);
          }));
    };
    const auto found = BandSpectra({4, 4}).of(rank, layout, piece(true), piece(false));
    for (const double power : found[1].error) EXPECT_TRUE(std::isnan(power));
    for (const double power : found[0].error) EXPECT_TRUE(std::isfinite(power));
    for (const double power : found[1].truth) EXPECT_TRUE(std::isfinite(power));
  });
}

}  // namespace band_spectra_test
}  // namespace jigsaw
