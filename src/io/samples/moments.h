#pragma once
#include <span>

namespace jigsaw::inline samples {

/// Count, mean and sum of squared deviations of values, without cancellation.
struct RunningMoments {
  double count = 0, mean = 0, squares = 0;

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

/// The part of so many points that are none of the values; 0 of none.
inline double missing_part(const RunningMoments& values, double points) {
  return points > 0 ? (points - values.count) / points : 0;
}

}  // namespace jigsaw::inline samples
