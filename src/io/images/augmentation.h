#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "array/box.h"
#include "array/random.h"
#include "fields/augment_options.h"

namespace jigsaw::inline images {

/// Where the points of a crop lie in the image: turned and scaled about its middle and displaced, after it is
/// mirrored. A function of its arguments and of random numbers at fixed places, hence equal on every rank.
class Warp {
 public:
  using Point = std::array<double, 3>;  ///< along depth, height and width, or the first two of it

  /// What is drawn of a sample.
  struct Drawn {
    std::array<double, 3> angles{};  ///< in radians, about depth, height, width; of a plane the first
    double scale = 1;
    double elastic = 0, elastic_spacing = 8;
    std::vector<bool> mirrored;
    RandomPosition position;  ///< of the displacements
  };
  /// @param crop     in the image. @param spacing  of points along each dim.
  Warp(const Box& crop, const Drawn& drawn, const std::vector<double>& spacing,
       const RandomStream& displacements);

  /// Of a point by its place in the crop, which may lie beyond it.
  Point source(const Shape& at) const;

 private:
  Point displacement(const Point& at) const;

  Box crop_;
  Drawn drawn_;
  std::vector<double> spacing_;
  std::array<std::array<double, 3>, 3> matrix_{};  ///< in points of the image
  Shape controls_;                                 ///< displacements along each dim
  std::vector<double> displacements_;              ///< [controls, dims]
};

/// The values of a part of an image at points between its own, from those of a box that holds all neighbours
/// within the part. Beyond the part its nearest point counts.
class Interpolation {
 public:
  /// @param nearest  whether the nearest point counts, as for labels, instead of multilinear weights.
  Interpolation(const Box& part, bool nearest) : part_(part), nearest_(nearest) {}

  /// What is read for points: a box within the part.
  Box needed(std::span<const Warp::Point> points) const;
  /// NaN where a neighbour that counts is.
  double at(const Warp::Point& point, const Box& held, std::span<const double> values) const;
  /// Several numbers a point, values[held, out.size()], of those neighbours that are there alone: NaN where
  /// none is.
  void of_those_there(const Warp::Point& point, const Box& held, std::span<const double> values,
                      std::span<double> out) const;

  struct Neighbours {
    std::int64_t below = 0, above = 0;
    double share = 0;  ///< of `above`
  };
  Neighbours neighbours(double coordinate, int dim) const;

 private:
  /// Calls f(index in held, weight) for the neighbours that count.
  template <typename F>
  void for_each_neighbour(const Warp::Point& point, const Box& held, const F& f) const;

  Box part_;
  bool nearest_;
};

/// Blurs values of a box with a Gaussian of this deviation in points, cut off at blur_reach() and normalised:
/// the result is of the box without so many points on each side.
std::vector<double> blurred(std::vector<double> values, Shape extent, double deviation);
std::int64_t blur_reach(double deviation);

/// y = x^γ of what lies between −3 and 3 deviations, taken for 0 to 1; the rest as it is. @param normalised x
double gamma_of(double normalised, double exponent);

}  // namespace jigsaw::inline images
