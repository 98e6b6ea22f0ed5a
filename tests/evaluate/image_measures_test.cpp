// Scores of images against what skimage and scipy say (make_image_measures.py), in one piece and in columns.
#include "evaluate/image_measures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <vector>

#include "config/json.h"
#include "evaluate/surface_distance.h"
#include "support/source_dir.h"

namespace jigsaw {
namespace {

Json golden_cases() {
  return Json::parse(std::ifstream(testing::source_dir() + "/tests/evaluate/fixtures/image_measures.json"))
      .at("cases");
}

Shape shape_of(const Json& golden) {
  Shape shape;
  for (const Json& extent : golden.at("shape")) shape.append(extent.get<std::int64_t>());
  return shape;
}

/// Calls f(coordinates) for every point of a box, row-major.
template <typename F>
void for_each_place(const Box& box, const F& f) {
  Shape at = box.begin;
  for (std::int64_t i = 0; i < box.extent.count(); ++i) {
    f(at);
    for (int d = at.rank() - 1; d >= 0; --d) {
      if (++at[d] < box.end(d)) break;
      at[d] = box.begin[d];
    }
  }
}

std::vector<double> wave(const Box& box, double phase) {
  std::vector<double> values;
  for_each_place(box, [&](const Shape& at) {
    double value = 0;
    for (int d = 0; d < at.rank(); ++d)
      value += std::sin((0.31 + 0.17 * d) * static_cast<double>(at[d]) + phase + d);
    values.push_back(value);
  });
  return values;
}

std::vector<double> balls(const Shape& shape, const Box& box, double shift) {
  std::vector<double> values;
  for_each_place(box, [&](const Shape& at) {
    double label = 0;
    for (const auto& [number, centre, radius] : {std::tuple{1.0, 0.3, 4.2}, std::tuple{2.0, 0.7, 3.1}}) {
      double square = 0;
      for (int d = 0; d < at.rank(); ++d) {
        const double distance = static_cast<double>(at[d]) - centre * static_cast<double>(shape[d]) - shift;
        square += distance * distance;
      }
      if (square <= radius * radius) label = number;
    }
    values.push_back(shift == 0 && at[0] == 0 ? 3.0 : label);
  });
  return values;
}

/// Columns of an image that one of some ranks holds, with what it needs beyond them, and its own.
std::pair<Box, Box> columns(const Shape& shape, std::int64_t ranks, std::int64_t rank) {
  Box own = Box::whole(shape), held = own;
  own.begin[1] = shape[1] * rank / ranks;
  own.extent[1] = shape[1] * (rank + 1) / ranks - own.begin[1];
  held.begin[1] = std::max<std::int64_t>(0, own.begin[1] - kSsimReach);
  held.extent[1] = std::min(own.end(1) + kSsimReach, shape[1]) - held.begin[1];
  return {held, own};
}

TEST(ImageMeasures, SimilarityIsThatOfSkimage) {
  for (const Json& golden : golden_cases()) {
    const Shape shape = shape_of(golden);
    for (const std::int64_t ranks : {1, 3}) {
      PointSum total;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const auto [held, own] = columns(shape, ranks, rank);
        const std::vector<double> x = wave(held, 0), noise = wave(held, 1.7);
        std::vector<double> y = x;
        for (std::size_t i = 0; i < y.size(); ++i) y[i] += 0.3 * noise[i];
        const PointSum part =
            structural_similarity(Box::whole(shape), held, x, y, own, golden.at("range").get<double>());
        total.sum += part.sum;
        total.count += part.count;
      }
      const double found = total.sum / total.count, expected = golden.at("ssim").get<double>();
      std::printf("SSIM of %s in %ld parts: %.15f, skimage %.15f\n", shape.to_string().c_str(), ranks, found,
                  expected);
      EXPECT_NEAR(found, expected, 1e-12);
      EXPECT_NE(structural_similarity(Box::whole(shape), Box::whole(shape), wave(Box::whole(shape), 0),
                                      wave(Box::whole(shape), 1), Box::whole(shape), 3.5)
                    .sum,
                total.sum);
    }
  }
}

TEST(ImageMeasures, WindowsWithAMissingPointDoNotCount) {
  const Box whole = Box::whole({12, 13});
  std::vector<double> x = wave(whole, 0);
  const PointSum all = structural_similarity(whole, whole, x, x, whole, 2);
  EXPECT_EQ(all.count, 2 * 3);
  EXPECT_NEAR(all.sum, 6, 1e-12);
  x[0] = std::nan("");  // in the window of one point of six
  EXPECT_EQ(structural_similarity(whole, whole, x, x, whole, 2).count, 5);
  EXPECT_EQ(
      structural_similarity(Box::whole({10, 13}), Box::whole({10, 13}), x, x, Box::whole({10, 13}), 2).count,
      0);
}

TEST(ImageMeasures, SurfaceDistancesAreThoseOfScipy) {
  for (const Json& golden : golden_cases()) {
    const Shape shape = shape_of(golden);
    const auto spacing = golden.at("spacing").get<std::vector<double>>();
    for (int label = 1; label <= 3; ++label) {
      for (const std::int64_t ranks : {1, 3}) {
        std::vector<std::int32_t> found, truth;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const auto [held, own] = columns(shape, ranks, rank);
          for (const auto& [points, shift] : {std::pair{&found, 1.0}, std::pair{&truth, 0.0}}) {
            const std::vector<std::int32_t> part =
                surface_points(Box::whole(shape), held, balls(shape, held, shift), own, label);
            points->insert(points->end(), part.begin(), part.end());
          }
        }
        const auto number = static_cast<std::size_t>(label - 1);
        EXPECT_EQ(std::ssize(truth) / shape.rank(), golden.at("surface")[number].get<std::int64_t>());
        const double distance = hausdorff95(found, truth, spacing);
        if (golden.at("hd95")[number].is_null()) {
          EXPECT_TRUE(std::isnan(distance));
          continue;
        }
        const auto expected = golden.at("hd95")[number].get<double>();
        std::printf("HD95 of class %d, %s: %.12f, scipy %.12f\n", label, shape.to_string().c_str(), distance,
                    expected);
        EXPECT_NEAR(distance, expected, 1e-12);
      }
    }
  }
}

