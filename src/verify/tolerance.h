#pragma once
#include <algorithm>
#include <string>

#include "verify/recorded_run.h"

namespace jigsaw::inline verify {

/// How far apart the results of two meshes may be, which add up in other orders: relative differences of the
/// L2 norm, by the number type and the lengths of sums. Errors of rounding add up as random walks do, hence
/// the roots.
struct Tolerances {
  static constexpr double kFactor = 8;        ///< of what random walks give
  static constexpr double kNoiseFactor = 16;  ///< of what perturbing a run by one rounding does
  static constexpr double kMostFactor = 4;    ///< of the most that several such perturbations do
  /// Of the norm of all gradients: one whose noise is more is not proved by being as far apart.
  static constexpr double kMostNoise = 0.5;
  /// Updates are compared where the gradient is so many times its noise, unless the type is float64.
  static constexpr double kAboveNoise = 100;

  double value_rounding = 0;  ///< of the type of activations
  double sum_rounding = 0;    ///< of the type in which sums are formed; of plain loops of float64, more
  int operations = 0;         ///< of a forward pass
  double longest_sum = 1;     ///< terms

  Tolerances(Precision precision, const RecordedRun& run);

  /// After so many operations.
  double of_value(int after) const;
  double of_loss() const { return of_value(operations); }
  /// Of a gradient that adds up so many terms.
  double of_gradient(double terms) const;
  /// Of any gradient, absolute: what all together, of this norm, round to is nothing in each of them.
  double of_all_gradients(double norm) const { return 4 * sum_rounding * norm; }
  /// Of an update, absolute: several elements of the parameter, which have this root mean square, are rounded
  /// to the other neighbour when they are stored.
  double of_stored(double root_mean_square) const { return kFactor * sum_rounding * root_mean_square; }
  std::string to_string() const;
};

/// How far perturbed runs are from the one that they perturb, in one value. What a rounding decides (which of
/// nearly equal values is the maximum, where nearly nothing is divided by its size) makes one of them differ
/// where another does not; hence several where one is not enough.
class Noise {
 public:
  void add(double distance) {
    if (runs_++ == 0) first_ = distance;
    most_ = std::max(most_, distance);
  }
  double first() const { return first_; }
  double allowed() const {
    return std::max(Tolerances::kNoiseFactor * first_, Tolerances::kMostFactor * most_);
  }

 private:
  int runs_ = 0;
  double first_ = 0, most_ = 0;
};

}  // namespace jigsaw::inline verify
