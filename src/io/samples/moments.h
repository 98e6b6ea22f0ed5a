#pragma once
#include <limits>
#include <span>

namespace jigsaw::inline samples {

/// Count, mean and sum of squared deviations of values, without cancellation, and their range.
struct RunningMoments {
  double count = 0, mean = 0, squares = 0;
  double least = std::numeric_limits<double>::infinity(), largest = -least;  ///< as they are without values

  /// Of the values that are not NaN, in two passes.
  static RunningMoments of(std::span<const double> values);
  /// Takes in the moments of other values (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm
  /// for computing sample variances", 1979). Merging in one order gives the same bits everywhere.
  void merge(const RunningMoments& other);
  /// Of the whole population; 0 without values.
  double deviation() const;
  /// NaN without values.
  double mean_of_any() const;
};

}  // namespace jigsaw::inline samples
