#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "array/dtype.h"

namespace jigsaw::testing {

/// Distance from 1 to the next number of the type.
inline double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return std::numeric_limits<double>::epsilon();
    case DType::kFloat32:
      return std::numeric_limits<float>::epsilon();
    case DType::kBfloat16:
      return 0x1p-7;
  }
  return 0;
}

/// What rounding may do to a result of type `stored`, of size `magnitude`, that sums `length` terms: one
/// rounding to the stored type, and one of the type of sums (float32, or float64 for float64) for each term.
inline double tolerance(DType stored, std::int64_t length, double magnitude = 1.0) {
  const DType sums = stored == DType::kFloat64 ? stored : DType::kFloat32;
  return (epsilon(stored) + epsilon(sums) * static_cast<double>(length)) * magnitude;
}

/// All elements finite, as many as expected, and no further from them than `limit`.
inline void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                        double limit) {
  ASSERT_EQ(actual.size(), expected.size());
  std::size_t worst = 0;
  double distance = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(actual[i] - expected[i]);
    if (error > distance || !std::isfinite(error)) {
      worst = i;
      distance = std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
    }
  }
  if (distance > limit) {
    ADD_FAILURE() << "element " << worst << " of " << actual.size() << " is " << actual[worst]
                  << ", expected " << expected[worst] << " within " << limit;
  }
}

}  // namespace jigsaw::testing
