#include "images/augmentation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace jigsaw::inline images {

namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k) result[i][j] += a[i][k] * b[k][j];
  return result;
}

/// A turn in the plane of two dims.
Matrix turn(std::size_t from, std::size_t to, double angle) {
  Matrix result = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  result[from][from] = result[to][to] = std::cos(angle);
  result[from][to] = -std::sin(angle);
  result[to][from] = std::sin(angle);
  return result;
}

/// Weights of the four control points around a place u of [0, 1) between the second and the third.
std::array<double, 4> spline(double u) {
  const double v = 1 - u;
  return {v * v * v / 6, (3 * u * u * u - 6 * u * u + 4) / 6, (3 * v * v * v - 6 * v * v + 4) / 6,
          u * u * u / 6};
}

}  // namespace

Warp::Warp(const Box& crop, const Drawn& drawn, const std::vector<double>& spacing,
           const RandomStream& displacements)
    : crop_(crop), drawn_(drawn), spacing_(spacing) {
  const int dims = crop.begin.rank();
  matrix_ = dims == 2 ? turn(0, 1, drawn.angles[0])
                      : product(turn(1, 2, drawn.angles[0]),
                                product(turn(0, 2, drawn.angles[1]), turn(0, 1, drawn.angles[2])));
  for (std::size_t i = 0; i < static_cast<std::size_t>(dims); ++i) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(dims); ++j)
      matrix_[i][j] *= spacing[j] / spacing[i] / drawn.scale;
  }
  if (drawn.elastic <= 0) return;
  for (const std::int64_t extent : crop.extent) {
    const double intervals = std::ceil(static_cast<double>(extent) / drawn.elastic_spacing);
    controls_.append(static_cast<std::int64_t>(intervals) + 3);
  }
  const auto count = static_cast<std::size_t>(controls_.count() * dims);
  for (std::size_t i = 0; i < count; ++i)
    displacements_.push_back(drawn.elastic * displacements.normal(drawn.position, i));
}

Warp::Point Warp::displacement(const Point& at) const {
  Point result{};
  if (displacements_.empty()) return result;
  const int dims = crop_.begin.rank();
  std::array<std::array<double, 4>, 3> weights{};
  std::array<std::int64_t, 3> first{};
  for (int d = 0; d < dims; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    const double place = at[axis] / drawn_.elastic_spacing;
    const auto below =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(place)), 0, controls_[d] - 4);
    weights[axis] = spline(std::clamp(place - static_cast<double>(below), 0.0, 1.0));
    first[axis] = below;
  }
  const Shape strides = controls_.strides();
  const int corners = dims == 3 ? 64 : 16;
  for (int corner = 0; corner < corners; ++corner) {
    double weight = 1;
    std::int64_t index = 0;
    for (int d = 0, rest = corner; d < dims; ++d, rest /= 4) {
      const auto axis = static_cast<std::size_t>(d);
      weight *= weights[axis][static_cast<std::size_t>(rest % 4)];
      index += (first[axis] + rest % 4) * strides[d];
    }
    for (int d = 0; d < dims; ++d)
      result[static_cast<std::size_t>(d)] +=
          weight * displacements_[static_cast<std::size_t>(index * dims + d)];
  }
  return result;
}

Warp::Point Warp::source(const Shape& at) const {
  const int dims = crop_.begin.rank();
  Point place{}, from_middle{};
  for (int d = 0; d < dims; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    const std::int64_t there = drawn_.mirrored[axis] ? crop_.extent[d] - 1 - at[d] : at[d];
    place[axis] = static_cast<double>(there);
    from_middle[axis] = place[axis] - static_cast<double>(crop_.extent[d] - 1) / 2;
  }
  const Point moved = displacement(place);
  Point source{};
  for (int d = 0; d < dims; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    source[axis] =
        static_cast<double>(crop_.begin[d]) + static_cast<double>(crop_.extent[d] - 1) / 2 + moved[axis];
    for (int j = 0; j < dims; ++j)
      source[axis] += matrix_[axis][static_cast<std::size_t>(j)] * from_middle[static_cast<std::size_t>(j)];
  }
  return source;
}

Interpolation::Neighbours Interpolation::neighbours(double coordinate, int dim) const {
  const std::int64_t last = part_.end(dim) - 1;
  const double inside =
      std::clamp(coordinate, static_cast<double>(part_.begin[dim]), static_cast<double>(last));
  if (nearest_) {
    const auto place = std::min(static_cast<std::int64_t>(std::floor(inside + 0.5)), last);
    return {place, place, 0};
  }
  const auto below = static_cast<std::int64_t>(std::floor(inside));
  return {below, std::min(below + 1, last), inside - static_cast<double>(below)};
}

