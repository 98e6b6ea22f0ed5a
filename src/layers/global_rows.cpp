#include "layers/global_rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace jigsaw::inline layers {

namespace {

constexpr double kPi = std::numbers::pi;

/// A Legendre polynomial and its derivative.
struct LegendreValue {
  double value, slope;
};

LegendreValue legendre(std::int64_t degree, double x) {
  double before = 1, value = x;
  for (std::int64_t n = 2; n <= degree; ++n) {
    const auto d = static_cast<double>(n);
    before = std::exchange(value, ((2 * d - 1) * x * value - (d - 1) * before) / d);
  }
  return {value, static_cast<double>(degree) * (x * value - before) / (x * x - 1)};
}

/// Angles from the north pole, of which the cosines are the roots of the Legendre polynomial of that degree.
std::vector<double> gauss_angles(std::int64_t count) {
  std::vector<double> angles;
  for (std::int64_t i = 0; i < count; ++i) {
    if (2 * i >= count) {  // the southern half is the northern one
      angles.push_back(kPi - angles[static_cast<std::size_t>(count - 1 - i)]);
      continue;
    }
    // Newton's method in the cosine.
    double x = std::cos(kPi * (static_cast<double>(i) + 0.75) / (static_cast<double>(count) + 0.5));
    double step = 0;
    do {
      const LegendreValue at = legendre(count, x);
      step = at.value / at.slope;
      x -= step;
    } while (std::abs(step) > 1e-10);  // the next one is below a rounding
    angles.push_back(std::acos(x));
  }
  return angles;
}

/// 1 − Σ b(k)·2·cos(2kθ)/(4k² − 1) over k up to half of `points`, where b is ½ for the last k of an even
/// number if `halved`, else 1: what the rules of Clenshaw and Curtis and of Fejér have in common (Waldvogel
/// 2006, doi:10.1007/s10543-006-0045-4).
double cosine_sum(double angle, std::int64_t points, bool halved) {
  double sum = 1;
  for (std::int64_t k = 1; k <= points / 2; ++k) {
    const double part = halved && 2 * k == points ? 0.5 : 1.0, twice = 2.0 * static_cast<double>(k);
    sum -= part * 2 * std::cos(twice * angle) / (twice * twice - 1);
  }
  return sum;
}

double quadrature_weight(GlobalRows rows, std::int64_t count, std::int64_t row, double angle) {
  if (rows == GlobalRows::kGauss) {
    const double x = std::cos(angle), slope = legendre(count, x).slope;
    return 2 / ((1 - x * x) * slope * slope);
  }
  if (rows == GlobalRows::kPoleCell)
    return 2.0 / static_cast<double>(count) * cosine_sum(angle, count, false);
  const bool pole = row == 0 || row == count - 1;
  return (pole ? 1.0 : 2.0) / static_cast<double>(count - 1) * cosine_sum(angle, count - 1, true);
}

}  // namespace

const char* name(GlobalRows rows) {
  switch (rows) {
    case GlobalRows::kPolePoint:
      return "pole_point";
    case GlobalRows::kPoleCell:
      return "pole_cell";
    default:
      return "gauss";
  }
}

std::vector<double> polar_angles(GlobalRows rows, std::int64_t count) {
  if (rows == GlobalRows::kGauss) return gauss_angles(count);
  std::vector<double> angles;
  for (std::int64_t i = 0; i < count; ++i) {
    angles.push_back(rows == GlobalRows::kPolePoint
                         ? kPi * static_cast<double>(i) / static_cast<double>(count - 1)
                         : kPi * (static_cast<double>(i) + 0.5) / static_cast<double>(count));
  }
  return angles;
}

std::vector<double> global_latitudes(GlobalRows rows, std::int64_t count) {
  std::vector<double> latitudes = polar_angles(rows, count);
  for (double& latitude : latitudes) latitude = 90 - latitude * 180 / kPi;
  return latitudes;
}

std::optional<GlobalRows> global_rows_of(const std::vector<double>& latitudes) {
  const auto count = static_cast<std::int64_t>(latitudes.size());
  if (count < 2 || static_cast<double>(count) > kMostGlobalRows) return {};
  const double near = 0.01 * 180 / static_cast<double>(count);
  for (const GlobalRows rows : {GlobalRows::kPolePoint, GlobalRows::kPoleCell, GlobalRows::kGauss}) {
    std::vector<double> wanted = global_latitudes(rows, count);
    if (latitudes.front() < latitudes.back()) std::ranges::reverse(wanted);
    const auto is_near = [near](double a, double b) { return std::abs(a - b) <= near; };
    if (std::ranges::equal(latitudes, wanted, is_near)) return rows;
  }
  return {};
}

std::vector<double> quadrature_weights(GlobalRows rows, std::int64_t count) {
  std::vector<double> weights = polar_angles(rows, count);
  for (std::int64_t row = 0; row < count; ++row) {
    double& weight = weights[static_cast<std::size_t>(row)];
    weight = quadrature_weight(rows, count, row, weight);
  }
  return weights;
}

}  // namespace jigsaw::inline layers
