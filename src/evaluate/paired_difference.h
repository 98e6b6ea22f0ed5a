#pragma once
#include <span>

namespace jigsaw::inline evaluate {

/// What two series of scores of the same forecasts say of the difference of their means.
struct PairedDifference {
  double mean = 0;           ///< of second − first
  double low = 0, high = 0;  ///< of its 95 % confidence interval
  double p = 1;              ///< two-sided: how likely as large a mean is if there is no difference
  double independent = 0;    ///< forecasts that count as independent ones
};

/// A paired t test of differences that follow each other in time: their number n counts as n (1 − ρ)/(1 + ρ)
/// where their lag-1 autocorrelation ρ is above 0 (Wilks, Statistical Methods in the Atmospheric Sciences,
/// section 5.2.4). NaN but for the mean where fewer than three are left.
/// @param following  of each but the first whether it follows the one before by the usual step.
PairedDifference paired_difference(std::span<const double> differences, std::span<const char> following);

/// Two-sided probability of Student's t distribution: P(|T| ≥ |t|), as 2·scipy.stats.t.sf(|t|, freedom).
double student_probability(double t, double freedom);
/// Its t of a two-sided probability, as scipy.stats.t.isf(probability / 2, freedom).
double student_quantile(double probability, double freedom);

}  // namespace jigsaw::inline evaluate