Box Interpolation::needed(std::span<const Warp::Point> points) const {
  const int dims = part_.begin.rank();
  Box box{Shape::filled(dims, 0), Shape::filled(dims, 0)};
  for (int d = 0; d < dims && !points.empty(); ++d) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
    for (const Warp::Point& point : points) {
      const Neighbours near = neighbours(point[static_cast<std::size_t>(d)], d);
      least = std::min(least, near.below);
      most = std::max(most, near.above);
    }
    box.begin[d] = least;
    box.extent[d] = most + 1 - least;
  }
  return box;
}

template <typename F>
void Interpolation::for_each_neighbour(const Warp::Point& point, const Box& held, const F& f) const {
  const int dims = part_.begin.rank();
  const Shape strides = held.extent.strides();
  for (int corner = 0; corner < 1 << dims; ++corner) {
    double weight = 1;
    std::int64_t index = 0;
    for (int d = 0; d < dims; ++d) {
      const Neighbours near = neighbours(point[static_cast<std::size_t>(d)], d);
      const bool above = (corner >> d & 1) != 0;
      weight *= above ? near.share : 1 - near.share;
      index += ((above ? near.above : near.below) - held.begin[d]) * strides[d];
    }
    if (weight > 0) f(static_cast<std::size_t>(index), weight);
  }
}

double Interpolation::at(const Warp::Point& point, const Box& held, std::span<const double> values) const {
  double sum = 0;
  for_each_neighbour(point, held, [&](std::size_t index, double weight) { sum += weight * values[index]; });
  return sum;
}

void Interpolation::of_those_there(const Warp::Point& point, const Box& held, std::span<const double> values,
                                   std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  std::vector<double> there;  // weights of neighbours that are there, once one is not
  for_each_neighbour(point, held, [&](std::size_t index, double weight) {
    for (std::size_t c = 0; c < out.size(); ++c) {
      const double value = values[index * out.size() + c];
      if (!std::isnan(value)) {
        out[c] += weight * value;
      } else if (there.empty()) {
        there.assign(out.size(), 0.0);
      }
    }
  });
  if (there.empty()) return;
  for_each_neighbour(point, held, [&](std::size_t index, double weight) {
    for (std::size_t c = 0; c < out.size(); ++c)
      there[c] += std::isnan(values[index * out.size() + c]) ? 0 : weight;
  });
  for (std::size_t c = 0; c < out.size(); ++c) out[c] /= there[c];  // 0/0, NaN, where none is
}

std::int64_t blur_reach(double deviation) {
  constexpr double kDeviations = 3;
  return static_cast<std::int64_t>(std::ceil(kDeviations * deviation));
}

std::vector<double> blurred(std::vector<double> values, Shape extent, double deviation) {
  const std::int64_t reach = blur_reach(deviation), taps = 2 * reach + 1;
  if (reach == 0) return values;
  std::vector<double> weights;
  double total = 0;
  for (std::int64_t i = -reach; i <= reach; ++i) {
    weights.push_back(std::exp(-0.5 * static_cast<double>(i * i) / (deviation * deviation)));
    total += weights.back();
  }
  for (int d = 0; d < extent.rank(); ++d) {
    Shape shorter = extent;
    shorter[d] -= 2 * reach;
    const std::int64_t outer = extent.count(0, d), inner = extent.count(d + 1, extent.rank());
    std::vector<double> result(static_cast<std::size_t>(shorter.count()), 0.0);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < shorter[d]; ++i) {
        double* const to = result.data() + (o * shorter[d] + i) * inner;
        for (std::int64_t k = 0; k < taps; ++k) {
          const double* const from = values.data() + (o * extent[d] + i + k) * inner;
          for (std::int64_t j = 0; j < inner; ++j)
            to[j] += weights[static_cast<std::size_t>(k)] / total * from[j];
        }
      }
    }
    values = std::move(result);
    extent = shorter;
  }
  return values;
}

double gamma_of(double normalised, double exponent) {
  constexpr double kReach = 3;
  const double share = (normalised + kReach) / (2 * kReach);
  if (!(share > 0 && share < 1)) return normalised;
  return 2 * kReach * std::pow(share, exponent) - kReach;
}

}  // namespace jigsaw::inline images
