#include "evaluate/fourier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

namespace jigsaw {
namespace {

/// The definition.
std::vector<double> power_by_definition(const std::vector<double>& row) {
  const std::size_t n = row.size();
  std::vector<double> result;
  for (std::size_t k = 0; k <= n / 2; ++k) {
    std::complex<double> sum = 0;
    for (std::size_t l = 0; l < n; ++l) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(k * l % n) / static_cast<double>(n);
      sum += row[l] * std::complex<double>(std::cos(angle), std::sin(angle));
    }
    const double once = std::norm(sum) / static_cast<double>(n * n);
    result.push_back(k == 0 || 2 * k == n ? once : 2 * once);
  }
  return result;
}

TEST(Fourier, IsTheDefinitionForEveryLength) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (const std::size_t length :
       {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 12U, 13U, 49U, 72U, 90U, 97U, 143U, 360U}) {
    std::vector<double> row(length);
    for (double& value : row) value = normal(random);
    Fourier fourier(length);
    const std::vector<double> found = fourier.power(row), wanted = power_by_definition(row);
    ASSERT_EQ(found.size(), fourier.wave_numbers());
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k)
      EXPECT_NEAR(found[k], wanted[k], 1e-12) << length << " " << k;
    const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
    EXPECT_NEAR(std::accumulate(found.begin(), found.end(), 0.0), squares / static_cast<double>(length),
                1e-12);
  }
}

TEST(Fourier, FindsAWave) {
  std::vector<double> row;
  for (int l = 0; l < 72; ++l) row.push_back(10 + 3 * std::cos(2 * std::numbers::pi * 5 * l / 72 + 1));
  const std::vector<double> power = Fourier(72).power(row);
  EXPECT_NEAR(power[0], 100, 1e-10);
  EXPECT_NEAR(power[5], 4.5, 1e-10);
  EXPECT_NEAR(power[4] + power[6], 0, 1e-10);
}

}  // namespace
}  // namespace jigsaw
