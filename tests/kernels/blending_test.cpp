#include "kernels/blending.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace blending_test {

using testing::random_array;
using testing::values_of;

class Blending : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

/// Two parts of one window, which overlap in the sums, point by point.
TEST_P(Blending, PartsAddUpWithTheWeightsOfTheirPoints) {
  constexpr std::size_t kChannels = 3, kFirst = 1;
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    const Array weights = random_array(context_, {4, 5, 6}, DType::kFloat64, 1);
    Array sums = random_array(context_, {7, 6, 9, 5}, DType::kFloat64, 2);
    std::vector<double> wanted = values_of(sums);
    const std::vector<double> ws = values_of(weights);
    for (const std::size_t shift : {0U, 1U}) {
      const Array values =
          random_array(context_, {2, 3, 4, kChannels}, type, static_cast<unsigned>(3 + shift));
      const std::vector<double> vs = values_of(values);
      std::size_t i = 0;
      for (std::size_t z = 0; z < 2; ++z)
        for (std::size_t y = 0; y < 3; ++y)
          for (std::size_t x = 0; x < 4; ++x)
            for (std::size_t c = 0; c < kChannels; ++c, ++i) {
              const std::size_t at = (((3 + shift + z) * 6 + 2 + y) * 9 + 5 + x) * 5 + kFirst + c;
              wanted[at] += ws[((1 + z) * 5 + 2 + y) * 6 + 1 + x] * vs[i];
            }
      const auto row = static_cast<std::int64_t>(3 + shift);
      add_weighted(context_, values, weights, {{1, 2, 1}, {2, 3, 4}}, sums,
                   {{row, 2, 5, kFirst}, {2, 3, 4, kChannels}});
    }
    const std::vector<double> found = values_of(sums);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-15) << i;
  }
}

TEST_P(Blending, OneDimAndNothing) {
  const Array weights = random_array(context_, {1000}, DType::kFloat64, 1),
              values = random_array(context_, {700, 1}, DType::kFloat32, 2);
  Array sums = random_array(context_, {900, 1}, DType::kFloat64, 3);
  std::vector<double> wanted = values_of(sums);
  const std::vector<double> ws = values_of(weights), vs = values_of(values);
  for (std::size_t i = 0; i < 700; ++i) wanted[150 + i] += ws[300 + i] * vs[i];
  add_weighted(context_, values, weights, {{300}, {700}}, sums, {{150, 0}, {700, 1}});
  add_weighted(context_, values.slice(0, {0, 1}), weights, {{0}, {0}}, sums, {{0, 0}, {0, 1}});
  const std::vector<double> found = values_of(sums);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-15) << i;
}

/// Bits are dims along which values run backwards.
TEST_P(Blending, MirroredValuesCountAtTheirPoints) {
  constexpr std::size_t kChannels = 2;
  const Array weights = random_array(context_, {4, 5, 6}, DType::kFloat64, 1),
              values = random_array(context_, {2, 3, 4, kChannels}, DType::kFloat32, 2);
  const std::vector<double> ws = values_of(weights), vs = values_of(values);
  for (unsigned mirrored = 0; mirrored < 8; ++mirrored) {
    Array sums = random_array(context_, {3, 3, 6, kChannels}, DType::kFloat64, 3);
    std::vector<double> wanted = values_of(sums);
    std::size_t i = 0;
    for (std::size_t a = 0; a < 2; ++a)
      for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t c = 0; c < 4; ++c)
          for (std::size_t channel = 0; channel < kChannels; ++channel, ++i) {
            const std::size_t z = (mirrored & 1) != 0 ? 1 - a : a, y = (mirrored & 2) != 0 ? 2 - b : b,
                              x = (mirrored & 4) != 0 ? 3 - c : c;
            wanted[((1 + z) * 3 + y) * 6 * kChannels + (2 + x) * kChannels + channel] +=
                ws[((1 + z) * 5 + 2 + y) * 6 + 1 + x] * vs[i];
          }
    add_weighted(context_, values, weights, {{1, 2, 1}, {2, 3, 4}}, sums,
                 {{1, 0, 2, 0}, {2, 3, 4, kChannels}}, mirrored);
    const std::vector<double> found = values_of(sums);
    for (std::size_t at = 0; at < wanted.size(); ++at)
      EXPECT_NEAR(found[at], wanted[at], 1e-15) << mirrored << " at " << at;
  }
}

TEST_P(Blending, WhatDoesNotFitIsRefused) {
  const Array weights = random_array(context_, {4, 4}, DType::kFloat64, 1),
              values = random_array(context_, {2, 3, 2}, DType::kFloat32, 2);
  Array sums = random_array(context_, {5, 5, 2}, DType::kFloat64, 3);
  const auto add = [&](const Box& of, const Box& to) {
    add_weighted(context_, values, weights, of, sums, to);
  };
  EXPECT_THROW(add({{0, 0}, {2, 2}}, {{0, 0, 0}, {2, 3, 2}}), ShapeError);
  EXPECT_THROW(add({{0, 2}, {2, 3}}, {{0, 0, 0}, {2, 3, 2}}), ShapeError);
  EXPECT_THROW(add({{0, 0}, {2, 3}}, {{0, 3, 0}, {2, 3, 2}}), ShapeError);
  EXPECT_THROW(add({{0, 0}, {2, 3}}, {{0, 0, 1}, {2, 3, 2}}), ShapeError);
  EXPECT_NO_THROW(add({{2, 1}, {2, 3}}, {{3, 2, 0}, {2, 3, 2}}));
  Array narrow = random_array(context_, {5, 5, 2}, DType::kFloat32, 3);
  EXPECT_THROW(add_weighted(context_, values, weights, {{0, 0}, {2, 3}}, narrow, {{0, 0, 0}, {2, 3, 2}}),
               Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, Blending, testing::kernel_backends(), testing::backend_name);

}  // namespace blending_test
}  // namespace jigsaw
