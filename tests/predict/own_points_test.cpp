// Images brought back from a common spacing, row by row and rank by rank, against loops over the whole image.
#include "predict/own_points.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "predict/window_blend.h"

namespace jigsaw {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// The number c of a point of the file: over the eight common points around it, NaN left out.
double expected(const std::vector<double>& common, const Shape& extents, std::int64_t numbers,
                const std::vector<double>& step, const std::array<std::int64_t, 3>& at, std::int64_t c) {
  double sum = 0, weights = 0;
  for (int corner = 0; corner < 8; ++corner) {
    double weight = 1;
    std::int64_t index = 0;
    for (int d = 0; d < 3; ++d) {
      const auto axis = static_cast<std::size_t>(d);
      const double place =
          std::min(static_cast<double>(at[axis]) / step[axis], static_cast<double>(extents[d] - 1));
      const auto below = static_cast<std::int64_t>(place);
      const double share = place - static_cast<double>(below);
      weight *= corner >> d & 1 ? share : 1 - share;
      index = index * extents[d] + std::min(below + (corner >> d & 1), extents[d] - 1);
    }
    const double value = common[static_cast<std::size_t>(index * numbers + c)];
    if (weight == 0 || std::isnan(value)) continue;
    sum += weight * value;
    weights += weight;
  }
  return weights > 0 ? sum / weights : kNothing;
}

struct Case {
  Shape own;
  std::vector<double> step;
};

TEST(OwnPoints, AreThoseOfLoopsOverTheWholeImageOnAnyNumberOfRanks) {
  std::mt19937 random(7);
  const std::vector<Case> cases = {{{9, 10, 11}, {0.744, 1.569, 0.8}},
                                   {{5, 12, 3}, {3.0, 0.25, 1.0}},
                                   {{13, 2, 6}, {0.3, 5.0, 2.0}},
                                   {{1, 7, 4}, {2.0, 1.1, 0.5}}};
  constexpr std::int64_t kNumbers = 2;
  for (const Case& each : cases) {
    Shape common;
    for (int d = 0; d < 3; ++d) {
      const double last = static_cast<double>(each.own[d] - 1) / each.step[static_cast<std::size_t>(d)];
      common.append(static_cast<std::int64_t>(std::floor(last + 1e-6)) + 1);
    }
    std::vector<double> values(static_cast<std::size_t>(common.count() * kNumbers));
    for (double& value : values) value = std::normal_distribution<double>()(random);
    for (std::size_t i = 3; i < values.size(); i += 17) values[i] = kNothing;
    std::vector<double> of_one;
    for (const int ranks : {1, 2, 3, 7}) {
      std::vector<double> found(static_cast<std::size_t>(each.own.count() * kNumbers));
      std::vector<int> given(static_cast<std::size_t>(each.own.count()), 0);
      for (int rank = 0; rank < ranks; ++rank) {
        OwnPoints points(common, each.own, each.step);
        const Box columns = columns_of(Box::whole(common), ranks, rank, OwnPoints::kHalo);
        std::mt19937 cuts(11);  // the same rows on all ranks
        for (std::int64_t row = 0; row < common[0];) {
          Box rows = columns;
          rows.begin[0] = row;
          rows.extent[0] = std::min<std::int64_t>(1 + cuts() % 3, common[0] - row);
          row = rows.end(0);
          std::vector<double> part;
          for (std::int64_t z = rows.begin[0]; z < rows.end(0); ++z)
            for (std::int64_t y = rows.begin[1]; y < rows.end(1); ++y)
              for (std::int64_t i = 0; i < common[2] * kNumbers; ++i)
                part.push_back(
                    values[static_cast<std::size_t>((z * common[1] + y) * common[2] * kNumbers + i)]);
          const Box box = points.box(rows, ranks, rank);
          const std::vector<double> own = points.take(rows, part, kNumbers, ranks, rank);
          ASSERT_EQ(std::ssize(own), box.extent.count() * kNumbers);
          std::size_t next = 0;
          for (std::int64_t z = box.begin[0]; z < box.end(0); ++z)
            for (std::int64_t y = box.begin[1]; y < box.end(1); ++y)
              for (std::int64_t x = 0; x < each.own[2]; ++x) {
                const auto point = static_cast<std::size_t>((z * each.own[1] + y) * each.own[2] + x);
                ++given[point];
                for (std::size_t c = 0; c < kNumbers; ++c) found[point * kNumbers + c] = own[next++];
              }
        }
      }
      EXPECT_EQ(given, std::vector<int>(given.size(), 1)) << "each point once, of " << ranks << " ranks";
      if (of_one.empty()) of_one = found;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto point = static_cast<std::int64_t>(i) / kNumbers;
        const std::array<std::int64_t, 3> at = {point / (each.own[1] * each.own[2]),
                                                point / each.own[2] % each.own[1], point % each.own[2]};
        const double wanted =
            expected(values, common, kNumbers, each.step, at, static_cast<std::int64_t>(i) % kNumbers);
        ASSERT_EQ(std::isnan(found[i]), std::isnan(wanted)) << i;
        if (std::isnan(wanted)) continue;
        ASSERT_NEAR(found[i], wanted, 1e-12) << i;
        ASSERT_EQ(found[i], of_one[i]) << "the same bits on " << ranks << " ranks";
      }
    }
  }
}

}  // namespace
}  // namespace jigsaw
