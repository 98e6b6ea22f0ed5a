#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "array/box.h"
#include "base/text.h"
#include "evaluate/mesh_cases.h"
#include "support/pieces.h"
#include "task/ensemble.h"

namespace jigsaw::testing::made_forecasts {

/// Forecasts and truth that are made up for tests of scores: two batches of fields of 6 × 7 points and two
/// regions, cut on any mesh.
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr std::int64_t kRows = 6, kColumns = 7, kPoints = kRows * kColumns, kRegions = 2;
inline constexpr int kMembers = 3;
inline const std::vector<std::int64_t> kBatches = {3, 2};  // samples

/// Of a batch's element, unlike in other batches; from −1 to 1.
inline double wave(int member, int lead, std::size_t batch, std::int64_t i) {
  const double step = 0.31 + 0.07 * member + 0.05 * lead + 0.03 * static_cast<double>(batch);
  return std::sin(step * static_cast<double>(i + 1));
}

/// Of fields with so many channels: its mean is far larger than what it varies by.
inline double large_at(int member, int lead, std::size_t batch, std::int64_t i, std::int64_t channels) {
  return 5e4 + static_cast<double>(i % channels) + 2 * wave(member, lead, batch, i);
}
/// A truth of these, missing at times, and at two points always.
inline double large_truth_at(int lead, std::size_t batch, std::int64_t i, std::int64_t channels) {
  const std::int64_t point = i / channels % kPoints;
  if (point == 8 || point == 30 || (i + lead) % 11 == 0) return kNaN;
  return 0.5 + large_at(0, lead, batch, i + i % 4 * channels, channels);
}

/// The first region is all, the second the first three rows.
inline bool is_in(std::int64_t region, std::int64_t point) {
  return region == 0 || point < 3 * kColumns;
}

inline int ranks_of(const MeshCase& mesh) {
  return mesh.data * mesh.domain[0] * mesh.domain[1] * mesh.tensor;
}
inline std::string text_of(const MeshCase& mesh) {
  return concat(mesh.data, " × ", mesh.domain[0], " × ", mesh.domain[1], " × ", mesh.tensor);
}

inline Layout layout_of(const Mesh& mesh, std::int64_t samples, std::int64_t channels, int data_cuts) {
  return score_layout(mesh, {samples, kRows, kColumns, channels}, data_cuts);
}

/// Of each region the weights of a piece's points. @param weight  (region, point)
template <typename Weight>
std::vector<std::vector<double>> weights_in(const Box& box, const Weight& weight) {
  std::vector<std::vector<double>> weights(kRegions);
  for (std::int64_t region = 0; region < kRegions; ++region) {
    for (std::int64_t row = box.begin[1]; row < box.end(1); ++row) {
      for (std::int64_t column = box.begin[2]; column < box.end(2); ++column)
        weights[static_cast<std::size_t>(region)].push_back(weight(region, row * kColumns + column));
    }
  }
  return weights;
}

/// The piece of members that lie behind one another. @param value  (member, element)
template <typename Value>
Array members_of(const Rank& rank, const Layout& layout, int members, const Value& value) {
  std::vector<Array> fields;
  for (int j = 0; j < members; ++j) {
    fields.push_back(make_piece(rank, layout, DType::kFloat64, [&](std::int64_t i) { return value(j, i); }));
  }
  return join_members(rank.context, fields);
}

inline void expect_number(double found, double wanted, double tolerance, const char* what) {
  EXPECT_EQ(std::isnan(found), std::isnan(wanted)) << what << " " << found << " " << wanted;
  if (std::isfinite(wanted)) {
    EXPECT_NEAR(found, wanted, tolerance) << what;
  }
}

}  // namespace jigsaw::testing::made_forecasts
