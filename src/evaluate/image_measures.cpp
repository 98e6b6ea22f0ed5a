#include "evaluate/image_measures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/heartbeat.h"

namespace jigsaw::inline evaluate {

namespace {

constexpr double kSigma = 1.5, kK1 = 0.01, kK2 = 0.03;
constexpr std::int64_t kTaps = 2 * kSsimReach + 1;

std::array<double, kTaps> taps() {
  std::array<double, kTaps> weights{};
  double sum = 0;
  for (std::int64_t i = 0; i < kTaps; ++i) {
    const double distance = static_cast<double>(i - kSsimReach) / kSigma;
    weights[static_cast<std::size_t>(i)] = std::exp(-0.5 * distance * distance);
    sum += weights[static_cast<std::size_t>(i)];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Weighted means over windows along every dim: each extent becomes kTaps − 1 less.
std::vector<double> filtered(std::vector<double> values, Shape extent) {
  static const std::array<double, kTaps> weights = taps();
  for (int d = 0; d < extent.rank(); ++d) {
    Shape shorter = extent;
    shorter[d] -= kTaps - 1;
    const std::int64_t outer = extent.count(0, d), inner = extent.count(d + 1, extent.rank());
    std::vector<double> result(static_cast<std::size_t>(shorter.count()), 0.0);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < shorter[d]; ++i) {
        double* const to = result.data() + (o * shorter[d] + i) * inner;
        for (std::int64_t k = 0; k < kTaps; ++k) {
          const double* const from = values.data() + (o * extent[d] + i + k) * inner;
          const double weight = weights[static_cast<std::size_t>(k)];
          for (std::int64_t j = 0; j < inner; ++j) to[j] += weight * from[j];
        }
        beat();
      }
    }
    values = std::move(result);
    extent = shorter;
  }
  return values;
}

/// The values of a part of a box.
std::vector<double> cut(std::span<const double> values, const Box& held, const Box& part) {
  const Shape strides = held.extent.strides();
  std::vector<double> result(static_cast<std::size_t>(part.extent.count()));
  Shape at = part.begin;
  for (double& value : result) {
    std::int64_t from = 0;
    for (int d = 0; d < at.rank(); ++d) from += (at[d] - held.begin[d]) * strides[d];
    value = values[static_cast<std::size_t>(from)];
    for (int d = at.rank() - 1; d >= 0; --d) {
      if (++at[d] < part.end(d)) break;
      at[d] = part.begin[d];
    }
  }
  return result;
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size());
  std::transform(a.begin(), a.end(), b.begin(), result.begin(), std::multiplies<>());
  return result;
}

}  // namespace

PointSum structural_similarity(const Box& whole, const Box& held, std::span<const double> a,
                               std::span<const double> b, const Box& scored, double range) {
  Box inner = whole;
  for (int d = 0; d < whole.begin.rank(); ++d) {
    inner.begin[d] += kSsimReach;
    inner.extent[d] = std::max<std::int64_t>(0, whole.extent[d] - 2 * kSsimReach);
  }
  Box part = intersect(scored, inner);
  if (part.empty()) return {};
  for (int d = 0; d < part.begin.rank(); ++d) {
    part.begin[d] -= kSsimReach;
    part.extent[d] += 2 * kSsimReach;
  }
  const std::vector<double> x = cut(a, held, part), y = cut(b, held, part);
  const std::vector<double> mean_x = filtered(x, part.extent), mean_y = filtered(y, part.extent),
                            xx = filtered(product(x, x), part.extent),
                            yy = filtered(product(y, y), part.extent),
                            xy = filtered(product(x, y), part.extent);
  const double c1 = kK1 * range * kK1 * range, c2 = kK2 * range * kK2 * range;
  PointSum total;
  for (std::size_t i = 0; i < mean_x.size(); ++i) {
    const double both = mean_x[i] * mean_y[i], squares = mean_x[i] * mean_x[i] + mean_y[i] * mean_y[i];
    const double similarity =
        (2 * both + c1) * (2 * (xy[i] - both) + c2) / ((squares + c1) * (xx[i] + yy[i] - squares + c2));
    if (std::isnan(similarity)) continue;
    total.sum += similarity;
    total.count += 1;
  }
  return total;
}

std::vector<std::int32_t> surface_points(const Box& whole, const Box& held, std::span<const double> labels,
                                         const Box& scored, double label) {
  std::vector<std::int32_t> points;
  if (scored.empty()) return points;
  const Shape strides = held.extent.strides();
  const int rank = whole.begin.rank();
  Shape at = scored.begin;
  const std::int64_t count = scored.extent.count();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t from = 0;
    for (int d = 0; d < rank; ++d) from += (at[d] - held.begin[d]) * strides[d];
    const auto is = [&](std::int64_t place) { return labels[static_cast<std::size_t>(place)] == label; };
    bool surface = false;
    for (int d = 0; is(from) && d < rank && !surface; ++d) {
      surface = at[d] == whole.begin[d] || at[d] + 1 == whole.end(d) || !is(from - strides[d]) ||
                !is(from + strides[d]);
    }
    if (surface) {
      for (int d = 0; d < rank; ++d) points.push_back(static_cast<std::int32_t>(at[d]));
    }
    for (int d = rank - 1; d >= 0; --d) {
      if (++at[d] < scored.end(d)) break;
      at[d] = scored.begin[d];
    }
  }
  return points;
}

}  // namespace jigsaw::inline evaluate
