#pragma once
#include <string>

#include "verify/recorded_run.h"

namespace jigsaw::inline verify {

/// How far apart the results of two meshes may be, which add up in other orders: relative differences of the
/// L2 norm, by the number type and the lengths of sums. Errors of rounding add up as random walks do, hence
/// the roots.
struct Tolerances {
  static constexpr double kFactor = 8;        ///< of what random walks give
  static constexpr double kNoiseFactor = 16;  ///< of what perturbing a run by one rounding does
  /// Updates are compared where the gradient is so many times its noise, unless the type is float64.
  static constexpr double kAboveNoise = 100;

  double value_rounding = 0;  ///< of the type of activations
  double sum_rounding = 0;    ///< of the type in which sums are formed
  int operations = 0;         ///< of a forward pass
  double longest_sum = 1;     ///< terms

  Tolerances(Precision precision, const RecordedRun& run);

  /// After so many operations.
  double of_value(int after) const;
  double of_loss() const { return of_value(operations); }
  /// Of a gradient that adds up so many terms.
  double of_gradient(double terms) const;
  std::string to_string() const;
};

}  // namespace jigsaw::inline verify
