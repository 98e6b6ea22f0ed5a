#include "evaluate/paired_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace jigsaw::inline evaluate {

namespace {

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-15;
  constexpr int kMost = 10'000;
  const auto away_from_0 = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_0(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m <= kMost; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                 odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double step = 1;
    for (const double coefficient : {even, odd}) {
      d = 1 / away_from_0(1 + coefficient * d);
      c = away_from_0(1 + coefficient / c);
      step = c * d;
      fraction *= step;
    }
    if (std::abs(step - 1) < kEnough) break;
  }
  return fraction;
}

/// The regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_probability(double t, double freedom) {
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double student_quantile(double probability, double freedom) {
  double low = 0, high = 1;
  while (student_probability(high, freedom) > probability) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
    const double middle = (low + high) / 2;
    (student_probability(middle, freedom) > probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

PairedDifference paired_difference(std::span<const double> differences, std::span<const char> following) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kOutside = 0.05;
  const auto n = static_cast<double>(differences.size());
  PairedDifference result{kNaN, kNaN, kNaN, kNaN, n};
  if (differences.empty()) return result;
  double sum = 0, squares = 0, products = 0, pairs = 0;
  for (const double difference : differences) sum += difference;
  result.mean = sum / n;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const double here = differences[i] - result.mean;
    squares += here * here;
    if (i == 0 || following[i] == 0) continue;
    products += here * (differences[i - 1] - result.mean);
    pairs += 1;
  }
  // Of few pairs it may come out above 1.
  const double correlation = pairs > 0 && squares > 0 ? std::min(1.0, (products / pairs) / (squares / n)) : 0;
  if (correlation > 0) result.independent = n * (1 - correlation) / (1 + correlation);
  constexpr double kFewest = 3;
  if (!(result.independent >= kFewest)) return result;
  const double freedom = result.independent - 1, error = std::sqrt(squares / (n - 1) / result.independent);
  const double reach = student_quantile(kOutside, freedom) * error;
  result.low = result.mean - reach;
  result.high = result.mean + reach;
  if (error > 0)
    result.p = student_probability(result.mean / error, freedom);
  else
    result.p = result.mean == 0 ? 1 : 0;
  return result;
}

}  // namespace jigsaw::inline evaluate
