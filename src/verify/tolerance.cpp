#include "verify/tolerance.h"

#include <cmath>

#include "base/text.h"

namespace jigsaw::inline verify {

namespace {

/// The loops that float64 runs add one term after the other, to sums that may be far larger than the result;
/// kernels of the other types add in blocks.
constexpr double kPlainLoops = 64;

}  // namespace

Tolerances::Tolerances(Precision precision, const RecordedRun& run)
    : value_rounding(precision == Precision::kFloat64    ? 0x1p-53
                     : precision == Precision::kBfloat16 ? 0x1p-9
                                                         : 0x1p-24),
      sum_rounding(precision == Precision::kFloat64 ? kPlainLoops * 0x1p-53 : 0x1p-24),
      operations(run.operations),
      longest_sum(run.longest_sum) {}

double Tolerances::of_value(int after) const {
  return kFactor * (value_rounding * std::sqrt(1.0 + after) + sum_rounding * std::sqrt(longest_sum));
}

double Tolerances::of_gradient(double terms) const {
  return kFactor * (value_rounding * std::sqrt(1.0 + 3.0 * operations) +
                    sum_rounding * std::sqrt(std::max(terms, longest_sum)));
}

std::string Tolerances::to_string() const {
  return concat(
      "tolerances: ", kFactor, " × (", value_rounding, " of values × root of operations, ", operations,
      " in a forward pass; + ", sum_rounding, " of sums × root of terms, at most ", longest_sum,
      " forward), or ", kNoiseFactor, " × what one rounding of every parameter and input does, or ",
      kMostFactor,
      " × the most that several such perturbations, some of four roundings, do, where that is more");
}

}  // namespace jigsaw::inline verify
