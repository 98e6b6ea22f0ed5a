#include "evaluate/climate_trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace jigsaw {
namespace climate_trend_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Against the mean of the slopes between all pairs, each weighing the square of its distance.
TEST(ClimateTrend, IsTheSlopeOfLeastSquares) {
  std::vector<double> values;
  for (int i = 0; i < 50; ++i)
    values.push_back(i % 7 == 3 ? kNaN : 288 + 0.01 * i + std::sin(0.7 * i) + 1e-4 * i * i);
  double slopes = 0, weights = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (std::isnan(values[i]) || std::isnan(values[j])) continue;
      const auto apart = static_cast<double>(i - j);
      slopes += apart * apart * (values[i] - values[j]) / apart;
      weights += apart * apart;
    }
  }
  EXPECT_NEAR(slope_of(values), slopes / weights, 1e-13);
  EXPECT_NEAR(slope_of(std::vector<double>{1e8, 1e8 + 2, 1e8 + 4}), 2, 1e-12);
  EXPECT_DOUBLE_EQ(slope_of(std::vector<double>{kNaN, 3, kNaN, 4}), 0.5);
  EXPECT_TRUE(std::isnan(slope_of(std::vector<double>{kNaN, 3, kNaN})));
  EXPECT_TRUE(std::isnan(slope_of({})));
}

}  // namespace climate_trend_test
}  // namespace jigsaw
