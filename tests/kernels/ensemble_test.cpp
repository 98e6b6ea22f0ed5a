#include "kernels/ensemble.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace ensemble_test {

using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

class Ensemble : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

constexpr std::int64_t kMembers = 3, kRows = 5, kColumns = 7, kData = 2, kLocal = 2, kGlobal = 1;
const Shape kWhole{4 * kMembers, kRows, kColumns, kData + kLocal + kGlobal};

RandomStream stream() {
  return {7, RandomPurpose::kNoise, "members"};
}
/// Each sample's own: no two are alike, nor one a shift of another.
RandomPosition position_of(std::int64_t sample) {
  return {static_cast<std::uint64_t>(100 + 5 * sample), static_cast<std::uint64_t>(sample * 1000), 2};
}

/// One input of the whole field, element by element.
double wanted(const std::vector<double>& fields, bool noisy, std::int64_t forecast, std::int64_t row,
              std::int64_t column, std::int64_t channel) {
  const std::int64_t sample = forecast / kMembers, member = forecast % kMembers;
  const std::int64_t point = row * kColumns + column;
  if (channel < kData) {
    if (fields.empty()) return 0;
    return fields[static_cast<std::size_t>((sample * kRows * kColumns + point) * kData + channel)];
  }
  if (!noisy) return 0;
  RandomPosition position = position_of(sample);
  position.sample += static_cast<std::uint64_t>(member);
  const std::int64_t element = channel < kData + kLocal
                                   ? point * kLocal + channel - kData
                                   : kRows * kColumns * kLocal + channel - kData - kLocal;
  return stream().normal(position, static_cast<std::uint64_t>(element));
}

/// Boxes of ranks that part members of a sample, space, and channels of data from those of noise.
TEST_P(Ensemble, InputsOfAPieceAreThoseOfTheWhole) {
  const std::vector<Box> boxes = {
      Box::whole(kWhole),           {{2, 1, 3, 0}, {5, 3, 4, 5}}, {{4, 0, 0, 1}, {1, kRows, 2, 3}},
      {{3, 2, 2, 3}, {6, 2, 5, 2}}, {{0, 0, 0, 0}, {7, 5, 1, 1}}, {{0, 0, 0, 0}, {0, 5, 1, 1}}};
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    for (const Box& box : boxes) {
      for (const bool with_fields : {true, false}) {
        for (const bool noisy : {true, false}) {
          SCOPED_TRACE(box.to_string());
          const MemberBox of{kWhole, box, kMembers};
          MemberNoise noise{stream(), kLocal, kGlobal, {}};
          for (std::int64_t s = 0; noisy && s < of.samples(); ++s)
            noise.positions.push_back(position_of(of.first_sample() + s));
          const std::int64_t channels = of.channels_below(kData);
          // The whole of the data, of which the piece holds a part.
          const Array all = random_array(context_, {4, kRows, kColumns, kData}, type, 1);
          std::vector<double> values, own;
          if (with_fields) values = values_of(all);
          for (std::int64_t s = of.first_sample(); s < of.first_sample() + of.samples(); ++s) {
            for (std::int64_t row = box.begin[1]; row < box.end(1); ++row) {
              for (std::int64_t column = box.begin[2]; column < box.end(2); ++column) {
                for (std::int64_t c = box.begin[3]; c < box.begin[3] + channels; ++c) {
                  own.push_back(with_fields ? values[static_cast<std::size_t>(
                                                  ((s * kRows + row) * kColumns + column) * kData + c)]
                                            : 0);
                }
              }
            }
          }
          const Array fields =
              with_fields ? testing::array_of(
                                context_, {of.samples(), box.extent[1], box.extent[2], channels}, type, own)
                          : Array();
          std::vector<double> expected;
          for (std::int64_t f = box.begin[0]; f < box.end(0); ++f) {
            for (std::int64_t row = box.begin[1]; row < box.end(1); ++row) {
              for (std::int64_t column = box.begin[2]; column < box.end(2); ++column) {
                for (std::int64_t c = box.begin[3]; c < box.end(3); ++c)
                  expected.push_back(wanted(values, noisy, f, row, column, c));
              }
            }
          }
          const Array inputs = member_inputs(context_, fields, type, of, noise);
          EXPECT_EQ(inputs.shape(), box.extent);
          EXPECT_EQ(inputs.dtype(), type);
          expect_near(values_of(inputs), expected, tolerance(type, 1, 4));
        }
      }
    }
  }
}

/// Mean 0 and variance 1, no two members, points or channels alike: of so many numbers within five
/// deviations.
TEST_P(Ensemble, NoiseIsNormalAndOfItsOwn) {
  constexpr std::int64_t kSide = 40, kMany = 8;
  const MemberBox of{{kMany, kSide, kSide, 3}, {{0, 0, 0, 0}, {kMany, kSide, kSide, 3}}, kMany};
  const MemberNoise noise{stream(), 3, 0, {position_of(0)}};
  const std::vector<double> x = values_of(member_inputs(context_, Array(), DType::kFloat64, of, noise));
  double sum = 0, squares = 0, members = 0, channels = 0, points = 0;
  const std::size_t member = kSide * kSide * 3;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += x[i];
    squares += x[i] * x[i];
    members += x[i] * x[(i + member) % x.size()];
    channels += x[i] * x[i / 3 * 3 + (i + 1) % 3];
    points += x[i] * x[(i + 3) % x.size()];
  }
  const auto n = static_cast<double>(x.size());
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  for (const double product : {members, channels, points}) EXPECT_NEAR(product / n, 0, 5 / std::sqrt(n));
}

TEST_P(Ensemble, WhatDoesNotFitIsRefused) {
  const MemberBox of{kWhole, Box::whole(kWhole), kMembers};
  const Array fields = random_array(context_, {3, kRows, kColumns, kData}, DType::kFloat32, 1);
  const MemberNoise none{stream(), kLocal, kGlobal, {}}, few{stream(), kLocal, kGlobal, {position_of(0)}};
  EXPECT_THROW(member_inputs(context_, fields, DType::kFloat32, of, none), ShapeError);
  EXPECT_THROW(member_inputs(context_, Array(), DType::kFloat32, of, few), Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, Ensemble, testing::kernel_backends(), testing::backend_name);

}  // namespace ensemble_test
}  // namespace jigsaw