/// numpy.percentile(distances, 95) of the nearest points, by all pairs.
double directed95(const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& to,
                  const std::vector<double>& spacing) {
  const std::size_t dims = spacing.size();
  std::vector<double> distances;
  for (std::size_t i = 0; i < from.size(); i += dims) {
    double least = HUGE_VAL;
    for (std::size_t j = 0; j < to.size(); j += dims) {
      double square = 0;
      for (std::size_t d = 0; d < dims; ++d) square += std::pow((from[i + d] - to[j + d]) * spacing[d], 2);
      least = std::min(least, square);
    }
    distances.push_back(std::sqrt(least));
  }
  std::sort(distances.begin(), distances.end());
  const double place = 0.95 * static_cast<double>(distances.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double part = place - std::floor(place);
  return part == 0 ? distances[below] : distances[below] * (1 - part) + distances[below + 1] * part;
}

/// Points scattered at random, of which one set spreads far beyond the other, to either side.
TEST(ImageMeasures, SurfaceDistancesOfScatteredPointsAreThoseOfAllPairs) {
  std::mt19937 random(7);
  for (const std::vector<double>& spacing : {std::vector{0.7, 1.9}, std::vector{2.5, 0.6, 1.0}}) {
    for (const int wide : {5, 40}) {
      std::vector<std::int32_t> a, b;
      for (int i = 0; i < 300 * static_cast<int>(spacing.size()); ++i) {
        a.push_back(static_cast<std::int32_t>(random() % 40));
        b.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(wide)));
      }
      const double forth = directed95(a, b, spacing), back = directed95(b, a, spacing);
      EXPECT_NE(forth, back);
      EXPECT_NEAR(hausdorff95(a, b, spacing), std::max(forth, back), 1e-12);
      EXPECT_NEAR(hausdorff95(b, a, spacing), std::max(forth, back), 1e-12);
    }
  }
}

}  // namespace
}  // namespace jigsaw
