#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "array/box.h"

namespace jigsaw::inline evaluate {

/// A sum over some points, and how many they are.
struct PointSum {
  double sum = 0, count = 0;
};

/// The structural similarity of two images (Wang, Bovik, Sheikh, Simoncelli, 2004) with Gaussian windows of
/// 11 points along each dim, deviation 1.5, K1 = 0.01, K2 = 0.03, moments of the population
/// (skimage.metrics.structural_similarity with gaussian_weights, sigma 1.5, use_sample_covariance False),
/// summed over the points of a part of the image, as far as the window lies in the image. Windows with a
/// point that is NaN do not count.
///
/// @param whole   the extents of the image.
/// @param held    a box of it: what `a` and `b` hold, row-major.
/// @param scored  points that count; with all points of the image up to kSsimReach away they lie in `held`.
/// @param range   of the data: largest less smallest possible value.
PointSum structural_similarity(const Box& whole, const Box& held, std::span<const double> a,
                               std::span<const double> b, const Box& scored, double range);
inline constexpr std::int64_t kSsimReach = 5;

/// The points of a part of an image at the surface of a class: those of the class with a neighbour along one
/// dim that is not, or lies beyond the image (a mask less its erosion by a cross, outside 0).
///
/// @param labels  of the box `held`, row-major. @param scored  with its neighbours in the image it lies in
/// `held`. @return  places in the image, one coordinate after the other.
std::vector<std::int32_t> surface_points(const Box& whole, const Box& held, std::span<const double> labels,
                                         const Box& scored, double label);

}  // namespace jigsaw::inline evaluate
